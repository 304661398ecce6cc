//! Runbooks, templates, managers, rights.

use crate::{open, text};
use anyhow::Result;
use serde_json::json;

#[test]
fn runbooks_and_templates_are_kept_in_the_page() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    for (place, title, noun, number) in [
        ("runbooks", "runbook", "runbook", "order"),
        ("templates", "deploy template", "deploy-template", "priority"),
    ] {
        page.open(&controller.url(place))?;
        page.reads(&format!("There is no {title}."))?;
        page.click(&format!("Make a {title}"))?;
        page.fill("Name", "CUSTOM_ONE")?;
        page.fill("Steps", "not JSON")?;
        page.click("Make")?;
        page.until("document.querySelector('dialog[open] .error')", "why not")?;
        let steps = json!([{"interface": "bios", "step": "factory_reset", "args": {}, number: 7}]);
        page.fill("Steps", &steps.to_string())?;
        page.click("Make")?;
        page.reads(&format!("bios.factory_reset ({number} 7)"))?;
        let kept = controller.json(&[noun, "show", "CUSTOM_ONE"])?;
        assert_eq!(text(&kept["steps"][0]["step"]), "factory_reset");

        page.click("change")?;
        page.fill("Name", "CUSTOM_TWO")?;
        page.click("Change")?;
        page.reads("The ")?;
        page.until("document.querySelector('main tbody').innerText.includes('CUSTOM_TWO')", "the new name")?;
        page.click("delete")?;
        page.fill("Type CUSTOM_TWO to go on", "CUSTOM_TWO")?;
        page.click("Delete")?;
        page.reads(&format!("There is no {title}."))?;
        assert_eq!(controller.json(&[noun, "list"])?, json!([]));
    }
    page.is_clean()
}

#[test]
fn managers_drivers_and_controllers_are_shown() -> Result<()> {
    let (controller, browser) = open()?;
    let page = browser.page()?;
    page.open(&controller.url("bundles"))?;
    page.reads("No bundle: nodes have the managers of the ramdisk alone.")?;
    for driver in controller.json(&["driver", "list"])?.as_array().into_iter().flatten() {
        page.reads(text(&driver["name"]))?;
    }
    for one in controller.json(&["conductor", "list"])?.as_array().into_iter().flatten() {
        page.reads(text(&one["hostname"]))?;
    }
    page.is_clean()
}
