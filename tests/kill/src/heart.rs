//! The life of an agent in one boot: it serves commands, looks itself up, and beats. A controller that does not
//! answer is asked again at once: how long a real agent would wait is not what is tested here.

use agent_protocol::heartbeat::Heartbeat;
use agent_protocol::lookup::{LookupAnswer, MASKED};
use anyhow::{Context, Result, ensure};
use bench::agent::Agent;
use bench::client::send;
use bench::server;
use contract::certificate;
use hyper::Method;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Before a lookup or a heartbeat that brought nothing is sent again.
const AGAIN: Duration = Duration::from_millis(15);
/// Between heartbeats when no command ends.
const REGULAR: Duration = Duration::from_secs(1);

/// Lives until it is aborted.
pub async fn live(agent: Arc<Agent>, controller: SocketAddr) {
    if let Err(error) = try_to_live(&agent, controller).await {
        eprintln!("agent {}: {error:#}", agent.mac);
    }
}

async fn try_to_live(agent: &Arc<Agent>, controller: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let callback_url = format!("https://{}", listener.local_addr()?);
    let (tls, pem) = certificate::own()?;
    let mut serving = JoinSet::new();
    serving.spawn(server::run(listener, Some(tls.into()), agent.clone()));
    let (uuid, token) = loop {
        match look_up(agent, controller).await {
            Ok(found) => break found,
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    };
    agent.take_token(token.clone());
    let letter = Heartbeat {
        callback_url,
        agent_token: Some(token),
        agent_version: Some("13.0.0".to_owned()),
        agent_verify_ca: Some(pem),
        anneal: None,
    };
    loop {
        let letter = Heartbeat { anneal: Some(agent.heartbeat_state()), ..letter.clone() };
        let path = format!("/v1/heartbeat/{uuid}");
        let sent = send(controller, Method::POST, &path, serde_json::to_vec(&letter)?).await;
        let pause = if sent.is_ok_and(|(status, _)| status == 202) { REGULAR } else { AGAIN };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = agent.ended.notified() => {}
        }
    }
}

/// Node and token.
async fn look_up(agent: &Agent, controller: SocketAddr) -> Result<(String, String)> {
    let path = format!("/v1/lookup?addresses={}&anneal_boot_id={}", agent.mac, agent.boot_id());
    let (status, body) = send(controller, Method::GET, &path, Vec::new()).await?;
    ensure!(status == 200, "{status}");
    let answer: LookupAnswer = serde_json::from_slice(&body)?;
    let token = answer.config.agent_token.context("a token")?;
    ensure!(token != MASKED, "the answer with the token was lost");
    Ok((answer.node.uuid, token))
}
