//! Every verb by a click, and what is asked before one that takes something away.

use crate::{buttons, open};
use anyhow::{Context, Result, ensure};
use browser::{Controller, Page};
use std::collections::BTreeSet;

const PROVISIONING: &str = include_str!("../../../../docs/provisioning.md");
const HOLD: &str = r#"[{"interface": "management", "step": "hold"}]"#;

/// A verb, what its dialog wants besides the name, and the state in which the node is then.
type Said<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

/// In an order in which each state takes the next verb.
const STORY: &[Said<'_>] = &[
    ("manage", &[], "manageable"),
    ("inspect", &[], "manageable"),
    ("clean", &[("Steps of clean, in this order", HOLD)], "clean hold"),
    ("unhold", &[], "manageable"),
    ("clean", &[("Steps of clean, in this order", HOLD)], "clean hold"),
    ("abort", &[], "clean failed"),
    ("override", &[("Why this is right", "it was empty")], "available"),
    ("manage", &[], "manageable"),
    ("provide", &[], "available"),
    ("deploy", &[], "active"),
    ("service", &[("Steps of service, in this order", HOLD)], "service hold"),
    ("unhold", &[], "active"),
    ("rebuild", &[], "active"),
    ("rescue", &[("Password of the user rescue", "a long password")], "rescue"),
    ("unrescue", &[], "active"),
    ("undeploy", &[], "available"),
    ("manage", &[], "manageable"),
    ("adopt", &[], "active"),
];
/// Verbs after which something is gone: the name is typed.
const TYPED: [&str; 6] = ["provide", "clean", "deploy", "rebuild", "undeploy", "override"];

#[test]
fn each_verb_is_said_by_a_click() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &[])?;
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}")))?;
    for said in STORY {
        say(&page, &controller, said).with_context(|| format!("{said:?}"))?;
    }
    let said: BTreeSet<&str> = STORY.iter().map(|said| said.0).collect();
    assert_eq!(said, documented(), "the verbs of docs/provisioning.md");
    page.is_clean()
}

fn say(page: &Page<'_>, controller: &Controller, (verb, fields, state): &Said<'_>) -> Result<()> {
    page.until(&format!("anneal.find('.actions button', '{verb}')"), "the button of the verb")?;
    page.click_at(&format!("anneal.find('.actions button', '{verb}')"), verb)?;
    page.until("document.querySelector('dialog[open]')", "a question")?;
    for (label, value) in *fields {
        page.fill(label, value)?;
    }
    let is_typed = page.eval("anneal.field('Type n1 to go on') !== null")? == true;
    ensure!(is_typed == TYPED.contains(verb), "the name is typed: {is_typed}");
    if is_typed {
        let before = controller.node("n1", "provision_state")?;
        ensure!(!page.is_ready(verb)?, "the verb can be said without the name");
        for wrong in ["n", "N1", "n1 ", "n12"] {
            page.fill("Type n1 to go on", wrong)?;
            page.press("Enter")?;
            ensure!(!page.is_ready(verb)?, "the verb can be said with {wrong:?}");
        }
        ensure!(controller.node("n1", "provision_state")? == before, "Enter has said the verb");
        page.fill("Type n1 to go on", "n1")?;
    }
    page.click(verb)?;
    page.until("!document.querySelector('dialog[open]')", "the dialog closed")?;
    controller.reaches("n1", state)
}

/// The verbs of the table in the documentation.
fn documented() -> BTreeSet<&'static str> {
    let table = PROVISIONING.split("| verb | target | from | leads to |").nth(1).unwrap_or_default();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.split('`').nth(1)).collect()
}

#[test]
fn power_and_maintenance_are_changed_by_a_click() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &[])?;
    controller.does(&["node", "manage", "n1", "--wait"])?;
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}")))?;
    for power in ["power on", "power off"] {
        page.click(power)?;
        page.click_at(&format!("anneal.find('dialog button', '{power}')"), power)?;
        page.until(
            &format!("anneal.text(document.querySelector('.headline .badge.plain')) === '{power}'"),
            power,
        )?;
        assert_eq!(controller.node("n1", "power_state")?, power);
    }
    page.click("maintenance")?;
    page.fill("Why", "new disks")?;
    page.click("Set maintenance")?;
    page.reads("new disks")?;
    assert_eq!(controller.node("n1", "maintenance_reason")?, "new disks");
    page.click("end maintenance")?;
    page.until("anneal.find('button', 'maintenance')", "maintenance ended")?;
    assert_eq!(controller.node("n1", "maintenance")?, false);
    page.is_clean()
}

#[test]
fn a_node_is_deleted_only_by_its_name() -> Result<()> {
    let (controller, browser) = open()?;
    let uuid = controller.enrol("n1", &[])?;
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}/settings")))?;
    page.click("delete")?;
    page.reads("The controller forgets the node")?;
    page.fill("Type n1 to go on", "n2")?;
    assert!(!page.is_ready("Delete the node")?);
    page.click("Cancel")?;
    page.until("!document.querySelector('dialog[open]')", "the dialog closed")?;
    assert!(buttons(&page)?.contains(&"delete".to_owned()));
    page.click("delete")?;
    page.fill("Type n1 to go on", "n1")?;
    page.click("Delete the node")?;
    page.reads("0 nodes")?;
    assert!(!controller.anneal(&["node", "show", &uuid])?.status.success());
    page.is_clean()
}
