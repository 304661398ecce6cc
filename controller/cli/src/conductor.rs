//! `anneal conductor …`: the controllers that share a store.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, detail, show, table};
use clap::Subcommand;
use serde_json::Value;

/// Verbs of conductors.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The controllers that share the store, and whether each is alive.
    List,
    /// One of them.
    Show {
        /// Its host name.
        hostname: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => {
            let query = [("detail", "true".to_owned())];
            let conductors = client.get_all(&["conductors"], &query, "conductors").await?;
            show(format, &conductors.into(), listing)
        }
        Command::Show { hostname } => {
            let conductor = client.get(&["conductors", &hostname], &[]).await?;
            show(format, &conductor, detail)
        }
    }
}

fn listing(conductors: &Value) -> String {
    let row = |one: &Value| {
        let drivers: Vec<_> = one["drivers"].as_array().into_iter().flatten().map(cell).collect();
        let mut row =
            ["hostname", "conductor_group", "alive", "updated_at"].map(|key| cell(&one[key])).to_vec();
        row.push(drivers.join(", "));
        row
    };
    let rows: Vec<_> = conductors.as_array().into_iter().flatten().map(row).collect();
    table(&["HOST", "GROUP", "ALIVE", "REPORTED", "DRIVERS"], &rows)
}

#[cfg(test)]
mod tests {
    #[test]
    fn conductors_in_a_table() {
        let conductors = serde_json::json!([{"hostname": "c1", "conductor_group": "", "alive": true, "updated_at": "t",
            "drivers": ["ipmi", "redfish"]}]);
        assert_eq!(
            super::listing(&conductors),
            "HOST  GROUP  ALIVE  REPORTED  DRIVERS\nc1           true   t         ipmi, redfish\n"
        );
    }
}
