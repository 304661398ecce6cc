//! `anneal node create`

use super::list::detail;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, show};
use crate::values::{Pair, driver_info, mac, object, pair};
use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// A node as it is enrolled.
#[derive(Debug, Args)]
pub struct Options {
    /// Driver: redfish, ipmi, fake-hardware.
    #[arg(long)]
    driver: String,
    /// Name, unique.
    #[arg(long)]
    name: Option<String>,
    /// UUID; made up when not given.
    #[arg(long)]
    uuid: Option<String>,
    /// How to reach the BMC. `KEY=@FILE` reads the value from a file, `KEY=-` asks for it.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    driver_info: Vec<Pair>,
    /// What hardware it is.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    property: Vec<Pair>,
    /// Free data.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    extra: Vec<Pair>,
    /// Which implementation of an interface the node uses, for example deploy=direct; the driver's default when not
    /// given.
    #[arg(long, value_name = "INTERFACE=NAME", value_parser = pair)]
    interface: Vec<Pair>,
    /// MAC address of a port to make with the node; may be repeated.
    #[arg(long, value_parser = mac)]
    mac: Vec<String>,
    /// Scheduling class.
    #[arg(long)]
    resource_class: Option<String>,
    /// Erase the node before it becomes available; the controller's setting when not given.
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    automated_clean: Option<bool>,
    /// What it is for.
    #[arg(long)]
    description: Option<String>,
    /// The project whose node it is: its users see it.
    #[arg(long, value_name = "PROJECT")]
    owner: Option<String>,
    /// The project that has it for now: its users see most of it.
    #[arg(long, value_name = "PROJECT")]
    lessee: Option<String>,
}

impl Options {
    fn body(&self) -> Result<Value, Failure> {
        let mut body = Map::new();
        body.insert("driver".into(), self.driver.clone().into());
        let texts = [
            ("name", &self.name),
            ("uuid", &self.uuid),
            ("resource_class", &self.resource_class),
            ("description", &self.description),
            ("owner", &self.owner),
            ("lessee", &self.lessee),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                body.insert(key.into(), value.clone().into());
            }
        }
        for Pair { key, value } in &self.interface {
            body.insert(format!("{key}_interface"), value.clone().into());
        }
        if let Some(value) = self.automated_clean {
            body.insert("automated_clean".into(), value.into());
        }
        let objects = [
            ("driver_info", driver_info(&self.driver_info)?),
            ("properties", object("--property", &self.property)?),
            ("extra", object("--extra", &self.extra)?),
        ];
        for (key, map) in objects {
            if !map.is_empty() {
                body.insert(key.into(), map.into());
            }
        }
        Ok(body.into())
    }
}

/// Enrols the node. When a port is refused the node is removed again: nothing is left half made.
pub async fn run(client: &Client, format: Format, options: &Options) -> Result<(), Failure> {
    let node = client.send(Method::POST, &["nodes"], &[], Some(options.body()?)).await?.body;
    for mac in &options.mac {
        let port = json!({"address": mac, "node_uuid": node["uuid"]});
        if let Err(failure) = client.send(Method::POST, &["ports"], &[], Some(port)).await {
            let uuid = node["uuid"].as_str().unwrap_or_default();
            let (status, reason) = match failure {
                Failure::Refused { status, message } => (status, message),
                other => return Err(other),
            };
            let after = match client.send(Method::DELETE, &["nodes", uuid], &[], None).await {
                Ok(_) => "the node was removed again".to_owned(),
                Err(error) => format!("the node {uuid} remains, because removing it failed: {error}"),
            };
            return Err(Failure::Refused { status, message: format!("port {mac}: {reason} ({after})") });
        }
    }
    show(format, &node, detail)
}
