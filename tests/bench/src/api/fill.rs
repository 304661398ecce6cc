//! A database of many nodes. It is filled through the store: by the API it would take minutes.

use anyhow::{Context, Result};
use model::agent::AgentKind;
use model::{Cursor, Node, ProvisionState, Resource, ResourceKind, Run, RunKind, Timestamp};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::prelude::*;
use store::{HeartbeatRecord, ResourceWrite, TokenRequest};
use store_sqlite::{DatabaseKey, SqliteStore};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Where the agents of the nodes say that they listen.
pub const CALLBACK: &str = "https://127.0.0.1:9999";
/// The token of each.
pub const TOKEN: &str = "0123456789012345678901234567890123456789012";
/// Nodes that are written at a time.
const AT_ONCE: usize = 500;

/// A filled database.
#[derive(Debug, Clone)]
pub struct Filled {
    /// `anneal.sqlite` and `database.key`.
    pub directory: PathBuf,
    /// How many nodes it has.
    pub count: usize,
    /// How many of them have an agent.
    pub agents: usize,
}

impl Filled {
    /// The UUID of the node of this agent: they are all over the list.
    pub fn agent(&self, number: usize) -> Uuid {
        uuid(number * stride(self.count, self.agents))
    }
}

/// Every so many nodes one has an agent.
fn stride(count: usize, agents: usize) -> usize {
    (count / agents.max(1)).max(1)
}

/// The UUID of a node.
pub fn uuid(number: usize) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, &number.to_le_bytes())
}

/// The database of so many nodes below `dir`, filled unless it is there.
pub fn filled(dir: &Path, count: usize, agents: usize) -> Result<Filled> {
    let directory = dir.join(format!("{count}-nodes-{agents}-agents"));
    let filled = Filled { directory, count, agents };
    if filled.directory.exists() {
        return Ok(filled);
    }
    println!("filling a database with {count} nodes");
    let half = dir.join("half-filled");
    let _ = std::fs::remove_dir_all(&half);
    std::fs::create_dir_all(&half)?;
    let key = DatabaseKey::generate().context("no random numbers")?;
    std::fs::write(half.join("database.key"), format!("{}\n", key.to_text()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(fill(&half.join("anneal.sqlite"), &key, count, agents))?;
    std::fs::rename(&half, &filled.directory)?;
    Ok(filled)
}

async fn fill(path: &Path, key: &DatabaseKey, count: usize, agents: usize) -> Result<()> {
    let store = Arc::new(SqliteStore::open(path, key)?);
    for first in (0..count).step_by(AT_ONCE) {
        let mut writes = JoinSet::new();
        for number in first..count.min(first + AT_ONCE) {
            let stride = stride(count, agents);
            let has_agent = number.is_multiple_of(stride) && number / stride < agents;
            writes.spawn(enrol(store.clone(), number, has_agent));
        }
        for written in writes.join_all().await {
            written?;
        }
    }
    Ok(())
}

/// A node with a port. One with an agent has failed to clean: its ramdisk runs, and the controller waits for nothing.
async fn enrol(store: Arc<SqliteStore>, number: usize, has_agent: bool) -> Result<()> {
    let node = node(number)?;
    let mut node = store.create_node(node, vec![]).await?;
    let mut port = Resource::new(ResourceKind::Port, Uuid::new_v4(), node.created_at);
    port.node = Some(node.uuid);
    let [a, b, c, ..] = u32::try_from(number)?.to_be_bytes();
    let last = number & 0xff;
    port.fields.insert("address".into(), format!("52:54:{a:02x}:{b:02x}:{c:02x}:{last:02x}").into());
    store.write_resource(ResourceWrite::Create(port), None, vec![]).await?;
    if !has_agent {
        return Ok(());
    }
    let at = node.created_at;
    node.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, at) });
    let mut node = store.update_node(node, vec![], None).await?;
    store.grant_token(node.uuid, TokenRequest::without_nonce(TOKEN, None, at)).await?;
    let beat = HeartbeatRecord {
        callback_url: CALLBACK.to_owned(),
        verify_ca: Some(format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            "QUJD".repeat(300)
        )),
        agent_version: Some("13.0.0".to_owned()),
        at,
        agent: AgentKind::Ipa,
    };
    store.record_heartbeat(node.uuid, TOKEN, beat).await?;
    (node.run, node.provision_state, node.maintenance) = (None, ProvisionState::CleanFail, true);
    store.update_node(node, vec![], None).await?;
    Ok(())
}

fn node(number: usize) -> Result<Node> {
    let mut node = Node::enrolled(uuid(number), "fake-hardware", Timestamp(i64::try_from(number)?));
    node.name = Some(format!("rack-{}-node-{number}", number / 40));
    node.resource_class = Some(if number % 1000 == 7 { "gpu" } else { "baremetal" }.to_owned());
    node.maintenance = number.is_multiple_of(10);
    for (name, value) in [
        ("owner", format!("project-{}", number % 50)),
        ("description", format!("the machine number {number}")),
    ] {
        node.other.insert(name.into(), value.into());
    }
    for (name, value) in [
        ("redfish_address", format!("https://192.0.2.{}", number % 250)),
        ("redfish_username", "anneal".to_owned()),
        ("redfish_password", "a password of a usual length".to_owned()),
        ("redfish_system_id", "/redfish/v1/Systems/1".to_owned()),
    ] {
        node.driver_info.insert(name.into(), value.into());
    }
    let properties = json!({"cpus": 64, "memory_mb": 262_144, "local_gb": 900, "cpu_arch": "x86_64"});
    node.properties = properties.as_object().cloned().unwrap_or_default();
    node.extra.insert("note".into(), "x".repeat(500).into());
    Ok(node)
}
