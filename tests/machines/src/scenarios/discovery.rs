//! Three servers that no node is known for boot at once, report themselves and wait: one is approved and cleaned, one is rejected,
//! one waits until its time is over. Nothing is written to a disk that was not approved.

use anyhow::{Context, Result, ensure};
use lab::disk::Bus;
use lab::machine::Lasting;
use lab::node::{Boot, Firmware};
use lab::redfish::RedfishBmc;
use lab::site::{BMC_PASSWORD, BMC_USER, Site, SiteNode};
use lab::wait;
use serde_json::{Value, json};

use crate::node::history;
use crate::stage::{LONG, NO_METADATA, NODE, SHORT, Stage, cleaned, verb};

pub const ABOUT: &str = "three unknown servers boot at once and become nodes that wait for an operator";

/// Enough for three boots at once, and no more than the story waits for.
const DISCOVERY: &str = "\
[discovery]
enabled = true
networks = [\"172.22.0.0/24\"]
wait_s = 150
";

pub async fn story(stage: Stage) -> Result<()> {
    let disks = ["APPROVED", "REJECTED", "WAITING"];
    let disks =
        disks.map(|serial| stage.disk(serial, Bus::Sata, 32)).into_iter().collect::<Result<Vec<_>>>()?;
    let mut site = stage.site(&format!("{NO_METADATA}{DISCOVERY}")).await?;
    let mut nodes = Vec::new();
    for (number, disk) in disks.iter().enumerate() {
        let name = format!("unknown{number}");
        let node = site.node(&name, Firmware::Bios, vec![disk.spec.clone()]).await?;
        // As a server that has not been set up.
        node.machine.choose_boot(Some((Boot::Pxe, Lasting::Always))).await?;
        add_rule(&site, &node).await?;
        nodes.push(node);
    }
    for node in &nodes {
        node.machine.power_on().await?;
    }
    let found = wait::until("three machines to wait for approval", LONG, || async {
        let machines = machines(&site).await?;
        Ok(machines
            .iter()
            .all(|machine| machine["state"] == "waiting")
            .then_some(machines)
            .filter(|all| all.len() == 3))
    })
    .await?;
    for (node, disk) in nodes.iter().zip(&disks) {
        is_enrolled(&site, node, &found).await.with_context(|| node.name.clone())?;
        disk.ensure_untouched()?;
    }
    let [approved, rejected, waiting] = &nodes[..] else { unreachable!("three nodes") };

    site.controller.anneal(&["discovery", "reject", mac(rejected)]).await?;
    is_off(rejected, SHORT).await?;
    ensure!(one(&machines(&site).await?, rejected)?["node_uuid"].is_null(), "its node is there");

    let uuid = one(&found, approved)?["node_uuid"].as_str().context("no node")?.to_owned();
    site.controller.anneal(&["discovery", "approve", mac(approved), "--manage"]).await?;
    is_off(approved, SHORT).await?;
    approved.machine.choose_boot(None).await?;
    site.controller.set(&uuid, json!({"/name": NODE})).await?;
    site.controller.node_in(NODE, &["manageable"], SHORT).await.context("manage")?;
    site.controller.provision_with(NODE, verb("provide")).await?;
    cleaned(&site.controller, "available").await?.erased(disks[0].serial())?;
    disks[0].ensure_erased()?;

    is_off(waiting, LONG).await?;
    ensure!(
        one(&machines(&site).await?, waiting)?["state"] == "waiting",
        "it waits for an operator all the same"
    );
    is_not_booted_again(rejected, &format!("no node has the MAC {}", mac(rejected))).await?;
    // It is a node that nothing is done with.
    is_not_booted_again(waiting, &format!("{} boots from its disk", mac(waiting))).await?;
    for (node, disk) in [(rejected, &disks[1]), (waiting, &disks[2])] {
        node.machine.power_off().await?;
        disk.ensure_untouched()?;
        says_nothing_of_a_token(node)?;
    }
    Ok(())
}

/// What operators of a fleet have: a rule that knows where the BMC of a server is.
async fn add_rule(site: &Site, node: &SiteNode) -> Result<()> {
    let set =
        |path: &str, value: Value| json!({"op": "set-attribute", "args": {"path": path, "value": value}});
    let actions = json!([
        set("/driver_info/redfish_address", node.bmc.url().into()),
        set("/driver_info/redfish_system_id", RedfishBmc::system_id().into()),
        set("/driver_info/redfish_username", BMC_USER.into()),
        set("/driver_info/redfish_password", BMC_PASSWORD.into()),
        set("/driver_info/redfish_verify_ca", false.into()),
        set("/owner", "lab".into()),
        {"op": "add-trait", "args": {"name": "CUSTOM_DISCOVERED"}},
    ]);
    let first = "{inventory[interfaces][0][mac_address]}";
    let conditions = json!([{"op": "eq", "args": {"values": [first, mac(node)]}}]);
    let (actions, conditions) = (actions.to_string(), conditions.to_string());
    let words = ["inspection-rule", "create", "--actions", &actions, "--conditions", &conditions];
    site.controller.anneal(&words).await.map(drop)
}

fn mac(node: &SiteNode) -> &str {
    &node.machine.spec().mac
}

async fn machines(site: &Site) -> Result<Vec<Value>> {
    let listed = site.controller.anneal(&["--json", "discovery", "list"]).await?;
    serde_json::from_str(&listed).with_context(|| listed)
}

/// The entry of a server.
fn one<'a>(machines: &'a [Value], node: &SiteNode) -> Result<&'a Value> {
    let found = machines.iter().find(|machine| machine["mac"] == mac(node));
    found.with_context(|| format!("{} is not in {machines:?}", mac(node)))
}

