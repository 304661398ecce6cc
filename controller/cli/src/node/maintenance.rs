//! `anneal node maintenance …`

use super::batch::{Act, each};
use super::selection::Nodes;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::Format;
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// In or out.
#[derive(Debug, Subcommand)]
pub enum Maintenance {
    /// Take a node out of service: the controller leaves it alone.
    Set {
        #[command(flatten)]
        nodes: Nodes,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Give it back to the controller.
    Unset {
        #[command(flatten)]
        nodes: Nodes,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, maintenance: Maintenance) -> Result<(), Failure> {
    let (nodes, method, body) = match maintenance {
        Maintenance::Set { nodes, reason } => (nodes, Method::PUT, Some(json!({"reason": reason}))),
        Maintenance::Unset { nodes } => (nodes, Method::DELETE, None),
    };
    let one = async |node: &str| {
        client.send(method.clone(), &["nodes", node, "maintenance"], &[], body.clone()).await?;
        let fields = ("fields", "uuid,name,maintenance,maintenance_reason,fault".to_owned());
        client.get(&["nodes", node], &[fields]).await
    };
    let view = |seen: &Value| match &seen["maintenance"] {
        Value::Bool(true) => format!("{}: in maintenance", nodes.only().unwrap_or_default()),
        _ => format!("{}: not in maintenance", nodes.only().unwrap_or_default()),
    };
    each(client, format, &nodes, &Act::CHANGE, view, one).await
}
