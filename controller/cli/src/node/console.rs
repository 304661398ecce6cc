//! `anneal node console …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, detail, show};
use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

/// What to do with the console.
#[derive(Debug, Subcommand)]
pub enum Console {
    /// Whether it is on, and how it is reached.
    Show {
        /// Name or UUID.
        node: String,
    },
    /// Switch it on.
    Enable {
        /// Name or UUID.
        node: String,
    },
    /// Switch it off.
    Disable {
        /// Name or UUID.
        node: String,
    },
}

/// Does it, and shows how the console is then.
pub async fn run(client: &Client, format: Format, command: Console) -> Result<(), Failure> {
    let (node, enabled) = match command {
        Console::Show { node } => (node, None),
        Console::Enable { node } => (node, Some(true)),
        Console::Disable { node } => (node, Some(false)),
    };
    let path = ["nodes", &node, "states", "console"];
    if let Some(enabled) = enabled {
        client.send(Method::PUT, &path, &[], Some(json!({"enabled": enabled}))).await?;
    }
    show(format, &client.get(&path, &[]).await?, detail)
}
