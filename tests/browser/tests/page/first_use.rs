//! As a new user would: open the page, enrol nodes, watch them being cleaned, see why one fails, fix it, and take a certificate
//! home.

use crate::open;
use anyhow::{Context, Result};
use browser::Page;
use browser::machine::{DISK, Machine};
use contract::process::wait_until;
use std::time::Duration;

const MAC: &str = "52:54:00:be:00:03";

fn enrol(page: &Page<'_>, name: &str, mac: &str) -> Result<()> {
    page.click("Fleet")?;
    page.click("Enrol a node")?;
    page.choose("Driver", "fake-hardware")?;
    page.fill("Name", name)?;
    page.fill("MAC address of the NIC that it boots from", mac)?;
    page.click("Enrol")?;
    page.until(&format!("document.querySelector('h1').innerText === '{name}'"), "the node")?;
    page.click_at("anneal.find('.actions button', 'manage')", "manage")?;
    page.click_at("anneal.find('dialog button', 'manage')", "manage")?;
    page.until("anneal.find('.actions button', 'provide')", "manageable").map(drop)
}

#[test]
fn a_new_user_brings_nodes_from_enrolment_to_a_certificate() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    page.open(&controller.url(""))?;
    page.reads("No node needs you.")?;

    // The first fails in its cleaning; the page says why, and what leads on.
    enrol(&page, "first", "52:54:00:be:00:04")?;
    page.click_at("anneal.find('.actions button', 'clean')", "clean")?;
    page.choose("Add a step that the node offers", "management.fake_fail")?;
    page.fill("Type first to go on", "first")?;
    page.click("clean")?;
    page.until(
        "document.querySelector('.way [aria-current=step]').innerText === 'clean failed'",
        "it fails",
    )?;
    page.reads("Clean step management.fake_fail failed")?;
    page.click("Fleet")?;
    page.reads("1 failed")?;
    page.click("provide")?;
    page.fill("Type first to go on", "first")?;
    page.click("provide")?;
    page.reads("No node needs you.")?;
    controller.reaches("first", "available")?;

    // The second boots an agent, which erases its disk.
    enrol(&page, "second", MAC)?;
    controller.does(&["node", "set", "second", "--interface", "deploy=direct"])?;
    let machine = Machine::start(&controller, MAC, &["erase_devices"]);
    page.click_at("anneal.find('.actions button', 'provide')", "provide")?;
    page.fill("Type second to go on", "second")?;
    page.click("provide")?;
    machine.erases(DISK / 10)?;
    page.reads("10 %")?;
    machine.erases(DISK / 10 * 9)?;
    page.reads("90 %")?;
    machine.ends_step()?;
    page.until("document.querySelector('.way [aria-current=step]').innerText === 'available'", "available")?;

    page.click("Records and certificates")?;
    page.click("Certificate 1")?;
    page.reads("verified It is signed by this controller, whole")?;
    page.click("Download the certificate")?;
    let file = || {
        let found = std::fs::read_dir(browser.downloads()).ok()?.flatten().map(|entry| entry.path());
        found.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "json"))
    };
    wait_until("the file is there", Duration::from_secs(30), || Ok(file().is_some()))?;
    let file = file().context("the file")?;
    let key = controller.json(&["certificate", "key"])?["key"].as_str().context("a key")?.to_owned();
    let path = file.to_str().context("a name")?;
    let verified = controller.json(&[
        "certificate",
        "verify",
        path,
        "--key",
        &key,
        "--serial",
        browser::machine::SERIAL,
    ])?;
    assert_eq!(verified["certificate"]["finding"], "erased");
    page.is_clean()
}
