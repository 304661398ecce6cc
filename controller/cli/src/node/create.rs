//! `anneal node create`

use super::fields::Fields;
use super::list::detail;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, show};
use crate::values::mac;
use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// A node as it is enrolled.
#[derive(Debug, Args)]
pub struct Options {
    /// Driver: redfish, ipmi, fake-hardware.
    #[arg(long)]
    driver: String,
    /// UUID; made up when not given.
    #[arg(long)]
    uuid: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// MAC address of a port to make with the node; may be repeated.
    #[arg(long, value_parser = mac)]
    mac: Vec<String>,
}

impl Options {
    fn body(&self) -> Result<Value, Failure> {
        let mut body = Map::from_iter(self.fields.given()?);
        body.insert("driver".into(), self.driver.clone().into());
        body.extend(self.fields.network_data()?.map(|data| ("network_data".into(), data)));
        body.extend(self.uuid.clone().map(|uuid| ("uuid".into(), uuid.into())));
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
