//! The pictures of README and book: `ANNEAL_WRITE_DOCS=1 cargo test -p browser --test page screenshots`.

use crate::{fail_cleaning, open};
use anyhow::Result;
use browser::machine::{DISK, Machine, options};
use std::path::{Path, PathBuf};

const MACS: [&str; 2] = ["52:54:00:be:00:05", "52:54:00:be:00:06"];

fn file(name: &str) -> PathBuf {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    images.join(format!("page-{name}.png"))
}

/// Without the variable the pages are shown all the same, so that no picture is of a page that is not there any more.
#[test]
fn pictures_are_of_pages_that_are_there() -> Result<()> {
    let (controller, browser) = open()?;
    let writes = std::env::var_os("ANNEAL_WRITE_DOCS").is_some();
    for number in 1..=9 {
        let (name, owner) = (format!("rack7-u{number:02}"), format!("project-{}", number % 3 + 1));
        let class = if number > 6 { "storage" } else { "compute" };
        controller.enrol(&name, &["--owner", &owner, "--resource-class", class])?;
        controller.does(&["node", "manage", &name, "--wait"])?;
        if number > 3 {
            controller.does(&["node", "provide", &name, "--wait"])?;
        }
    }
    controller.does(&["node", "manage", "rack7-u04", "--wait"])?;
    fail_cleaning(&controller, "rack7-u04", "the BMC did not answer within 60 s")?;
    let mut uuids = Vec::new();
    let mut machines = Vec::new();
    for (number, mac) in MACS.iter().enumerate() {
        let name = format!("rack8-u{number:02}");
        let more = ["--owner", "project-1", "--resource-class", "storage"];
        uuids.push(controller.enrol(&name, &[options(mac), more.to_vec()].concat())?);
        controller.does(&["node", "manage", &name, "--wait"])?;
        machines.push(Machine::start(&controller, mac, &["erase_devices", "verify_properties"]));
        controller.does(&["node", "provide", &name])?;
        machines[number].erases((DISK * 37).div_ceil(100))?;
    }
    machines[1].ends_step()?;
    machines[1].ends_step()?;
    controller.reaches("rack8-u01", "available")?;

    let page = browser.page()?;
    page.size(1100, 860)?;
    page.call("Emulation.setScrollbarsHidden", serde_json::json!({ "hidden": true }))?;
    page.open(&controller.url("nodes"))?;
    page.reads("rack8-u00")?;
    page.reads("the BMC did not answer")?;
    let shoot = |name: &str| if writes { page.screenshot(&file(name)) } else { Ok(()) };
    shoot("fleet")?;
    page.open(&controller.url(&format!("nodes/{}", uuids[0])))?;
    page.reads("37 %")?;
    shoot("node")?;
    page.dark(true)?;
    shoot("node-dark")?;
    page.dark(false)?;
    page.open(&controller.url(&format!("nodes/{}/certificates", uuids[1])))?;
    page.click("Certificate 1")?;
    page.reads("verified It is signed by this controller, whole")?;
    shoot("certificate")?;
    page.is_clean()
}
