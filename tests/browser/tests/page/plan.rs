//! The plan of an erase, answered by a real agent with a disk of its own, and the erase that it was for.

use crate::{open, rows, text};
use anyhow::{Context, Result};
use browser::RealAgent;
use browser::machine::options;

const MAC: &str = "52:54:00:be:00:07";

#[test]
fn what_the_plan_says_about_a_disk_is_what_the_erase_does() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &options(MAC))?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}/plan")))?;
    page.click("clean with a hold before the erase")?;
    page.fill("Type n1 to go on", "n1")?;
    page.click("clean")?;
    controller.reaches("n1", "clean wait")?;
    let agent = RealAgent::start(&controller, MAC)?;
    controller.reaches("n1", "clean hold")?;
    page.until("anneal.find('button', 'unhold')", "the way on")?;

    // What the agent answers is what the page shows, and nothing is written.
    page.click("Show the plan")?;
    page.until("document.querySelector('[aria-label=Plan] tbody tr')", "the plan")?;
    let plan = controller.json(&["node", "plan", "n1"])?;
    assert_eq!(plan["refuses"], false, "{plan}");
    let disk = &plan["disks"][0];
    assert_eq!(text(&disk["device"]), agent.disk.device);
    let method = text(&disk["methods"][0]["method"]).to_owned();
    let shown = rows(&page, "[aria-label=Plan]")?;
    let first = shown.first().context("a row")?;
    assert_eq!(first[0], agent.disk.device);
    assert!(first.contains(&method) && first.contains(&"64.0 MiB".to_owned()), "{first:?}");
    page.choose("Level", "purge")?;
    page.click("Show the plan")?;
    // The kernel's zeroes do not purge: the plan says that the run would be refused, and because of which disk.
    page.reads("The run would be refused because of the disks below that say so.")?;
    assert!(agent.disk.has_gpt()?, "a plan writes nothing");

    page.click("unhold")?;
    page.click_at("anneal.find('dialog button', 'unhold')", "unhold")?;
    controller.reaches("n1", "manageable")?;
    agent.disk.ensure_zero()?;
    page.click("Records and certificates")?;
    page.click("Certificate 1")?;
    page.reads("verified It is signed by this controller, whole")?;
    page.reads(&method)?;
    page.is_clean()
}
