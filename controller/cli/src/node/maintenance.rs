//! `anneal node maintenance …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, show};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// In or out.
#[derive(Debug, Subcommand)]
pub enum Maintenance {
    /// Take a node out of service: the controller leaves it alone.
    Set {
        /// Name or UUID.
        node: String,
        /// Why.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Give it back to the controller.
    Unset {
        /// Name or UUID.
        node: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, maintenance: Maintenance) -> Result<(), Failure> {
    let (node, method, body) = match maintenance {
        Maintenance::Set { node, reason } => (node, Method::PUT, Some(json!({"reason": reason}))),
        Maintenance::Unset { node } => (node, Method::DELETE, None),
    };
    client.send(method, &["nodes", &node, "maintenance"], &[], body).await?;
    let fields = ("fields", "uuid,name,maintenance,maintenance_reason,fault".to_owned());
    let seen = client.get(&["nodes", &node], &[fields]).await?;
    show(format, &seen, |seen| match &seen["maintenance"] {
        Value::Bool(true) => format!("{node}: in maintenance"),
        _ => format!("{node}: not in maintenance"),
    })
}
