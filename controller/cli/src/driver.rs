//! `anneal driver …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, detail, show, table};
use clap::Subcommand;
use serde_json::Value;

/// Verbs of drivers.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The drivers the controller has.
    List,
    /// One driver, with the implementations of each interface.
    Show {
        /// Its name.
        driver: String,
    },
    /// What `driver_info` of its nodes may hold.
    Properties {
        /// Its name.
        driver: String,
    },
    /// What a logical disk of `target_raid_config` may hold.
    RaidProperties {
        /// Its name.
        driver: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => {
            let drivers = client.get_all(&["drivers"], &[], "drivers").await?;
            show(format, &Value::Array(drivers), listing)
        }
        Command::Show { driver } => show(format, &client.get(&["drivers", &driver], &[]).await?, described),
        Command::Properties { driver } => {
            show(format, &client.get(&["drivers", &driver, "properties"], &[]).await?, detail)
        }
        Command::RaidProperties { driver } => {
            let path = ["drivers", &driver, "raid", "logical_disk_properties"];
            show(format, &client.get(&path, &[]).await?, detail)
        }
    }
}

/// A driver without the links to its properties.
fn described(driver: &Value) -> String {
    let mut driver = driver.clone();
    if let Some(fields) = driver.as_object_mut() {
        fields.remove("properties");
    }
    detail(&driver)
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
    use serde_json::json;

    #[test]
    fn drivers_in_a_table() {
        let drivers = json!([{"name": "redfish", "hosts": ["c1", "c2"]}]);
        assert_eq!(super::listing(&drivers), "NAME     CONTROLLERS\nredfish  c1, c2\n");
        let driver = json!({"name": "redfish", "links": [], "properties": [{"href": "x"}]});
        assert_eq!(super::described(&driver), "name  redfish\n");
    }
}
