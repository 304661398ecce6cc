//! `anneal certificate …`: what was erased and deployed, signed by the controller, verified with its public key alone.

mod chains;
mod deployment;
mod keys;
mod log;
mod offline;
mod page;

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use certificate::Wanted;
use clap::Subcommand;
use serde_json::Value;
use std::path::PathBuf;

/// Verbs of certificates of erases and deployments. `verify` needs no controller.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Certificates of a node, oldest first.
    List {
        /// Name or UUID; a node that is gone has its UUID.
        node: String,
    },
    /// One certificate, verified with the key that the controller returns.
    Show {
        /// Its id: 64 hexadecimal digits.
        id: String,
    },
    /// Verify a file, or the chains of a directory of files, with a public key, offline.
    Verify {
        /// The file.
        #[arg(required_unless_present = "chain", conflicts_with = "chain")]
        file: Option<PathBuf>,
        /// The controller's public key, or a file with it: what `anneal --json certificate key` prints, or the key alone.
        #[arg(long, value_name = "KEY")]
        key: String,
        /// Believe the keys before and after it, too, by the changes in this file: what `anneal --json certificate key`
        /// prints.
        #[arg(long, value_name = "FILE")]
        key_changes: Option<PathBuf>,
        /// Verify the chains of all certificates in this directory.
        #[arg(long, value_name = "DIR", requires = "head", conflicts_with_all = ["serial", "image", "previous"])]
        chain: Option<PathBuf>,
        /// The log of the heads of all chains, as `anneal certificate log export` wrote it: no chain may end before it says
        /// so, or be another.
        #[arg(long, value_name = "FILE", requires = "chain")]
        head: Option<PathBuf>,
        /// Certificates of time-stamping authorities (PEM) that are trusted: the time-stamps in the log are verified.
        #[arg(long, value_name = "FILE", requires = "head")]
        ca: Option<PathBuf>,
        /// It must be of this node.
        #[arg(long, value_name = "UUID")]
        node: Option<String>,
        /// The disk with this serial number or WWN must be in it, and erased; with --image, the image must be on it.
        #[arg(long)]
        serial: Option<String>,
        /// It must be of the deployment of an image with this digest: of the file, or of the content of the disk.
        #[arg(long, value_name = "DIGEST")]
        image: Option<String>,
        /// It must follow this certificate.
        #[arg(long, value_name = "FILE")]
        previous: Option<PathBuf>,
    },
    /// Write one to a file, once it has been verified with the key that the controller returns.
    Export {
        /// Its id: 64 hexadecimal digits.
        id: String,
        /// File to write; must not be there yet.
        file: PathBuf,
        /// A page to be printed instead of what `verify` takes; it has that in it.
        #[arg(long)]
        html: bool,
    },
    /// The public key that certificates of this controller are verified with, and its id.
    Key,
    /// The log of the heads of all chains.
    #[command(subcommand)]
    Log(log::Command),
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::List { node } => {
            let list = client.get_all(&["anneal", "certificates"], &[("node", node)], "certificates").await?;
            show(format, &list.into(), listing)
        }
        Command::Show { id } => {
            let (_, verified) = fetched(client, &id).await?;
            offline::report(format, &verified)
        }
        Command::Verify { file, key, key_changes, chain, head, ca, node, serial, image, previous } => {
            let keys = keys::trusted(&key, key_changes.as_deref())?;
            match (file, chain.zip(head)) {
                (_, Some((chain, head))) => {
                    let head = log::read(&head)?;
                    let stamps = log::stamps(&head, ca.as_deref())?;
                    chains::report(format, &chains::verify(&chain, &keys, &head, node.as_deref())?, stamps)
                }
                (Some(file), None) => {
                    let wanted = Wanted {
                        node: node.as_deref(),
                        disk: serial.as_deref(),
                        image: image.as_deref(),
                        previous: None,
                    };
                    let verified = offline::verify(&file, &keys, wanted, previous.as_deref())?;
                    offline::report(format, &verified)
                }
                (None, None) => Err(Failure::Usage("a file, or --chain and --head, are needed".to_owned())),
            }
        }
        Command::Log(command) => log::run(client, format, command).await,
        Command::Export { id, file, html } => {
            let (text, verified) = fetched(client, &id).await?;
            let text = if html { page::page(&verified, &text) } else { format!("{text}\n") };
            offline::write(&file, &text)
        }
        Command::Key => {
            let key = client.get(&["anneal", "certificate_key"], &[]).await?;
            show(format, &key, |key| keys::line(&cell(&key["key"])))
        }
    }
}

/// The file of a certificate, and what it says if the controller's key has signed it.
async fn fetched(client: &Client, id: &str) -> Result<(String, certificate::Verified), Failure> {
    let keys = keys::of_controller(client.get(&["anneal", "certificate_key"], &[]).await?)?;
    let text = client.get(&["anneal", "certificates", id], &[]).await?.to_string();
    let verified = offline::judge(&text, &keys, &Wanted::default())?;
    if verified.id != id {
        return Err(Failure::Usage(format!("the controller sent certificate {}, not {id}", verified.id)));
    }
    Ok((text, verified))
}

fn listing(list: &Value) -> String {
    let row = |one: &Value| ["number", "finding", "issued_at", "id"].map(|key| cell(&one[key])).to_vec();
    let rows: Vec<_> = list.as_array().into_iter().flatten().map(row).collect();
    table(&["NUMBER", "FINDING", "ISSUED", "ID"], &rows)
}
