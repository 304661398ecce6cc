//! `anneal node trait …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

/// What to do with the traits of a node.
#[derive(Debug, Subcommand)]
pub enum Traits {
    /// Show them.
    List {
        /// Name or UUID.
        node: String,
    },
    /// Give the node more.
    Add(Named),
    /// Take some, or all, from the node.
    Remove {
        /// Name or UUID.
        node: String,
        /// Which.
        #[arg(value_name = "TRAIT", required_unless_present = "all", conflicts_with = "all")]
        traits: Vec<String>,
        /// All of them.
        #[arg(long)]
        all: bool,
    },
    /// Give the node these and no others.
    Set(Named),
}

/// A node and traits.
#[derive(Debug, Args)]
pub struct Named {
    /// Name or UUID.
    node: String,
    /// Standard traits, or `CUSTOM_…` in capitals.
    #[arg(value_name = "TRAIT", required = true)]
    traits: Vec<String>,
}

/// Does it, and shows what the node has then.
pub async fn run(client: &Client, format: Format, command: Traits) -> Result<(), Failure> {
    let node = match command {
        Traits::List { node } => node,
        Traits::Add(Named { node, traits }) => {
            for one in &traits {
                client.send(Method::PUT, &["nodes", &node, "traits", one], &[], None).await?;
            }
            node
        }
        Traits::Remove { node, all: true, .. } => {
            client.send(Method::DELETE, &["nodes", &node, "traits"], &[], None).await?;
            node
        }
        Traits::Remove { node, traits, all: false } => {
            for one in &traits {
                client.send(Method::DELETE, &["nodes", &node, "traits", one], &[], None).await?;
            }
            node
        }
        Traits::Set(Named { node, traits }) => {
            let body = json!({"traits": traits});
            client.send(Method::PUT, &["nodes", &node, "traits"], &[], Some(body)).await?;
            node
        }
    };
    let traits = client.get(&["nodes", &node, "traits"], &[]).await?;
    show(format, &traits, listing)
}

fn listing(body: &Value) -> String {
    let lines: Vec<_> = body["traits"].as_array().into_iter().flatten().map(cell).collect();
    if lines.is_empty() { "no traits".to_owned() } else { lines.join("\n") }
}
