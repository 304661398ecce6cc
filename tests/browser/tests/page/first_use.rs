//! As a new user would: open the page, enrol nodes, watch them being cleaned, see why one fails, fix it, and take a certificate
//! home. `tests/packages` does it from the packages, with a node that boots.

use crate::open;
use anyhow::{Context, Result};
use browser::machine::{DISK, Machine};
use browser::tour::stands;

const MAC: &str = "52:54:00:be:00:03";

#[test]
fn a_new_user_brings_nodes_from_enrolment_to_a_certificate() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    page.open(&controller.url(""))?;
    page.reads("No node needs you.")?;

    // The first fails in its cleaning; the page says why, and what leads on.
    page.enrol("first", Some("52:54:00:be:00:04"))?;
    page.clean_with_failure("first", "the fan is out of order")?;
    page.lead_out("first")?;
    controller.reaches("first", "available")?;

    // The second boots an agent, which erases its disk.
    page.enrol("second", Some(MAC))?;
    controller.does(&["node", "set", "second", "--interface", "deploy=direct"])?;
    let machine = Machine::start(&controller, MAC, &["erase_devices"]);
    page.provide("second")?;
    machine.erases(DISK / 10)?;
    page.reads("10 %")?;
    machine.erases(DISK / 10 * 9)?;
    page.reads("90 %")?;
    machine.ends_step()?;
    page.until(&stands("available"), "available")?;

    page.download_certificate()?;
    let file = browser.downloaded("json")?;
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
