//! `anneal volume connector …` and `anneal volume target …`

use crate::client::Client;
use crate::collection::{self, Collection, EXTRA, Kind, Resource, column, field};
use crate::failure::Failure;
use crate::output::Format;
use clap::Subcommand;

/// Volume connectors.
#[derive(Debug)]
pub struct Connector;

/// Volume targets.
#[derive(Debug)]
pub struct Target;

/// Both kinds.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What a node reaches volumes by.
    #[command(subcommand)]
    Connector(collection::Command<Connector>),
    /// Volumes of a node.
    #[command(subcommand)]
    Target(collection::Command<Target>),
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::Connector(command) => collection::run(client, format, command).await,
        Command::Target(command) => collection::run(client, format, command).await,
    }
}

impl Resource for Connector {
    const COLLECTION: &'static Collection = &Collection {
        path: &["volume", "connectors"],
        list: "connectors",
        one: "volume connector",
        many: "volume connectors of one node or of all",
        ident: ("CONNECTOR", "UUID"),
        has_address: false,
        creates: "Keep a volume connector of a node; nothing is done with it",
        query: Some(("detail", "true")),
        columns: &[
            column("UUID", "uuid"),
            column("NODE", "node_uuid"),
            column("TYPE", "type"),
            column("CONNECTOR", "connector_id"),
        ],
        filters: &[("node", "node", "Only those of this node: name or UUID")],
        fields: &[
            field("node_uuid", "node", Kind::Reference("nodes"), "Node it belongs to").required(),
            field("type", "type", Kind::Text, "Its type: iqn, ip, mac, wwnn, wwpn").required(),
            field("connector_id", "connector-id", Kind::Text, "The name, address or number of that type")
                .required(),
            EXTRA,
        ],
    };
}

impl Resource for Target {
    const COLLECTION: &'static Collection = &Collection {
        path: &["volume", "targets"],
        list: "targets",
        one: "volume target",
        many: "volume targets of one node or of all",
        ident: ("TARGET", "UUID"),
        has_address: false,
        creates: "Keep a volume of a node; nothing is done with it",
        query: Some(("detail", "true")),
        columns: &[
            column("UUID", "uuid"),
            column("NODE", "node_uuid"),
            column("TYPE", "volume_type"),
            column("BOOT INDEX", "boot_index"),
            column("VOLUME", "volume_id"),
        ],
        filters: &[("node", "node", "Only those of this node: name or UUID")],
        fields: &[
            field("node_uuid", "node", Kind::Reference("nodes"), "Node it belongs to").required(),
            field("volume_type", "type", Kind::Text, "Its type: iscsi, fibre_channel").required(),
            field("boot_index", "boot-index", Kind::Integer, "0 for the volume to boot from").required(),
            field("volume_id", "volume-id", Kind::Text, "Id of the volume").required(),
            field(
                "properties",
                "property",
                Kind::SecretObject,
                "How it is reached; may be repeated. `KEY=@FILE` reads the value from a file, `KEY=-` asks for it",
            ),
            EXTRA,
        ],
    };
}
