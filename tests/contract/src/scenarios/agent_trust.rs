//! When the controller accepts an agent as a node's ironic-python-agent: it has the token, serves TLS, and keeps the
//! address and certificate of its first heartbeat.

use super::{Enrolled, last_error, step};
use crate::World;
use crate::agents::Kind;
use crate::bmc::{Boots, Mishap};
use crate::controller::Controller;
use crate::process::{Daemon, check, wait_until};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;

/// A silent agent is lost soon.
const MORE: &str = "\
agent_silence_s = 10
[agent]
heartbeat_timeout_s = 5
";

/// Prints what the controller knows of the one agent there is.
const READ: &str = "import sqlite3, sys
print(sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True).execute('SELECT doc FROM contact').fetchone()[0])";

pub fn run(world: &World) -> Result<()> {
    let controller = Controller::with(world, "", MORE)?;
    let interfaces = &["deploy=direct"];
    let node = Enrolled::new(world, &controller.endpoint, &controller.network, Kind::Ipa, interfaces)?;
    node.clean(&json!([step("wait_for_go", &json!({}))]))?;
    node.until_it_waits(1)?;
    let known = contact(&controller)?;
    ensure!(url(&known).starts_with("https://127.0.0.1:"), "callback_url: {}", url(&known));
    let own = std::fs::read_to_string(node.machine.home(1).join("run/ironic-python-agent/agent.crt"))?;
    ensure!(known["verify_ca"] == own, "another certificate is pinned than the agent's own");
    let nonce = known["boot"]["nonce"].as_str().context("the nonce of the boot")?.to_owned();
    second_lookup(&controller, &node, &nonce).context("a second lookup")?;
    forged(&controller, &node, &known).context("heartbeats of others")?;
    impostor(world, &node, url(&known)).context("another server at the agent's address")?;
    node.machine.tls.store(false, Ordering::Relaxed);
    plain(&node).context("an agent without TLS")?;
    let boots = node.bmc.stop()?;
    ensure!(boots == Boots { ramdisk: 2, disk: 0 }, "it was booted otherwise: {boots:?}");
    Ok(())
}

/// With the nonce of the boot it gets the node, as in Ironic, and no token; without it nothing.
fn second_lookup(controller: &Controller, node: &Enrolled, nonce: &str) -> Result<()> {
    let url =
        |prefix: &str| format!("{}{prefix}/v1/lookup?addresses={}", controller.endpoint, node.machine.mac);
    let (status, body) = http(&["--get", &url(&format!("/boot-nonce/{nonce}"))])?;
    ensure!(status == "200" && body["config"]["agent_token"] == "******", "{status} {body}");
    for prefix in ["", "/boot-nonce/0000000000000000000000000000000000000000000000000000000000000000"] {
        let (status, body) = http(&["--get", &url(prefix)])?;
        ensure!(status == "404" && body["config"].is_null(), "{prefix}: {status} {body}");
    }
    Ok(())
}

/// Refused, each for its reason, also with the right token; and nothing known of the agent is changed.
fn forged(controller: &Controller, node: &Enrolled, known: &Value) -> Result<()> {
    let nonce = known["boot"]["nonce"].as_str().context("the nonce of the boot")?;
    let beats = format!("{}/boot-nonce/{nonce}/v1/heartbeat/{}", controller.endpoint, node.uuid);
    let other =
        check(Command::new("openssl").args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"]).args([
            "-subj",
            "/CN=caged",
            "-keyout",
            "/dev/null",
            "-days",
            "1",
        ]))?;
    let other = String::from_utf8(other.stdout)?;
    let plain = url(known).replace("https:", "http:");
    for (key, value, reason) in [
        ("agent_token", "x".repeat(43), "Invalid or missing agent token"),
        ("agent_verify_ca", other, "Detected change in ramdisk provided \"agent_verify_ca\""),
        ("callback_url", plain, "Detected change in ramdisk provided \"callback_url\""),
        (
            "callback_url",
            "https://127.0.0.1:9".to_owned(),
            "Detected change in ramdisk provided \"callback_url\"",
        ),
    ] {
        let mut beat = json!({
            "callback_url": url(known), "agent_version": "13.0.0",
            "agent_token": known["token"], "agent_verify_ca": known["verify_ca"],
        });
        beat[key] = json!(value);
        let (status, body) = http(&["--json", &beat.to_string(), &beats])?;
        ensure!(status == "400", "{key}: {status} {body}");
        let text = body["error_message"].as_str().unwrap_or_default().replace('\\', "");
        ensure!(text.contains(reason), "{key}: {text}");
    }
    let now = contact(controller)?;
    for key in ["token", "callback_url", "verify_ca", "agent_version"] {
        ensure!(now[key] == known[key], "{key} was changed");
    }
    Ok(())
}

