//! One node: each part of its page shows what the API says.

use crate::{fail_cleaning, open, rows, text};
use anyhow::Result;

#[test]
fn each_part_of_a_node_shows_what_the_api_says() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &["--mac", "52:54:00:12:34:56", "--description", "in the corner"])?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    controller.does(&["node", "inspect", "n1", "--wait"])?;
    fail_cleaning(&controller, "n1", "out of order")?;
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}")))?;

    // The same words as `anneal node why`.
    let why = controller.json(&["node", "why", "n1"])?;
    page.reads(text(&why["waits_for"]["text"]))?;
    page.reads(text(&why["next"]["text"]))?;
    for tried in why["tried"].as_array().into_iter().flatten() {
        page.reads(text(&tried["text"]))?;
    }
    for command in why["help"]["commands"].as_array().into_iter().flatten() {
        page.reads(text(&command["does"]))?;
    }
    page.shows(".way [aria-current=step]", &["clean failed"])?;
    page.reads("in the corner")?;

    page.click("History")?;
    let history = controller.json(&["node", "history", "n1"])?;
    let events = history.as_array().map(Vec::len).unwrap_or_default();
    page.until(&format!("document.querySelectorAll('tbody tr').length === {events}"), "all events")?;
    for event in history.as_array().into_iter().flatten() {
        page.reads(text(&event["event"]))?;
    }

    page.click("Inventory")?;
    page.reads("Network interfaces")?;
    let found = controller.json(&["node", "inventory", "n1"])?["inventory"].clone();
    for disk in found["disks"].as_array().into_iter().flatten() {
        page.reads(text(&disk["serial"]))?;
    }
    page.reads(text(&found["interfaces"][0]["mac_address"]))?;
    page.reads(text(&found["cpu"]["model_name"]))?;
    page.reads("52:54:00:12:34:56")?;

    page.click("Settings")?;
    page.reads(&uuid)?;
    page.reads("fake-hardware")?;
    let validation = controller.json(&["node", "validate", "n1"])?;
    // The table is drawn before the results are read.
    page.until(
        "document.querySelector('[aria-label=Interfaces] td') && !anneal.find('[aria-label=Interfaces] td:nth-child(3)', '–')",
        "the result of each interface",
    )?;
    let interfaces = rows(&page, "[aria-label=Interfaces]")?;
    assert!(interfaces.len() > 8, "{interfaces:?}");
    for row in interfaces {
        let ok = validation[&row[0]]["result"] == true;
        assert_eq!(row[2] == "ok", ok, "{row:?}");
    }

    page.click("Records and certificates")?;
    page.reads("management.fake_fail failed")?;
    page.reads("No step of the node has a certificate yet.")?;

    page.click("Plan of an erase")?;
    page.click("Show the plan")?;
    // No agent runs: the sentence is the controller's.
    page.until("document.querySelector('main .error')", "why there is no plan")?;
    page.is_clean()
}

#[test]
fn a_change_shows_without_a_reload() -> Result<()> {
    let (controller, browser) = open()?;
    controller.enrol("n1", &[])?;
    let page = browser.page()?;
    // A link may have the name as well.
    page.open(&controller.url("nodes/n1/history"))?;
    page.reads("enrolled with driver fake-hardware")?;
    page.eval("globalThis.isTheSame = true")?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    page.reads("verifying -> manageable")?;
    page.until(
        "anneal.find('.actions button', 'provide') && !anneal.find('.actions button', 'manage')",
        "the verbs of the new state",
    )?;
    controller.does(&["node", "maintenance", "set", "n1", "--reason", "new disks"])?;
    page.until("anneal.find('button', 'end maintenance')", "the way out of maintenance")?;
    controller.does(&["node", "delete", "n1"])?;
    page.reads("The node was deleted.")?;
    assert_eq!(page.eval("globalThis.isTheSame")?, true);
    page.is_clean()
}

#[test]
fn fields_are_changed_and_a_disk_is_not_retired_by_mistake() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &[])?;
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}/settings")))?;
    page.click("change")?;
    page.fill("Resource class", "large")?;
    page.fill("Name", "renamed")?;
    page.click("Change")?;
    page.reads("name, resource_class changed")?;
    assert_eq!(controller.node(&uuid, "resource_class")?, "large");
    assert_eq!(controller.node("renamed", "uuid")?, uuid);
    page.until("document.querySelector('h1').innerText === 'renamed'", "the new name")?;
    page.click("change")?;
    page.fill("Name", "not a name!")?;
    page.click("Change")?;
    // What is refused leaves the dialog open, with the reason.
    page.until("document.querySelector('dialog[open] .error')", "the refusal")?;
    page.press("Escape")?;
    page.until("!document.querySelector('dialog[open]')", "the dialog closed")?;
    assert_eq!(controller.node(&uuid, "name")?, "renamed");

    page.click("retire")?;
    page.fill("Why", "end of warranty")?;
    page.click("Retire")?;
    page.reads("end of warranty")?;
    assert_eq!(controller.node(&uuid, "retired")?, true);
    page.click("end retirement")?;
    page.until("anneal.find('button', 'retire')", "retirement ended")?;
    assert_eq!(controller.node(&uuid, "retired")?, false);
    page.is_clean()
}
