//! BMCs that accept every connection and never answer, or answer a byte at a time.

use crate::controller::Controller;
use crate::machines::States;
use anyhow::{Context, Result, bail};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Between two bytes of the answer of a slow BMC.
const DRIP: Duration = Duration::from_millis(500);
/// How often a request is sent whose connection is closed.
const TRIES: u8 = 5;
const SYSTEM: &str = "/redfish/v1/Systems/1";

/// BMC `number` and its node, which an operator asks to manage again and again, until it is dropped.
///
/// # Errors
/// When there is no port for it, or the controller refuses a request.
pub async fn run(number: u16, controller: Arc<Controller>, mut states: States) -> Result<()> {
    let [high, low] = number.to_be_bytes();
    let listener = TcpListener::bind((Ipv4Addr::new(127, 3, high, low), 0)).await?;
    let bmc = listener.local_addr()?;
    let _serving = serve(listener, number.is_multiple_of(2));
    let info = json!({ "redfish_address": format!("http://{bmc}"), "redfish_system_id": SYSTEM });
    let node = json!({ "driver": "redfish", "driver_info": info });
    let node = created(&controller, &node).await?;
    let uuid = node["uuid"].as_str().context("a new node has a UUID")?;
    loop {
        controller.of_silent_bmcs.provision(uuid, "manage").await?;
        let at = |state: &'static str| {
            move |states: &std::collections::BTreeMap<String, bench::operator::NodeView>| {
                states.get(uuid).is_some_and(|node| node.state == state)
            }
        };
        states.wait_for(at("verifying")).await?;
        states.wait_for(at("enroll")).await?;
    }
}

/// Creates a node. On a machine so busy that the request comes long after its connection, that was closed for others, which the hostile
/// clients open by the hundred: then it is sent again.
async fn created(controller: &Controller, node: &Value) -> Result<Value> {
    let mut tries = 0;
    loop {
        tries += 1;
        match controller.api.send(&Method::POST, "/v1/nodes", Some(node)).await {
            Ok((StatusCode::CREATED, node)) => return Ok(node),
            Ok((status, answer)) => bail!("{status} {answer}"),
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => {}
        }
    }
}

fn serve(listener: TcpListener, drips: bool) -> JoinSet<()> {
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(hold(stream, drips));
            while connections.try_join_next().is_some() {}
        }
    });
    serving
}

/// Until the controller has enough of it.
async fn hold(mut stream: TcpStream, drips: bool) {
    let mut buffer = [0; 1024];
    if !drips {
        while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
        return;
    }
    let answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{ ";
    for byte in answer.iter().chain(std::iter::repeat(&b' ')) {
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
        tokio::time::sleep(DRIP).await;
    }
}
