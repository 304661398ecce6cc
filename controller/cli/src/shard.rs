//! `anneal shard …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::Subcommand;
use serde_json::Value;

/// Verbs of shards.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The shards, with how many nodes each has: `anneal node set NODE --shard NAME`.
    List,
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    let Command::List = command;
    let shards = client.get_all(&["shards"], &[], "shards").await?;
    show(format, &shards.into(), listing)
}

fn listing(shards: &Value) -> String {
    // Nodes without one are counted under no name.
    let row = |shard: &Value| vec![cell(&shard["name"]), cell(&shard["count"])];
    let rows: Vec<_> = shards.as_array().into_iter().flatten().map(row).collect();
    table(&["NAME", "NODES"], &rows)
}

#[cfg(test)]
mod tests {
    #[test]
    fn shards_in_a_table() {
        let shards = serde_json::json!([{"name": "s1", "count": 2}, {"name": null, "count": 1}]);
        assert_eq!(super::listing(&shards), "NAME  NODES\ns1    2\n-     1\n");
    }
}
