//! Heartbeats of strangers: one answer for all, and nothing changes. Without a machine, on loopback.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::controller::{Controller, ControllerConfig};
use lab::wait;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::node::Node;
use crate::stage::{NODE, SHORT, Stage, enrol};

pub const ABOUT: &str = "heartbeats of strangers are refused and change nothing";

const MAC: &str = "52:54:00:a4:ea:10";
/// No agent listens there: the controller will fail to ask this agent for its steps, and wait.
const HOME: &str = "https://127.0.0.1:9";
const UNKNOWN: &str = "00000000-1111-2222-3333-444444444444";

/// After the first try the conductor keeps still, so that nothing but heartbeats could change the node.
const SETTINGS: &str = "[agent]\nheartbeat_timeout_s = 300\nlookup_without_nonce = true\n[conductor]\nretry_pause_s = 600\nagent_silence_s = 600\n";

pub async fn story(stage: Stage) -> Result<()> {
    let config = ControllerConfig {
        ipv6_address: None,
        dir: stage.dir.clone(),
        address: None,
        dhcp: false,
        image: None,
        extra: SETTINGS.to_owned(),
    };
    let controller = Controller::start(config).await?;
    enrol(&controller, NODE, "fake-hardware", json!({}), MAC).await?;
    let uuid = controller.node(NODE).await?["uuid"].as_str().context("no uuid")?.to_owned();

    // No agent is expected yet: the lookup does not even return the node.
    let (status, _) = lookup(&controller).await?;
    ensure!(status == StatusCode::NOT_FOUND, "lookup of a node at rest: {status}");

    controller.provision(NODE, "provide").await?;
    controller.node_in(NODE, &["clean wait"], SHORT).await?;
    let stranger = beat(HOME, "a-token-that-was-never-given-to-anyone-0000");
    refused(&controller, &uuid, &stranger, 400, "before any token was given").await?;
    let token = token(&controller).await?;

    refused(&controller, &uuid, &stranger, 400, "another token").await?;
    refused(&controller, &uuid, &beat(HOME, "******"), 400, "the masked token").await?;
    refused(&controller, &uuid, &beat(HOME, ""), 400, "an empty token").await?;
    refused(&controller, &uuid, &beat(HOME, &token[..token.len() - 1]), 400, "all but the last letter")
        .await?;
    let mut without = beat(HOME, &token);
    without.as_object_mut().context("no object")?.remove("agent_token");
    refused(&controller, &uuid, &without, 400, "no token").await?;
    refused(&controller, UNKNOWN, &beat(HOME, &token), 400, "an unknown node").await?;
    ensure!(self::token(&controller).await? == "******", "the token was given twice");

    // The real one: now the callback URL is known, and the conductor tries it once.
    let (status, body) = send(&controller, &uuid, &beat(HOME, &token)).await?;
    ensure!(status == StatusCode::ACCEPTED, "the right token: {status} {body}");
    wait::until("the conductor to have tried", SHORT, || async {
        let node = Node::now(&controller, NODE).await?;
        Ok((!node.last_error().is_empty()).then_some(()))
    })
    .await?;
    let elsewhere = beat("https://127.0.0.1:10", &token);
    refused(&controller, &uuid, &elsewhere, 400, "another callback URL").await?;
    refused(&controller, &uuid, &beat("https://127.0.0.1:10", "x"), 400, "both wrong").await?;
    refused(&controller, &uuid, &stranger, 400, "another token, again").await?;
    refused(&controller, UNKNOWN, &beat(HOME, &token), 400, "an unknown node, again").await?;
    let node = Node::now(&controller, NODE).await?;
    ensure!(node.0["driver_internal_info"]["agent_url"] == HOME, "{}", node.0["driver_internal_info"]);

    // And the right one is still welcome.
    let (status, body) = send(&controller, &uuid, &beat(HOME, &token)).await?;
    ensure!(status == StatusCode::ACCEPTED, "the right token, at the end: {status} {body}");
    let log = std::fs::read_to_string(controller.config().log())?;
    ensure!(!log.contains(&token), "the token is in the log");
    ensure!(log.contains("wrong agent token"), "the log does not name the wrong token");
    Ok(())
}

fn beat(callback_url: &str, token: &str) -> Value {
    json!({"callback_url": callback_url, "agent_token": token, "agent_version": "1.0"})
}

async fn lookup(controller: &Controller) -> Result<(StatusCode, Value)> {
    controller.call(Method::GET, &format!("/v1/lookup?addresses={MAC}"), None).await
}

async fn token(controller: &Controller) -> Result<String> {
    let (status, body) = lookup(controller).await?;
    ensure!(status == StatusCode::OK, "lookup: {status} {body}");
    Ok(body["config"]["agent_token"].as_str().context("no token")?.to_owned())
}

async fn send(controller: &Controller, ident: &str, body: &Value) -> Result<(StatusCode, Value)> {
    controller.call(Method::POST, &format!("/v1/heartbeat/{ident}"), Some(body.clone())).await
}

/// The heartbeat is answered with this status and a reason, and the node stays as it was.
async fn refused(controller: &Controller, ident: &str, body: &Value, code: u16, what: &str) -> Result<()> {
    let before = steady(controller).await?;
    let (status, answer) = send(controller, ident, body).await?;
    ensure!(status.as_u16() == code, "{what}: {status} {answer}");
    let message = answer["error_message"].to_string();
    ensure!(message.len() > 20, "{what}: no reason in {answer}");
    let after = Node::now(controller, NODE).await?;
    ensure!(before == after, "{what} changed the node:\n{}\n{}", before.0, after.0);
    Ok(())
}

/// The node, once two looks show the same.
async fn steady(controller: &Controller) -> Result<Node> {
    wait::until("the node to keep still", Duration::from_secs(20), || async {
        let first = Node::now(controller, NODE).await?;
        let second = Node::now(controller, NODE).await?;
        // The controller may be about to let go of it.
        let rests = first == second && second.0["reservation"].is_null();
        Ok(rests.then_some(second))
    })
    .await
}
