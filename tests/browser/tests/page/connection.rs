//! The controller goes away, and comes back.

use crate::open;
use anyhow::Result;

const LOST: &str = "The controller cannot be reached. The page goes on when it is back.";

#[test]
fn a_page_catches_up_when_the_controller_is_back() -> Result<()> {
    let (mut controller, browser) = open()?;
    let uuid = controller.enrol("n1", &[])?;
    let [fleet, node] = [browser.page()?, browser.page()?];
    fleet.open(&controller.url("nodes"))?;
    fleet.reads("1 node")?;
    node.open(&controller.url(&format!("nodes/{uuid}")))?;
    node.reads("Where it stands")?;
    for page in [&fleet, &node] {
        page.eval("globalThis.isTheSame = true")?;
    }
    controller.kill();
    for page in [&fleet, &node] {
        page.reads(LOST)?;
    }
    controller.run()?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    controller.enrol("n2", &[])?;
    fleet.reads("2 nodes")?;
    node.until(
        "document.querySelector('.way [aria-current=step]').innerText === 'manageable'",
        "the new state",
    )?;
    node.until("anneal.find('.actions button', 'provide')", "the verbs of the new state")?;
    for page in [&fleet, &node] {
        page.reads_no(LOST)?;
        assert_eq!(page.eval("globalThis.isTheSame")?, true);
        page.is_clean()?;
    }
    Ok(())
}

#[test]
fn a_controller_that_stands_still_loses_nothing() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &[])?;
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}")))?;
    page.click_at("anneal.find('.actions button', 'manage')", "manage")?;
    controller.freeze(true)?;
    page.click_at("anneal.find('dialog button', 'manage')", "manage")?;
    // The question stays until there is an answer, and cannot be answered twice.
    page.until("anneal.find('dialog button', '…')?.disabled", "a dialog that waits")?;
    controller.freeze(false)?;
    controller.reaches("n1", "manageable")?;
    page.until("anneal.find('.actions button', 'provide')", "the verbs of the new state")?;
    page.is_clean()
}
