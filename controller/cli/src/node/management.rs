//! `anneal node boot-device …` and `anneal node indicator …`: what the BMC of a node is asked to set.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, detail, show, table};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// What to do with the boot device.
#[derive(Debug, Subcommand)]
pub enum BootDevice {
    /// The one that is set.
    Show {
        /// Name or UUID.
        node: String,
    },
    /// Those that can be set.
    Supported {
        /// Name or UUID.
        node: String,
    },
    /// Set it.
    Set {
        /// Name or UUID.
        node: String,
        /// One of the supported ones: pxe, disk, cdrom, bios …
        device: String,
        /// For all starts, not for the next one alone.
        #[arg(long)]
        persistent: bool,
    },
}

/// What to do with lamps.
#[derive(Debug, Subcommand)]
pub enum Indicator {
    /// The lamps it has, and the states that each can have.
    List {
        /// Name or UUID.
        node: String,
    },
    /// The state of a lamp.
    Show {
        /// Name or UUID.
        node: String,
        /// Which, as `list` names it: LAMP@COMPONENT.
        indicator: String,
    },
    /// Set a lamp.
    Set {
        /// Name or UUID.
        node: String,
        /// Which, as `list` names it: LAMP@COMPONENT.
        indicator: String,
        /// One of its states: on, off, blinking.
        state: String,
    },
}

/// `anneal node boot-device`
pub async fn run_boot_device(client: &Client, format: Format, command: BootDevice) -> Result<(), Failure> {
    let path = |node| vec!["nodes", node, "management", "boot_device"];
    match command {
        BootDevice::Show { node } => show(format, &client.get(&path(&node), &[]).await?, detail),
        BootDevice::Supported { node } => {
            let answer = client.get(&[path(&node), vec!["supported"]].concat(), &[]).await?;
            show(format, &answer, |answer| {
                let devices = answer["supported_boot_devices"].as_array().into_iter().flatten();
                devices.map(cell).collect::<Vec<_>>().join("\n")
            })
        }
        BootDevice::Set { node, device, persistent } => {
            let body = json!({"boot_device": device, "persistent": persistent});
            client.send(Method::PUT, &path(&node), &[], Some(body)).await?;
            show(format, &client.get(&path(&node), &[]).await?, detail)
        }
    }
}

/// `anneal node indicator`
pub async fn run_indicator(client: &Client, format: Format, command: Indicator) -> Result<(), Failure> {
    let path = |node| vec!["nodes", node, "management", "indicators"];
    match command {
        Indicator::List { node } => {
            let lamps = client.get_all(&path(&node), &[], "indicators").await?;
            show(format, &lamps.into(), lamps_in_a_table)
        }
        Indicator::Show { node, indicator } => {
            show(format, &client.get(&[path(&node), vec![&indicator]].concat(), &[]).await?, detail)
        }
        Indicator::Set { node, indicator, state } => {
            let path = [path(&node), vec![&indicator]].concat();
            client.send(Method::PUT, &path, &[], Some(json!({"state": state}))).await?;
            show(format, &client.get(&path, &[]).await?, detail)
        }
    }
}

fn lamps_in_a_table(lamps: &Value) -> String {
    let row = |lamp: &Value| {
        let states: Vec<_> = lamp["states"].as_array().into_iter().flatten().map(cell).collect();
        vec![cell(&lamp["name"]), cell(&lamp["readonly"]), states.join(", ")]
    };
    let rows: Vec<_> = lamps.as_array().into_iter().flatten().map(row).collect();
    table(&["INDICATOR", "READ ONLY", "STATES"], &rows)
}
