//! Measures acknowledged heartbeats a second: `cargo run --release -p store-sqlite --example beats -- FILE`.
//! A hundred callers, each for its own node, for five seconds; FILE should lie on the disk in question.

use model::agent::AgentKind;
use model::{Cursor, Node, Run, RunKind, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::prelude::*;
use store::{HeartbeatRecord, TokenRequest};
use store_sqlite::{DatabaseKey, SqliteStore};
use uuid::Uuid;

const CALLERS: usize = 100;
const SPAN: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: beats FILE")?;
    let store = Arc::new(SqliteStore::open(&path, &DatabaseKey::generate().ok_or("no random numbers")?)?);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..CALLERS {
        let store = store.clone();
        let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", Timestamp(0));
        let run = Run::new(RunKind::AutomatedClean, Timestamp(0));
        node.run = Some(Run { cursor: Cursor::AwaitAgent, ..run });
        let node = store.create_node(node, vec![]).await?;
        store.grant_token(node.uuid, TokenRequest::without_nonce("token", None, Timestamp(0))).await?;
        callers.spawn(async move {
            let begun = Instant::now();
            let (mut beats, mut slowest) = (0_u32, Duration::ZERO);
            while begun.elapsed() < SPAN {
                let beat = HeartbeatRecord {
                    callback_url: "https://192.0.2.1:9999".to_owned(),
                    verify_ca: Some("x".repeat(1500)),
                    agent_version: Some("0.1.0".to_owned()),
                    at: Timestamp(i64::from(beats)),
                    agent: AgentKind::Ipa,
                };
                let asked = Instant::now();
                store.record_heartbeat(node.uuid, "token", beat).await?;
                slowest = slowest.max(asked.elapsed());
                beats += 1;
            }
            Ok::<_, store::StoreError>((beats, slowest))
        });
    }
    let (mut beats, mut slowest) = (0, Duration::ZERO);
    for done in callers.join_all().await {
        let (count, longest) = done?;
        beats += count;
        slowest = slowest.max(longest);
    }
    println!(
        "{:.0} beats/s from {CALLERS} callers, slowest {slowest:?}",
        f64::from(beats) / SPAN.as_secs_f64()
    );
    Ok(())
}
