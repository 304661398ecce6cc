//! `anneal node disks …`: which disks the next erase of a node must report.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// The disks of a node.
#[derive(Debug, Subcommand)]
pub enum Disks {
    /// The disks that the next erase must report, and those that were retired since the last certificate.
    List {
        /// Name or UUID.
        node: String,
    },
    /// Accept that a disk has left the node. It is in the node's history and named in its next certificate.
    Retire {
        /// Name or UUID.
        node: String,
        /// Serial number or WWN of the disk.
        serial: String,
        /// Why it has left, and where to.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, disks: Disks) -> Result<(), Failure> {
    let answer = match disks {
        Disks::List { node } => client.get(&["anneal", "nodes", &node, "disks"], &[]).await?,
        Disks::Retire { node, serial, reason } => {
            let body = json!({"disk": serial, "reason": reason});
            let path = ["anneal", "nodes", &node, "disks", "retire"];
            client.send(Method::POST, &path, &[], Some(body)).await?.body
        }
    };
    show(format, &answer, view)
}

fn view(disks: &Value) -> String {
    let of = |list: &str, state: &str| -> Vec<Vec<String>> {
        let row = |disk: &Value| {
            let mut row = ["serial", "wwn", "model"].map(|key| cell(&disk[key])).to_vec();
            row.push(state.to_owned());
            row.push(if disk["reason"].is_null() { String::new() } else { cell(&disk["reason"]) });
            row
        };
        disks[list].as_array().into_iter().flatten().map(row).collect()
    };
    let mut rows = of("known", "known");
    rows.extend(of("retired", "retired"));
    table(&["SERIAL", "WWN", "MODEL", "STATE", "REASON"], &rows)
}
