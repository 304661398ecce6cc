//! `anneal`: what an operator types.
//!
//! One file a noun (`node/`, `port`, `deploy_template`, `driver`, `bundle/`, `certificate/`, `webhook`) over the public
//! API: this program knows nothing that another client of that API could not know. What a command prints is made by pure
//! functions; [`client`] alone speaks HTTP, [`wait`] and [`node::watch`] alone let time pass.

mod bundle;
mod certificate;
mod client;
mod completion;
mod config_drive;
mod connect;
mod credentials;
mod deploy_template;
mod driver;
mod env;
mod failure;
mod first_boot;
mod manual;
mod node;
mod operator_token;
mod output;
mod port;
mod tls;
mod values;
mod view;
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
    Port(port::Command),
    /// Deploy steps that the traits of an instance bring in.
    #[command(subcommand)]
    DeployTemplate(deploy_template::Command),
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
        Noun::DeployTemplate(command) => deploy_template::run(&client, output, command).await,
        Noun::Port(command) => port::run(&client, output, command).await,
        Noun::Driver(command) => driver::run(&client, output, command).await,
        Noun::Bundle(command) => bundle::run(&client, output, command).await,
        Noun::Certificate(command) => certificate::run(&client, output, command).await,
        Noun::Webhook(command) => webhook::run(&client, output, command).await,
        Noun::Env => env::run(&cli.connection.over_tcp()?).await,
        Noun::Completion { .. } | Noun::Manual { .. } => Ok(()),
    }
}
