//! `anneal driver …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::Subcommand;
use serde_json::Value;

/// Verbs of drivers.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The drivers the controller has.
    List,
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => {
            let drivers = client.get_all(&["drivers"], &[], "drivers").await?;
            show(format, &Value::Array(drivers), listing)
        }
    }
}

fn listing(drivers: &Value) -> String {
    let rows: Vec<_> = drivers
        .as_array()
        .into_iter()
        .flatten()
        .map(|driver| {
            let hosts: Vec<_> = driver["hosts"].as_array().into_iter().flatten().map(cell).collect();
            vec![cell(&driver["name"]), hosts.join(", ")]
        })
        .collect();
    table(&["NAME", "CONTROLLERS"], &rows)
}

#[cfg(test)]
mod tests {
    #[test]
    fn drivers_in_a_table() {
        let drivers = serde_json::json!([{"name": "redfish", "hosts": ["c1", "c2"]}]);
        assert_eq!(super::listing(&drivers), "NAME     CONTROLLERS\nredfish  c1, c2\n");
    }
}
