//! `anneal node …`

mod create;
mod deployment;
mod disks;
mod edit;
mod facts;
mod fields;
mod instance_info;
mod inventory;
mod list;
mod maintenance;
mod plan;
mod power;
mod progress;
mod records;
mod request;
mod steps;
mod traits;
mod verb;
pub mod watch;
mod why;

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, show};
use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

/// Verbs of nodes.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Enrol a node, with its ports.
    Create(Box<create::Options>),
    /// The nodes, all or filtered.
    List(list::Filters),
    /// One node.
    Show {
        /// Name or UUID.
        node: String,
        /// Only these fields, separated by commas.
        #[arg(long, value_delimiter = ',')]
        fields: Vec<String>,
    },
    /// Change fields.
    Set(Box<edit::Set>),
    /// Remove fields.
    Unset(Box<edit::Unset>),
    /// Forget a node, with its ports. To take it out of use, `undeploy`.
    Delete {
        /// Name or UUID.
        node: String,
    },
    #[command(flatten)]
    Verb(Box<verb::Verb>),
    /// Switch power.
    #[command(subcommand)]
    Power(power::Power),
    /// The steps a node offers, also while it is off.
    Steps(steps::Options),
    /// What hardware was found when the node was inspected last.
    Inventory {
        /// Name or UUID.
        node: String,
    },
    /// The traits of a node, by which schedulers and deploy templates know it.
    #[command(subcommand)]
    Trait(traits::Traits),
    /// Whether the drivers have what they need.
    Validate {
        /// Name or UUID.
        node: String,
    },
    /// Why a node stands where it does: what it waits for, what was tried, what happens next, which command helps.
    Why {
        /// Name or UUID.
        node: String,
    },
    /// What happened to a node.
    History {
        /// Name or UUID.
        node: String,
    },
    /// Take a node out of service, and back.
    #[command(subcommand)]
    Maintenance(maintenance::Maintenance),
    /// Follow nodes live: states, steps, progress of each disk.
    Watch(watch::Options),
    /// What an erase would do to each disk of a node whose agent runs; nothing is written.
    Plan(plan::Options),
    /// The disks that the next erase of a node must report.
    #[command(subcommand)]
    Disks(disks::Disks),
    /// The erase records of each disk of the last run.
    Records {
        /// Name or UUID.
        node: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::Create(options) => create::run(client, format, &options).await,
        Command::List(filters) => list::run(client, format, &filters).await,
        Command::Show { node, fields } => list::run_show(client, format, &node, &fields).await,
        Command::Set(set) => edit::run(client, format, &set.node, set.patch()?, set.raid()?).await,
        Command::Unset(unset) => edit::run(client, format, &unset.node, unset.patch(), unset.raid()).await,
        Command::Delete { node } => {
            client.send(Method::DELETE, &["nodes", &node], &[], None).await?;
            show(format, &json!({"deleted": node}), |_| format!("deleted node {node}"))
        }
        Command::Verb(verb) => verb::run(client, format, *verb).await,
        Command::Power(power) => power::run(client, format, power).await,
        Command::Steps(options) => steps::run(client, format, &options).await,
        Command::Inventory { node } => {
            let found = client.get(&["nodes", &node, "inventory"], &[]).await?;
            show(format, &found, inventory::tables)
        }
        Command::Trait(traits) => traits::run(client, format, traits).await,
        Command::Validate { node } => {
            let answer = client.get(&["nodes", &node, "validate"], &[]).await?;
            show(format, &answer, facts::validation)
        }
        Command::Why { node } => {
            let answer = client.get(&["anneal", "nodes", &node, "why"], &[]).await?;
            show(format, &answer, why::text)
        }
        Command::History { node } => {
            let events = client.get_all(&["nodes", &node, "history"], &[], "history").await?;
            show(format, &events.into(), facts::history)
        }
        Command::Maintenance(maintenance) => maintenance::run(client, format, maintenance).await,
        Command::Watch(options) => watch::run(client, format, &options).await,
        Command::Plan(options) => plan::run(client, format, &options).await,
        Command::Disks(disks) => disks::run(client, format, disks).await,
        Command::Records { node } => records::run(client, format, &node).await,
    }
}
