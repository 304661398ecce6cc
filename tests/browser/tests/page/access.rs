//! axe-core on each page, light and dark.

use crate::{fail_cleaning, open};
use anyhow::Result;
use browser::machine::{DISK, Machine, options};
use browser::{Browser, Controller, Login, Page, axe};
use serde_json::json;

fn both(page: &Page<'_>, what: &str) -> Result<()> {
    for dark in [false, true] {
        page.dark(dark)?;
        axe::check(page, &format!("{what}, {}", if dark { "dark" } else { "light" }))?;
    }
    page.dark(false)
}

#[test]
fn axe_finds_nothing_on_any_page() -> Result<()> {
    let (controller, browser) = open()?;
    let failed = controller.enrol("failed", &["--owner", "project-1", "--description", "rack 7"])?;
    controller.does(&["node", "manage", "failed", "--wait"])?;
    controller.does(&["node", "inspect", "failed", "--wait"])?;
    fail_cleaning(&controller, "failed", "out of order")?;
    let mac = "52:54:00:be:00:02";
    let works = controller.enrol("works", &options(mac))?;
    controller.does(&["node", "manage", "works", "--wait"])?;
    let machine = Machine::start(&controller, mac, &["erase_devices", "verify"]);
    controller.does(&["node", "provide", "works"])?;
    machine.erases(DISK / 3)?;
    let steps = json!([{"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}]).to_string();
    controller.does(&["runbook", "create", "CUSTOM_ERASE", "--steps", &steps])?;

    let page = browser.page()?;
    let parts = ["", "/plan", "/certificates", "/inventory", "/history", "/settings"];
    let mut places: Vec<_> = parts.iter().map(|part| format!("nodes/{failed}{part}")).collect();
    places.extend(
        [
            "nodes",
            "nodes?owner=project-1",
            "certificates",
            "bundles",
            "runbooks",
            "templates",
            "rights",
            "nodes/missing",
        ]
        .map(str::to_owned),
    );
    for place in &places {
        page.open(&controller.url(place))?;
        page.until("document.querySelector('main section, main .error')", place)?;
        both(&page, place)?;
    }
    page.open(&controller.url(&format!("nodes/{works}")))?;
    page.until("document.querySelector('progress')", "a bar")?;
    both(&page, "a node at work")?;
    machine.ends_step()?;
    page.click("Records and certificates")?;
    page.click("Certificate 1")?;
    page.reads("verified It is signed by this controller, whole")?;
    both(&page, "a certificate")?;

    page.open(&controller.url("nodes"))?;
    page.click("Enrol a node")?;
    page.until("document.querySelector('dialog[open]')", "the dialog")?;
    both(&page, "the dialog of enrolling")?;
    page.press("Escape")?;
    page.open(&controller.url(&format!("nodes/{failed}")))?;
    page.click_at("anneal.find('.actions button', 'clean')", "clean")?;
    page.until("document.querySelector('dialog[open]')", "the dialog")?;
    both(&page, "the dialog of clean")?;
    page.is_clean()
}

#[test]
fn axe_finds_nothing_on_the_login() -> Result<()> {
    let browser = Browser::start()?;
    for login in [Login::Users, Login::Link] {
        let controller = Controller::start(login)?;
        let page = browser.page()?;
        page.open(&controller.url("nodes"))?;
        page.reads("Log in to Anneal")?;
        both(&page, &format!("{login:?}"))?;
        page.is_clean()?;
    }
    Ok(())
}

/// What is smaller than a desk: nothing is cut off sideways.
#[test]
fn a_narrow_window_shows_everything() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &[])?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    fail_cleaning(&controller, "n1", "out of order")?;
    let page = browser.page()?;
    page.size(360, 740)?;
    for place in [
        "nodes".to_owned(),
        format!("nodes/{uuid}"),
        format!("nodes/{uuid}/settings"),
        "certificates".to_owned(),
    ] {
        page.open(&controller.url(&place))?;
        page.until("document.querySelector('main section')", &place)?;
        let over =
            page.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth")?;
        assert_eq!(over, 0, "{place} is wider than the window");
    }
    page.is_clean()
}
