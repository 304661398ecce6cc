//! `anneal port …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, detail, show, table};
use crate::values::{Pair, mac, object, pair};
use clap::{ArgAction, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

/// Verbs of ports.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a port, so that the agent of the node is found by its MAC address.
    Create {
        /// MAC address.
        #[arg(value_parser = mac)]
        mac: String,
        /// Node it belongs to: name or UUID.
        #[arg(long)]
        node: String,
        /// Name.
        #[arg(long)]
        name: Option<String>,
        /// Whether the node boots by it.
        #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
        pxe_enabled: Option<bool>,
        /// Free data.
        #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
        extra: Vec<Pair>,
    },
    /// The ports of one node or of all.
    List {
        /// Only those of this node: name or UUID.
        #[arg(long)]
        node: Option<String>,
    },
    /// One port.
    Show {
        /// UUID or MAC address.
        port: String,
    },
    /// Remove a port.
    Delete {
        /// UUID or MAC address.
        port: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create { mac, node, name, pxe_enabled, extra } => {
            let node = client.get(&["nodes", &node], &[("fields", "uuid".to_owned())]).await?;
            let mut body = json!({"address": mac, "node_uuid": node["uuid"]});
            if let Some(name) = name {
                body["name"] = name.into();
            }
            if let Some(enabled) = pxe_enabled {
                body["pxe_enabled"] = enabled.into();
            }
            if !extra.is_empty() {
                body["extra"] = object("--extra", &extra)?.into();
            }
            let made = client.send(Method::POST, &["ports"], &[], Some(body)).await?.body;
            show(format, &made, detail)
        }
        Command::List { node } => {
            let mut query = vec![("fields", "uuid,address,node_uuid,pxe_enabled".to_owned())];
            query.extend(node.map(|node| ("node", node)));
            let ports = client.get_all(&["ports"], &query, "ports").await?;
            show(format, &Value::Array(ports), listing)
        }
        Command::Show { port } => {
            let port = client.get(&["ports", &uuid_of(client, &port).await?], &[]).await?;
            show(format, &port, detail)
        }
        Command::Delete { port } => {
            let uuid = uuid_of(client, &port).await?;
            client.send(Method::DELETE, &["ports", &uuid], &[], None).await?;
            show(format, &json!({"deleted": uuid}), |_| format!("deleted port {port}"))
        }
    }
}

/// The UUID of a port named by MAC address or by UUID.
async fn uuid_of(client: &Client, port: &str) -> Result<String, Failure> {
    let Ok(address) = mac(port) else { return Ok(port.to_owned()) };
    let query = [("address", address), ("fields", "uuid".to_owned())];
    let found = client.get_all(&["ports"], &query, "ports").await?;
    match found.first().and_then(|port| port["uuid"].as_str()) {
        Some(uuid) => Ok(uuid.to_owned()),
        None => {
            Err(Failure::Refused { status: 404, message: format!("No port has the MAC address {port}.") })
        }
    }
}

fn listing(ports: &Value) -> String {
    let row =
        |port: &Value| ["uuid", "address", "node_uuid", "pxe_enabled"].map(|key| cell(&port[key])).to_vec();
    let rows: Vec<_> = ports.as_array().into_iter().flatten().map(row).collect();
    table(&["UUID", "ADDRESS", "NODE", "PXE"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_in_a_table() {
        let ports =
            json!([{"uuid": "p", "address": "52:54:00:aa:bb:01", "node_uuid": "n", "pxe_enabled": true}]);
        assert_eq!(
            listing(&ports),
            "UUID  ADDRESS            NODE  PXE\np     52:54:00:aa:bb:01  n     true\n"
        );
        assert_eq!(detail(&json!({"uuid": "p", "links": [], "extra": {}})), "extra  {}\nuuid   p\n");
    }
}
