//! Manual cleaning: steps from a file and from standard input, a hold, an abort, and what fails or is refused.

use super::node::Node;
use crate::tool::Tool;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

pub fn run(node: &Node<'_>, anneal: &Tool) -> Result<()> {
    from_file(node)?;
    from_stdin(node, anneal)?;
    refused(node, anneal)?;
    failing(node)?;
    held(node)?;
    aborted(node)
}

fn slow(seconds: f64) -> Value {
    json!({"interface": "management", "step": "fake_slow", "args": {"seconds": seconds}})
}

/// The current step is shown while it runs, with its place in the list, and is gone afterwards.
fn from_file(node: &Node<'_>) -> Result<()> {
    let disks = json!([{"size_gb": "MAX", "raid_level": "1"}]);
    let raid = json!({"interface": "raid", "step": "create_configuration",
        "args": {"raid_config": {"logical_disks": disks}}});
    let bios = json!({"interface": "bios", "step": "apply_configuration",
        "args": {"settings": [{"name": "ProcTurboMode", "value": "Disabled"}]}});
    let file = node.file("clean.json", &json!([raid, slow(4.5), bios]))?;
    node.ask(&["clean"], &["--clean-steps", &file])?;
    let during = node.runs("clean", "fake_slow", &["cleaning", "clean wait"])?;
    ensure!(during["target_provision_state"] == "manageable", "target: {during}");
    ensure!(during["clean_step"]["args"] == json!({"seconds": 4.5}), "args: {}", during["clean_step"]);
    let internal = &during["driver_internal_info"];
    let names: Vec<_> =
        internal["clean_steps"].as_array().into_iter().flatten().map(|step| &step["step"]).collect();
    ensure!(names == ["create_configuration", "fake_slow", "apply_configuration"], "{internal}");
    ensure!(internal["clean_step_index"] == 1, "clean_step_index: {internal}");
    let ended = node.rests_in("manageable")?;
    let results = &ended["driver_internal_info"]["anneal"]["run"]["results"];
    ensure!(results[0]["result"]["logical_disks"] == disks, "the fake's RAID: {results}");
    let made = &ended["raid_config"];
    ensure!(made["logical_disks"] == disks && made["last_updated"].is_string(), "raid_config: {made}");
    ensure!(results[2]["result"]["in_force"] == json!(["ProcTurboMode"]), "the fake's BIOS: {results}");
    Ok(())
}

/// The console script reads `-`; so does Anneal's.
fn from_stdin(node: &Node<'_>, anneal: &Tool) -> Result<()> {
    let steps = json!([
        {"interface": "raid", "step": "delete_configuration"}, {"interface": "bios", "step": "factory_reset"},
    ]);
    let ran = |node: &Value| -> Vec<Value> {
        let results = node["driver_internal_info"]["anneal"]["run"]["results"].as_array();
        results.into_iter().flatten().map(|result| result["step"].clone()).collect()
    };
    let wanted = ["raid.delete_configuration", "bios.factory_reset"];
    node.stock.piped(&["node", "clean", &node.uuid, "--clean-steps", "-"], &steps.to_string())?;
    let ended = node.rests_in("manageable")?;
    ensure!(ran(&ended) == wanted, "ran {:?}", ran(&ended));
    ensure!(ended["raid_config"] == json!({}), "raid_config: {}", ended["raid_config"]);
    let id = ended["driver_internal_info"]["anneal"]["run"]["id"].clone();
    anneal.piped(&["node", "clean", &node.uuid, "--clean-steps", "-", "--wait", "60"], &steps.to_string())?;
    let ended = node.rests_in("manageable")?;
    ensure!(ran(&ended) == wanted, "ran {:?}", ran(&ended));
    ensure!(ended["driver_internal_info"]["anneal"]["run"]["id"] != id, "another run");
    Ok(())
}