/// A node with what was found, that nothing is done with.
async fn is_enrolled(site: &Site, node: &SiteNode, found: &[Value]) -> Result<()> {
    let uuid = one(found, node)?["node_uuid"].as_str().context("no node")?;
    let seen = site.controller.node(uuid).await?;
    ensure!(seen["provision_state"] == "enroll", "it is {}", seen["provision_state"]);
    ensure!(
        seen["driver_info"]["redfish_address"] == node.bmc.url().as_str(),
        "BMC: {}",
        seen["driver_info"]
    );
    ensure!(seen["owner"] == "lab" && seen["traits"] == json!(["CUSTOM_DISCOVERED"]), "rules: {seen}");
    ensure!(seen["properties"]["memory_mb"] == node.machine.spec().memory_mib, "{}", seen["properties"]);
    ensure!(
        seen["driver_internal_info"]["agent_url"].is_null(),
        "an agent: {}",
        seen["driver_internal_info"]
    );
    let inventory = site.controller.get(&format!("/v1/nodes/{uuid}/inventory")).await?;
    ensure!(inventory["inventory"]["disks"][0]["size"] == 32 << 20, "{}", inventory["inventory"]["disks"]);
    let ports = site.controller.get(&format!("/v1/ports/detail?node={uuid}")).await?;
    let ports: Vec<_> =
        ports["ports"].as_array().into_iter().flatten().map(|port| &port["address"]).collect();
    ensure!(ports == [mac(node)], "ports: {ports:?}");
    let events = history(&site.controller, uuid).await?;
    ensure!(events[0].starts_with("discovered: booted from"), "{events:?}");
    ensure!(node.machine.is_on().await, "it waits");
    Ok(())
}

async fn is_off(node: &SiteNode, limit: std::time::Duration) -> Result<()> {
    wait::until(&format!("{} to be off", node.name), limit, || async {
        Ok((!node.machine.is_on().await).then_some(()))
    })
    .await
}

/// Powered on again, it gets no second script on this day, but this one.
async fn is_not_booted_again(node: &SiteNode, script: &str) -> Result<()> {
    node.machine.power_on().await?;
    wait::until(&format!("{} to be refused", node.name), LONG, || async {
        let log = std::fs::read_to_string(node.machine.spec().serial_log())?;
        Ok(log.contains(script).then_some(()))
    })
    .await
}

/// The agent neither served nor was given anything.
fn says_nothing_of_a_token(node: &SiteNode) -> Result<()> {
    let log = std::fs::read_to_string(node.machine.spec().serial_log())?;
    ensure!(log.contains("no node is known for this machine"), "the agent says nothing of a discovery");
    ensure!(
        !log.contains("API served") && !log.contains("this machine is known"),
        "the agent served or was known"
    );
    Ok(())
}