/// The controller connects to it, and sends nothing: not even the token, which travels with every request.
fn impostor(world: &World, node: &Enrolled, url: &str) -> Result<()> {
    let home = world.dir.join("impostor");
    std::fs::create_dir(&home)?;
    let script = world.dir.join("impostor.py");
    std::fs::write(&script, include_str!("../../peers/impostor.py"))?;
    let port = url.rsplit(':').next().context("a port")?.trim_end_matches('/');
    node.bmc.suffer(Mishap::AgentDies)?;
    wait_until("the agent's port is free", super::PATIENCE, || {
        Ok(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err())
    })?;
    let mut command = Command::new("python3");
    let server = Daemon::start(
        command.args([script.as_os_str(), port.as_ref(), home.as_os_str()]),
        &world.dir.join("impostor.log"),
    )?;
    let seen = node.until_in("clean failed")?;
    drop(server);
    ensure!(last_error(&seen).contains("the agent has not been heard for"), "{}", last_error(&seen));
    ensure!(home.join("connections").exists(), "no client connected to it");
    let requests = std::fs::read_to_string(home.join("requests")).unwrap_or_default();
    ensure!(requests.is_empty(), "it was sent {requests}");
    node.verb("manage", &[])?;
    node.tool.run(&["node", "maintenance", "unset", &node.uuid])
}

/// It gets a token and is not heard.
fn plain(node: &Enrolled) -> Result<()> {
    node.clean(&json!([step("wait_for_go", &json!({}))]))?;
    let log = node.machine.log(2);
    wait_until("the agent is refused", super::PATIENCE, || {
        Ok(log.exists() && std::fs::read_to_string(&log)?.contains("TLS is required by configuration"))
    })?;
    let seen = node.show()?;
    ensure!(seen["provision_state"] == "clean wait", "the node is {}", seen["provision_state"]);
    ensure!(seen["driver_internal_info"]["agent_url"].is_null(), "{}", seen["driver_internal_info"]);
    node.ask("abort", &[])?;
    node.until_in("clean failed").map(drop)
}

fn url(contact: &Value) -> &str {
    contact["callback_url"].as_str().unwrap_or_default()
}

/// What the controller's database has of the agent, the token included.
fn contact(controller: &Controller) -> Result<Value> {
    let database = controller.state_dir.join("anneal.sqlite");
    let read = check(Command::new("python3").args([Path::new("-c"), READ.as_ref(), &database]))?;
    Ok(serde_json::from_slice(&read.stdout)?)
}

/// Status and body of what an agent asks.
fn http(line: &[&str]) -> Result<(String, Value)> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--write-out", "\n%{http_code}"]);
    let output = check(command.args(["--header", "X-OpenStack-Ironic-API-Version: 1.68"]).args(line))?;
    let text = String::from_utf8(output.stdout)?;
    let (body, status) = text.rsplit_once('\n').context("a status")?;
    Ok((status.to_owned(), serde_json::from_str(body).unwrap_or_default()))
}
