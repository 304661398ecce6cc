//! `anneal node …`

mod batch;
mod console;
mod create;
mod deployment;
mod disks;
mod edit;
mod facts;
mod fields;
mod firmware;
mod instance_info;
mod inventory;
mod list;
mod maintenance;
mod management;
mod measurements;
mod plan;
mod power;
mod progress;
mod records;
mod request;
mod selection;
mod steps;
mod verb;
mod virtual_media;
pub mod watch;
mod why;

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, detail, show};
use crate::rights;
use crate::traits::{self, Traits};
use batch::Act;
use clap::Subcommand;
use reqwest::Method;
use selection::Nodes;
use serde_json::{Value, json};

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
    /// Forget nodes, with their ports. To take one out of use, `undeploy`.
    Delete(selection::Nodes),
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
    Trait(Traits),
    /// Whether the drivers have what they need.
    Validate {
        /// Name or UUID.
        node: String,
    },
    /// What you may say to a node now, what it costs, and why not the rest.
    Rights {
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
        /// One event, with all that is known of it: its UUID.
        #[arg(long, value_name = "UUID")]
        event: Option<String>,
    },
    /// The nodes that are a part of a node.
    Children {
        /// Name or UUID.
        node: String,
    },
    /// The device that a node starts from.
    #[command(subcommand)]
    BootDevice(management::BootDevice),
    /// Start by BIOS or UEFI, from the next start on.
    BootMode(firmware::BootMode),
    /// Switch secure boot, from the next start on.
    SecureBoot(firmware::SecureBoot),
    /// The BIOS settings of a node, as its BMC has them now.
    Bios {
        /// Name or UUID.
        node: String,
        /// Only this setting.
        setting: Option<String>,
    },
    /// Versions of a node's firmware, as the last inspection found them.
    Firmware {
        /// Name or UUID.
        node: String,
    },
    /// Lamps of a node.
    #[command(subcommand)]
    Indicator(management::Indicator),
    /// Interrupt what runs on a node by a non-maskable interrupt.
    InjectNmi {
        /// Name or UUID.
        node: String,
    },
    /// Virtual drives of a node's BMC.
    #[command(subcommand)]
    VirtualMedia(virtual_media::VirtualMedia),
    /// The console of a node.
    #[command(subcommand)]
    Console(console::Console),
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
    /// The TPM of a node, and what its boots must measure.
    #[command(subcommand)]
    Measurements(measurements::Measurements),
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
        Command::Set(set) => edit::run(client, format, &set.nodes, set.patch()?, set.raid()?).await,
        Command::Unset(unset) => edit::run(client, format, &unset.nodes, unset.patch(), unset.raid()).await,
        Command::Delete(nodes) => delete(client, format, &nodes).await,
        Command::Verb(verb) => verb::run(client, format, *verb).await,
        Command::Power(power) => power::run(client, format, power).await,
        Command::Steps(options) => steps::run(client, format, &options).await,
        Command::Inventory { node } => {
            let found = client.get(&["nodes", &node, "inventory"], &[]).await?;
            show(format, &found, inventory::tables)
        }
        Command::Trait(traits) => traits::run(client, format, "nodes", traits).await,
        Command::Validate { node } => {
            let answer = client.get(&["nodes", &node, "validate"], &[]).await?;
            show(format, &answer, facts::validation)
        }
        Command::Rights { node } => rights::of_node(client, format, &node).await,
        Command::Why { node } => {
            let answer = client.get(&["anneal", "nodes", &node, "why"], &[]).await?;
            show(format, &answer, why::text)
        }
        Command::History { node, event: Some(event) } => {
            show(format, &client.get(&["nodes", &node, "history", &event], &[]).await?, detail)
        }
        Command::History { node, event: None } => {
            let events = client.get_all(&["nodes", &node, "history"], &[], "history").await?;
            show(format, &events.into(), facts::history)
        }
        Command::Children { node } => {
            show(format, &client.get(&["nodes", &node, "children"], &[]).await?, facts::children)
        }
        Command::BootDevice(command) => management::run_boot_device(client, format, command).await,
        Command::BootMode(command) => firmware::set_boot_mode(client, format, command).await,
        Command::SecureBoot(command) => firmware::set_secure_boot(client, format, command).await,
        Command::Bios { node, setting } => firmware::bios(client, format, &node, setting.as_deref()).await,
        Command::Firmware { node } => firmware::versions(client, format, &node).await,
        Command::Indicator(command) => management::run_indicator(client, format, command).await,
        Command::InjectNmi { node } => {
            let path = ["nodes", &node, "management", "inject_nmi"];
            client.send(Method::PUT, &path, &[], Some(json!({}))).await?;
            show(format, &json!({"interrupted": node}), |_| format!("{node}: interrupted"))
        }
        Command::VirtualMedia(command) => virtual_media::run(client, format, command).await,
        Command::Console(command) => console::run(client, format, command).await,
        Command::Maintenance(maintenance) => maintenance::run(client, format, maintenance).await,
        Command::Watch(options) => watch::run(client, format, &options).await,
        Command::Plan(options) => plan::run(client, format, &options).await,
        Command::Disks(disks) => disks::run(client, format, disks).await,
        Command::Measurements(command) => measurements::run(client, format, command).await,
        Command::Records { node } => records::run(client, format, &node).await,
    }
}

/// Forgets nodes.
async fn delete(client: &Client, format: Format, nodes: &Nodes) -> Result<(), Failure> {
    let act = Act { risk: Some("they are forgotten, with their ports and history"), success: "done" };
    let one = async |node: &str| {
        client.send(Method::DELETE, &["nodes", node], &[], None).await?;
        Ok(json!({"deleted": node}))
    };
    let view = |deleted: &Value| format!("deleted node {}", cell(&deleted["deleted"]));
    batch::each(client, format, nodes, &act, view, one).await
}
