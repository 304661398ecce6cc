//! Each user sees the buttons of their rights, and the controller refuses the rest all the same.

use crate::{buttons, fail_cleaning, log_in};
use anyhow::Result;
use browser::controller::USERS;
use browser::{Browser, Controller, Login};

#[test]
fn a_reader_sees_no_button_and_is_refused() -> Result<()> {
    let (controller, browser) = (Controller::start(Login::Users)?, Browser::start()?);
    let uuid = controller.enrol("n1", &[])?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    fail_cleaning(&controller, "n1", "out of order")?;
    let page = browser.page()?;
    let (name, password, _) = USERS[2];
    log_in(&page, &controller, (name, password))?;
    page.reads("out of order")?;
    let looks = ["Search".to_owned()];
    assert_eq!(buttons(&page)?, looks, "of the fleet");
    for place in ["", "/history", "/inventory", "/certificates", "/settings"] {
        page.open(&controller.url(&format!("nodes/{uuid}{place}")))?;
        page.until("document.querySelector('.tabs')", "the node")?;
        page.until("document.querySelector('main section')", "the part")?;
        assert_eq!(buttons(&page)?, Vec::<String>::new(), "{place}");
    }
    for place in ["bundles", "runbooks", "templates"] {
        page.open(&controller.url(place))?;
        page.until("document.querySelector('main section')", place)?;
        assert_eq!(buttons(&page)?, Vec::<String>::new(), "{place}");
    }
    // With the token of the session, as the page would send it.
    let status = page.eval(&format!(
        "fetch('/v1/nodes/{uuid}/states/provision', {{ method: 'PUT', body: '{{\"target\": \"manage\"}}', headers: \
         {{ 'Content-Type': 'application/json', 'anneal-csrf': localStorage['anneal-csrf'] }} }}).then((answer) => answer.status)"
    ))?;
    assert_eq!(status, 403);
    assert_eq!(controller.node("n1", "provision_state")?, "clean failed");
    page.open(&controller.url("rights"))?;
    page.reads("rita")?;
    page.reads("reader: reads")?;
    page.is_clean()
}

#[test]
fn a_member_says_verbs_and_overrides_nothing() -> Result<()> {
    let (controller, browser) = (Controller::start(Login::Users)?, Browser::start()?);
    let uuid = controller.enrol("n1", &[])?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    fail_cleaning(&controller, "n1", "out of order")?;
    let page = browser.page()?;
    let (name, password, _) = USERS[1];
    log_in(&page, &controller, (name, password))?;
    assert!(!page.has("Enrol a node")?);
    page.open(&controller.url(&format!("nodes/{uuid}")))?;
    page.until("anneal.find('.actions button', 'manage')", "a verb")?;
    assert!(!page.has("override")? && !page.has("delete")?);
    page.click("Not possible now")?;
    page.reads("override:")?;
    page.click_at("anneal.find('.actions button', 'manage')", "manage")?;
    page.click_at("anneal.find('dialog button', 'manage')", "manage")?;
    controller.reaches("n1", "manageable")?;
    // The history names them.
    page.click("History")?;
    page.reads("mona")?;
    page.is_clean()
}

#[test]
fn a_project_sees_its_own_nodes_alone() -> Result<()> {
    let (controller, browser) = (Controller::start(Login::Users)?, Browser::start()?);
    controller.enrol("own", &["--owner", "project-1"])?;
    let other = controller.enrol("other", &["--owner", "project-2"])?;
    let page = browser.page()?;
    let (name, password, _) = USERS[3];
    log_in(&page, &controller, (name, password))?;
    page.reads("1 node")?;
    page.until("document.querySelector('main tbody')?.innerText.includes('own')", "the node of the project")?;
    assert!(!page.text("main")?.contains("other") && !page.text("main")?.contains("project-2"));
    page.open(&controller.url(&format!("nodes/{other}")))?;
    page.reads("This cannot be shown")?;
    page.is_clean()
}
