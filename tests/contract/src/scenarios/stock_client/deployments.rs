//! Deployments: steps from a file, the current step by version of the API, templates by trait, rebuild, hold.

use super::find;
use super::node::Node;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

const TRAIT: &str = "CUSTOM_TURBO_OFF";

pub fn run(node: &Node<'_>) -> Result<()> {
    steps_from_file(node)?;
    rebuilt(node)?;
    node.through("undeploy", &[], "available")?;
    templates(node).context("templates")?;
    node.through("undeploy", &[], "available")?;
    refused(node)?;
    held(node)
}

fn slow(seconds: f64, priority: u64) -> Value {
    json!({"interface": "management", "step": "fake_slow", "args": {"seconds": seconds}, "priority": priority})
}

fn turbo(value: &str, priority: u64) -> Value {
    let settings = json!([{"name": "ProcTurboMode", "value": value}]);
    json!({"interface": "bios", "step": "apply_configuration", "args": {"settings": settings},
        "priority": priority})
}

/// `interface.step` of the steps that are to be run.
fn planned(node: &Value) -> Vec<String> {
    let steps = node["driver_internal_info"]["deploy_steps"].as_array().into_iter().flatten();
    let name = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    steps.map(|step| format!("{}.{}", name(step, "interface"), name(step, "step"))).collect()
}

/// `deploy_step` is shown from 1.44 on, and what `driver_internal_info` says in every version (specs/deploy-steps.txt).
fn steps_from_file(node: &Node<'_>) -> Result<()> {
    let before = node.show()?;
    ensure!(before["deploy_step"] == json!({}), "deploy_step of an available node: {before}");
    let file = node.file("deploy.json", &json!([slow(12.0, 50), turbo("Disabled", 150)]))?;
    node.ask(&["deploy"], &["--deploy-steps", &file])?;
    let during = node.runs("deploy", "fake_slow", &["deploying", "wait call-back"])?;
    ensure!(during["target_provision_state"] == "active", "target: {}", during["target_provision_state"]);
    let wanted = ["bios.apply_configuration", "deploy.deploy", "management.fake_slow"];
    ensure!(planned(&during) == wanted, "deploy_steps: {:?}", planned(&during));
    let at = |version| {
        let before = ["--os-baremetal-api-version", version];
        node.stock.json_at(&["node", "show", &node.uuid], &before)
    };
    let (new, old) = (at("1.44")?, at("1.43")?);
    ensure!(new["deploy_step"]["step"] == "fake_slow", "deploy_step in 1.44: {new}");
    ensure!(old.get("deploy_step").is_none(), "deploy_step in 1.43: {old}");
    for shown in [&new, &old] {
        let internal = &shown["driver_internal_info"];
        ensure!(planned(shown) == wanted && internal["deploy_step_index"] == 2, "{internal}");
    }
    let detailed = node.stock.json(&["node", "list", "--long"])?;
    let row = find(&detailed, "uuid", &node.uuid)?;
    ensure!(row["deploy_step"]["step"] == "fake_slow", "node list --long: {row}");
    let ended = node.rests_in("active")?;
    ensure!(ended["power_state"] == "power off", "the fake starts nothing: {}", ended["power_state"]);
    Ok(())
}

/// Deployed again, by the client's own waiting; nothing is cleaned.
fn rebuilt(node: &Node<'_>) -> Result<()> {
    node.ask(&["rebuild"], &["--wait", "60"])?;
    node.rests_in("active").map(drop)
}

/// The steps of the template whose name is a trait of the instance.
fn templates(node: &Node<'_>) -> Result<()> {
    let stock = node.stock;
    let file = node.file("template.json", &json!([turbo("Disabled", 120), slow(6.0, 110)]))?;
    let made = stock.json(&["deploy", "template", "create", TRAIT, "--steps", &file])?;
    ensure!(made["name"] == TRAIT && made["steps"].as_array().is_some_and(|all| all.len() == 2), "{made}");
    let shown = stock.json(&["deploy", "template", "show", TRAIT])?;
    ensure!(shown["uuid"] == made["uuid"], "deploy template show: {shown}");
    find(&stock.json(&["deploy", "template", "list"])?, "name", TRAIT)?;

    let instance = format!("traits=[\"{TRAIT}\"]");
    node.ask(&["set"], &["--instance-info", &instance])?;
    let said = node.refused("deploy", &[])?;
    ensure!(said.contains(TRAIT), "an instance's trait that the node does not have: {said}");
    node.ask(&["add", "trait"], &[TRAIT, "CUSTOM_OTHER"])?;
    node.ask(&["remove", "trait"], &["CUSTOM_OTHER"])?;
    let traits = stock.json(&["node", "trait", "list", &node.uuid])?;
    ensure!(traits == json!([{"traits": TRAIT}]), "traits: {traits}");
    node.ask(&["deploy"], &[])?;
    let during = node.runs("deploy", "fake_slow", &["deploying", "wait call-back"])?;
    let wanted = ["bios.apply_configuration", "management.fake_slow", "deploy.deploy"];
    ensure!(planned(&during) == wanted, "deploy_steps: {:?}", planned(&during));
    node.rests_in("active")?;
    stock.run(&["deploy", "template", "delete", TRAIT])?;
    ensure!(stock.json(&["deploy", "template", "list"])? == json!([]), "a template is left");
    Ok(())
}

/// Nothing is dropped silently: an unknown step fails the deployment.
fn refused(node: &Node<'_>) -> Result<()> {
    let unknown = json!([{"interface": "bios", "step": "nosuch", "args": {}, "priority": 5}]).to_string();
    node.fails("deploy", &["--deploy-steps", &unknown], "deploy failed", &["bios", "nosuch"])?;
    let negative = json!([{"interface": "bios", "step": "factory_reset", "args": {}, "priority": -1}]);
    let said = node.refused("deploy", &["--deploy-steps", &negative.to_string()])?;
    ensure!(said.contains("-1"), "a negative priority: {said}");
    node.through("undeploy", &[], "available")?;
    node.ask(&["set"], &["--retired"]).map_or_else(|_| Ok(()), |()| anyhow::bail!("retired while available"))
}

/// A deployment that is held, is gone on with, fails at the end and is tried again.
fn held(node: &Node<'_>) -> Result<()> {
    let hold = json!({"interface": "power", "step": "hold", "args": {}, "priority": 60});
    let fail = json!({"interface": "management", "step": "fake_fail", "args": {"message": "a cable is short"},
        "priority": 30});
    let steps = json!([hold, fail]).to_string();
    node.ask(&["deploy"], &["--deploy-steps", &steps])?;
    node.runs("deploy", "hold", &["deploy hold"])?;
    node.ask(&["unhold"], &[])?;
    let failed = node.failed("deploy failed", &["management.fake_fail", "a cable is short"])?;
    ensure!(failed["deploy_step"]["step"] == "fake_fail", "deploy_step: {}", failed["deploy_step"]);
    node.through("deploy", &[], "active")?;
    Ok(())
}
