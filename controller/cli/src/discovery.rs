//! `anneal discovery …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// Verbs of machines that no node was known for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The machines that wait for an operator, and those that were decided about.
    List,
    /// Keep the node of a machine: from now on it is one like any other.
    Approve {
        /// UUID or MAC address.
        machine: String,
        /// Then make the node manageable.
        #[arg(long)]
        manage: bool,
    },
    /// Delete the node of a machine, and boot it no more.
    Reject {
        /// UUID or MAC address.
        machine: String,
    },
    /// Forget a machine, so that it may be discovered again at once. Its node stays.
    Forget {
        /// UUID or MAC address.
        machine: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => {
            let found = client.get(&["anneal", "discovery"], &[]).await?;
            show(format, &found["machines"], listing)
        }
        Command::Approve { machine, manage } => {
            let approved = decide(client, &machine, "approve").await?;
            if let (true, Some(node)) = (manage, approved["node_uuid"].as_str()) {
                let path = ["nodes", node, "states", "provision"];
                client.send(Method::PUT, &path, &[], Some(json!({"target": "manage"}))).await?;
            }
            show(format, &approved, |approved| format!("approved: node {}", cell(&approved["node_uuid"])))
        }
        Command::Reject { machine } => {
            let rejected = decide(client, &machine, "reject").await?;
            show(format, &rejected, |rejected| format!("rejected: {}", cell(&rejected["mac"])))
        }
        Command::Forget { machine } => {
            client.send(Method::DELETE, &["anneal", "discovery", &machine], &[], None).await?;
            show(format, &json!({"forgotten": machine}), |_| format!("forgotten: {machine}"))
        }
    }
}

async fn decide(client: &Client, machine: &str, verb: &str) -> Result<Value, Failure> {
    let path = ["anneal", "discovery", machine, verb];
    Ok(client.send(Method::POST, &path, &[], Some(json!({}))).await?.body)
}

fn listing(machines: &Value) -> String {
    let row = |machine: &Value| {
        let columns =
            ["state", "mac", "address", "node_uuid", "node_name", "booted_at", "waits_until", "uuid"];
        columns.map(|column| cell(&machine[column])).to_vec()
    };
    let rows: Vec<_> = machines.as_array().into_iter().flatten().map(row).collect();
    table(&["STATE", "MAC", "ADDRESS", "NODE", "NAME", "BOOTED", "WAITS UNTIL", "UUID"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_in_a_table() {
        let machines = json!([{"uuid": "u1", "state": "waiting", "mac": "52:54:00:00:00:01", "address": "10.0.0.7",
            "node_uuid": "n1", "node_name": null, "booted_at": "t1", "waits_until": "t2"}]);
        assert_eq!(
            listing(&machines),
            "STATE    MAC                ADDRESS   NODE  NAME  BOOTED  WAITS UNTIL  UUID\n\
             waiting  52:54:00:00:00:01  10.0.0.7  n1    -     t1      t2           u1\n"
        );
    }
}
