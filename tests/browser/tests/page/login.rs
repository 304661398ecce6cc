//! Logging in, by password and by a one-time link.

use crate::log_in;
use anyhow::{Context, Result};
use browser::controller::USERS;
use browser::{Browser, Controller, Login};

#[test]
fn a_wrong_password_is_refused_and_the_right_one_stays() -> Result<()> {
    let (controller, browser) = (Controller::start(Login::Users)?, Browser::start()?);
    let page = browser.page()?;
    page.open(&controller.url("nodes?owner=project-1"))?;
    page.fill("User", "alice")?;
    page.fill("Password", "a guess")?;
    page.press("Enter")?;
    page.until("document.querySelector('[role=alert]')", "the refusal")?;
    assert!(page.text("main")?.contains("Log in to Anneal"));
    page.fill("Password", USERS[0].1)?;
    page.press("Enter")?;
    // What was asked for is shown.
    page.reads("owner: project-1")?;
    page.reload()?;
    page.reads("alice")?;
    // Another tab has the session and may change something, too.
    let tab = page.tab()?;
    tab.open(&controller.url("nodes"))?;
    tab.until("anneal.find('button', 'Enrol a node')", "a button that changes something")?;

    // No script reads the cookie.
    assert_eq!(page.eval("document.cookie")?, "");
    page.open(&controller.url("rights"))?;
    page.click("Log out")?;
    page.reads("Log in to Anneal")?;
    let status = page.eval("fetch('/v1/nodes').then((answer) => answer.status)")?;
    assert_eq!(status, 401);
    page.is_clean()
}

#[test]
fn a_page_whose_session_has_ended_shows_the_login() -> Result<()> {
    let (controller, browser) = (Controller::start(Login::Users)?, Browser::start()?);
    let page = browser.page()?;
    log_in(&page, &controller, (USERS[0].0, USERS[0].1))?;
    let tab = page.tab()?;
    tab.open(&controller.url("rights"))?;
    tab.click("Log out")?;
    tab.reads("Log in to Anneal")?;
    page.click("Managers and bundles")?;
    page.reads("Log in to Anneal")?;
    page.fill("User", USERS[0].0)?;
    page.fill("Password", USERS[0].1)?;
    page.click("Log in")?;
    // On with what was asked for.
    page.reads("No bundle: nodes have the managers of the ramdisk alone.")?;
    page.is_clean()
}

#[test]
fn a_one_time_link_works_once() -> Result<()> {
    let (controller, browser) = (Controller::start(Login::Link)?, Browser::start()?);
    controller.enrol("n1", &[])?;
    let printed = String::from_utf8(controller.anneal(&["ui"])?.stdout)?;
    let link = printed.split_whitespace().find(|word| word.contains("#link=")).context("a link")?.to_owned();
    let page = browser.page()?;
    page.open(&link)?;
    page.reads("1 node")?;
    assert_eq!(
        page.eval("location.href.includes('link=')")?,
        false,
        "the link is not in the history of the browser"
    );
    page.until("anneal.find('button', 'Enrol a node')", "full access")?;

    let other = browser.page()?;
    other.open(&link)?;
    other.reads("Log in to Anneal")?;
    other.until("document.querySelector('[role=alert]')", "why the link is refused")?;
    assert_eq!(other.eval("fetch('/v1/nodes').then((answer) => answer.status)")?, 401);
    page.is_clean()
}

#[test]
fn a_change_needs_the_token_of_the_session() -> Result<()> {
    let (controller, browser) = (Controller::start(Login::Users)?, Browser::start()?);
    let page = browser.page()?;
    log_in(&page, &controller, (USERS[0].0, USERS[0].1))?;
    page.eval("localStorage.removeItem('anneal-csrf')")?;
    page.reload()?;
    page.reads("Needs you")?;
    assert!(!page.has("Enrol a node")?, "a page that cannot change something offers no change");
    let status = page.eval(
        "fetch('/v1/nodes', { method: 'POST', body: '{\"driver\": \"fake-hardware\"}', headers: { 'Content-Type': \
         'application/json' } }).then((answer) => answer.status)",
    )?;
    assert_eq!(status, 403);
    page.open(&controller.url("rights"))?;
    page.reads("log in again to change something")?;
    page.is_clean()
}
