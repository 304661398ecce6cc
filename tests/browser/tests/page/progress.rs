//! A run with an agent at work: bars that move, and the certificate at its end.

use crate::{open, text};
use anyhow::{Context, Result};
use browser::machine::{DISK, Machine, finding, options};

const MAC: &str = "52:54:00:be:00:01";

#[test]
fn progress_moves_without_a_reload_and_ends_in_a_certificate() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &options(MAC))?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    let machine = Machine::start(&controller, MAC, &["erase_devices", "verify"]);
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}")))?;
    page.eval("globalThis.isTheSame = true")?;
    controller.does(&["node", "provide", "n1"])?;

    machine.erases(DISK / 4)?;
    page.reads("deploy.erase_devices")?;
    page.reads("25 %")?;
    page.reads("erasing overwrite-zeroes")?;
    page.shows("main [role=status]", &["step deploy.erase_devices, /dev/nvme0n1 20 %"])?;
    page.reads("120.0 GiB of 480.0 GiB, 2.0 GiB/s, 3m00s left")?;
    // How late a bar is, is measured by `cargo xtask soak --part page`.
    machine.erases(DISK / 2)?;
    page.until("document.querySelector('progress').value === 50", "half of it")?;

    machine.ends_step()?;
    page.until(
        "document.querySelector('.steps li:first-child .badge').innerText === 'done'",
        "the first step done",
    )?;
    machine.ends_step()?;
    controller.reaches("n1", "available")?;
    page.until("document.querySelector('.way [aria-current=step]').innerText === 'available'", "available")?;

    let certificates = controller.json(&["certificate", "list", "n1"])?;
    assert_eq!(finding(&certificates), "erased");
    let id = text(&certificates[0]["id"]).to_owned();
    page.click("Records and certificates")?;
    page.reads("passed: full, 480.0 GiB zeroes")?;
    page.click("Certificate 1")?;
    page.reads("verified It is signed by this controller, whole")?;
    page.reads(&id)?;
    page.reads("S64FNE0R")?;
    assert_eq!(page.eval("globalThis.isTheSame")?, true);

    page.click("Certificates")?;
    page.fill("Node (name or UUID), or id of a certificate", "n1")?;
    page.press("Enter")?;
    page.reads("Certificates of n1")?;
    let key = controller.json(&["certificate", "key"])?;
    page.reads(key["key"].as_str().context("a key")?)?;
    page.click("Certificate 1")?;
    page.reads("verified It is signed by this controller, whole")?;
    page.is_clean()
}