/// Steps belong to `clean`, and `clean` needs them. Nothing changes.
fn refused(node: &Node<'_>, anneal: &Tool) -> Result<()> {
    const STEPS: &str = r#"[{"interface": "bios", "step": "factory_reset"}]"#;
    let before = node.show()?;
    for verb in ["provide", "inspect", "manage"] {
        let said = node.refused(verb, &["--clean-steps", STEPS])?;
        ensure!(said.contains("--clean-steps"), "{verb} with clean steps: {said}");
        let said = anneal.refused(&["node", verb, &node.uuid, "--clean-steps", STEPS])?;
        ensure!(said.contains("--clean-steps"), "anneal, {verb} with clean steps: {said}");
    }
    node.refused("clean", &[])?;
    let said = node.refused("clean", &["--clean-steps", "[]"])?;
    ensure!(said.contains("clean_steps"), "clean without steps: {said}");
    let said = node.refused("clean", &["--clean-steps", r#"[{"interface": "bios"}]"#])?;
    ensure!(said.contains("step"), "a clean step without a name: {said}");
    let after = node.show()?;
    ensure!(after == before, "what is refused changes nothing:\n{before}\n{after}");
    Ok(())
}

/// What cannot be planned runs nothing; what fails stops there, and is named.
fn failing(node: &Node<'_>) -> Result<()> {
    let reset = json!({"interface": "bios", "step": "factory_reset"});
    for (step, words) in [
        (json!({"interface": "bios", "step": "nosuch"}), ["bios", "nosuch"]),
        (json!({"interface": "management", "step": "fake_slow"}), ["management.fake_slow", "seconds"]),
        (
            json!({"interface": "bios", "step": "factory_reset", "args": {"colour": "red"}}),
            ["bios.factory_reset", "colour"],
        ),
    ] {
        let steps = json!([reset, step]).to_string();
        let failed = node.fails("clean", &["--clean-steps", &steps], "clean failed", &words)?;
        let results = &failed["driver_internal_info"]["anneal"]["run"]["results"];
        ensure!(*results == json!([]), "nothing was to run: {results}");
        ensure!(failed["maintenance"] == false, "the node itself is well: {}", failed["maintenance_reason"]);
        node.ask(&["manage"], &[])?;
    }
    let fail =
        json!({"interface": "management", "step": "fake_fail", "args": {"message": "a screw is loose"}});
    let steps = json!([reset, fail, slow(0.0)]).to_string();
    let words = ["management.fake_fail", "a screw is loose"];
    let failed = node.fails("clean", &["--clean-steps", &steps], "clean failed", &words)?;
    ensure!(failed["clean_step"]["step"] == "fake_fail", "clean_step: {}", failed["clean_step"]);
    ensure!(failed["driver_internal_info"]["clean_step_index"] == 1, "the index: {failed}");
    ensure!(failed["fault"] == "clean failure" && failed["maintenance"] == true, "held: {failed}");
    // A retry needs no other verb in between (specs/cleaning-states.txt), and the fault ends with it.
    node.through("clean", &["--clean-steps", &json!([reset]).to_string()], "manageable").map(drop)
}

fn held(node: &Node<'_>) -> Result<()> {
    let steps = json!([{"interface": "power", "step": "power_on"}, {"interface": "power", "step": "hold"},
        {"interface": "power", "step": "power_off"}, {"interface": "bios", "step": "factory_reset"}]);
    let steps = steps.to_string();
    node.ask(&["clean"], &["--clean-steps", &steps])?;
    let seen = node.runs("clean", "hold", &["clean hold"])?;
    ensure!(seen["power_state"] == "power on", "power_on came before hold: {}", seen["power_state"]);
    let said = node.refused("provide", &[])?;
    ensure!(said.contains("provide") && said.contains("clean hold"), "provide of a held node: {said}");
    ensure!(node.show()?["clean_step"] == seen["clean_step"], "it goes on holding");
    node.ask(&["unhold"], &[])?;
    let ended = node.rests_in("manageable")?;
    ensure!(ended["power_state"] == "power off", "power_off came after hold: {}", ended["power_state"]);
    let said = node.refused("unhold", &[])?;
    ensure!(said.contains("unhold") && said.contains("manageable"), "unhold of a manageable node: {said}");

    node.ask(&["clean"], &["--clean-steps", &steps])?;
    node.runs("clean", "hold", &["clean hold"])?;
    node.ask(&["abort"], &[])?;
    let failed = node.failed("clean failed", &["By request", "aborted", "power.hold"])?;
    ensure!(failed["power_state"] == "power on", "an abort switches nothing off: {}", failed["power_state"]);
    ensure!(failed["maintenance"] == false, "a user's wish is no fault: {}", failed["maintenance_reason"]);
    node.ask(&["manage"], &[])?;
    node.ask(&["power", "off"], &[])?;
    node.until("off", |node| node["power_state"] == "power off").map(drop)
}

/// A step that goes on outside, and may be stopped.
fn aborted(node: &Node<'_>) -> Result<()> {
    node.ask(&["clean"], &["--clean-steps", &json!([slow(3600.0)]).to_string()])?;
    let wait = |node: &Value| node["driver_internal_info"]["anneal"]["wait"]["reason"].clone();
    let waits = node.until("the step goes on outside", |node| {
        wait(node).as_str().is_some_and(|reason| reason.contains("fake_slow"))
    })?;
    ensure!(waits["provision_state"] == "clean wait", "it waits in {}", waits["provision_state"]);
    node.ask(&["abort"], &[])?;
    node.failed("clean failed", &["By request", "aborted", "management.fake_slow"])?;
    node.ask(&["manage"], &[])
}
