//! `anneal`: what an operator types.
//!
//! One file a noun (`node/`, `port`, `driver`, `bundle/`, `certificate/`, `webhook` …) over the public API: this program knows
//! nothing that another client of that API could not know. Nouns that are alike are each a description for [`collection`]. What
//! a command prints is made by pure functions; [`client`] alone speaks HTTP, [`wait`] and [`node::watch`] alone let time pass.

mod allocation;
mod bundle;
mod certificate;
mod chassis;
mod client;
mod collection;
mod completion;
mod conductor;
mod config_drive;
mod connect;
mod credentials;
mod deploy_template;
mod discovery;
mod driver;
mod env;
mod failure;
mod first_boot;
mod inspection_rule;
mod manual;
mod node;
mod operator_token;
mod output;
mod patch;
mod port;
mod port_group;
mod question;
mod rights;
mod runbook;
mod shard;
mod tls;
mod traits;
mod ui;
mod values;
mod view;
mod volume;
mod wait;
mod webhook;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use output::Format;
use std::path::PathBuf;
use std::process::ExitCode;

/// Take bare-metal servers from one workload to the next.
#[derive(Debug, Parser)]
#[command(name = "anneal", version, after_help = failure::EXIT_CODES, infer_long_args = false)]
struct Cli {
    #[command(flatten)]
    connection: connect::Connection,
    /// Form of the output.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// The same as `--output json`.
    #[arg(long, global = true, conflicts_with = "output")]
    json: bool,
    #[command(subcommand)]
    noun: Noun,
}

/// What is spoken about.
#[derive(Debug, Subcommand)]
enum Noun {
    /// Servers.
    #[command(subcommand)]
    Node(node::Command),
    /// Network ports, by which the agents of nodes are found.
    #[command(subcommand)]
    Port(collection::Command<port::Port>),
    /// Groups of ports of one node.
    #[command(subcommand)]
    PortGroup(collection::Command<port_group::PortGroup>),
    /// Groups of nodes.
    #[command(subcommand)]
    Chassis(collection::Command<chassis::Chassis>),
    /// Requests for any node of a class.
    #[command(subcommand)]
    Allocation(collection::Command<allocation::Allocation>),
    /// Steps of cleaning and service under a name.
    #[command(subcommand)]
    Runbook(runbook::Command),
    /// What inspections do with what they find.
    #[command(subcommand)]
    InspectionRule(inspection_rule::Command),
    /// Volumes of nodes, kept for other clients.
    #[command(subcommand)]
    Volume(volume::Command),
    /// The controllers that share a store.
    #[command(subcommand)]
    Conductor(conductor::Command),
    /// Parts of the nodes that clients divide among themselves.
    #[command(subcommand)]
    Shard(shard::Command),
    /// Deploy steps that the traits of an instance bring in.
    #[command(subcommand)]
    DeployTemplate(collection::Command<deploy_template::DeployTemplate>),
    /// Drivers the controller has.
    #[command(subcommand)]
    Driver(driver::Command),
    /// Hardware managers of vendors, each in one file.
    #[command(subcommand)]
    Bundle(bundle::Command),
    /// What was erased: certificates that the controller signed.
    #[command(subcommand)]
    Certificate(certificate::Command),
    /// Where the controller sends events.
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// Machines that no node was known for: they were booted, and wait for an operator.
    #[command(subcommand)]
    Discovery(discovery::Command),
    /// Your user and role at the controller, and what you may do.
    Rights,
    /// Print a link that opens the controller's web page and logs you in, once and within a minute.
    Ui,
    /// Print the environment of OpenStack's clients for this controller: eval "$(anneal env)".
    Env,
    /// Print what makes a shell complete commands and options of this program.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of all commands, for packages.
    #[command(hide = true)]
    Manual {
        /// Where they go; a directory that exists.
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => Err(Failure::Output(error)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("anneal: {}", output::printable(&failure.to_string()));
            ExitCode::from(failure.exit_code())
        }
    }
}

async fn run(cli: Cli) -> Result<(), Failure> {
    // These two speak to no controller.
    match &cli.noun {
        Noun::Completion { shell } => return completion::print(*shell, Cli::command()),
        Noun::Manual { directory } => return manual::write(directory, Cli::command()),
        _ => {}
    }
    // For the TLS configuration that reqwest makes by itself, with the system's CAs.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        return Err(Failure::Usage("a TLS provider is installed already".to_owned()));
    }
    let client = cli.connection.client()?;
    let output = if cli.json { Format::Json } else { cli.output };
    match cli.noun {
        Noun::Node(command) => node::run(&client, output, command).await,
        Noun::Port(command) => collection::run(&client, output, command).await,
        Noun::PortGroup(command) => collection::run(&client, output, command).await,
        Noun::Chassis(command) => collection::run(&client, output, command).await,
        Noun::Allocation(command) => collection::run(&client, output, command).await,
        Noun::DeployTemplate(command) => collection::run(&client, output, command).await,
        Noun::Runbook(command) => runbook::run(&client, output, command).await,
        Noun::InspectionRule(command) => inspection_rule::run(&client, output, command).await,
        Noun::Volume(command) => volume::run(&client, output, command).await,
        Noun::Conductor(command) => conductor::run(&client, output, command).await,
        Noun::Shard(command) => shard::run(&client, output, command).await,
        Noun::Driver(command) => driver::run(&client, output, command).await,
        Noun::Bundle(command) => bundle::run(&client, output, command).await,
        Noun::Certificate(command) => certificate::run(&client, output, command).await,
        Noun::Webhook(command) => webhook::run(&client, output, command).await,
        Noun::Discovery(command) => discovery::run(&client, output, command).await,
        Noun::Rights => rights::own(&client, output).await,
        Noun::Ui => ui::run(&client, output).await,
        Noun::Env => env::run(&cli.connection.over_tcp()?).await,
        Noun::Completion { .. } | Noun::Manual { .. } => Ok(()),
    }
}
