//! `anneal bundle …`: hardware managers of vendors: packed offline, and uploaded to a controller.

mod offline;
mod remote;

use crate::client::Client;
use crate::failure::Failure;
use crate::output::Format;
use clap::Subcommand;
use std::path::PathBuf;

/// Verbs of bundles. The first three need no controller.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a key that signs bundles: the private one in FILE (mode 0600), the public one in FILE.pub.
    Keygen {
        /// File of the private key; must not be there yet.
        file: PathBuf,
    },
    /// Pack a directory with a manifest into one file. The same inputs give the same bytes.
    Build {
        /// Directory that becomes the root file system of the manager.
        root: PathBuf,
        /// Manifest, JSON (docs/bundles.md).
        manifest: PathBuf,
        /// File to write.
        bundle: PathBuf,
        /// Private key to sign with; without it the bundle is not signed.
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
    },
    /// Verify a file as a controller does, and show what is in it.
    Verify {
        /// The file.
        bundle: PathBuf,
        /// Public keys, one a line; without them any bundle is taken whose form and digests are sound.
        #[arg(long, value_name = "FILE")]
        trust: Vec<PathBuf>,
    },
    /// Give a bundle to the controller. Of one name in one scope there is one: another takes its place.
    Add {
        /// The file.
        bundle: PathBuf,
        #[command(flatten)]
        scope: Scope,
    },
    /// Bundles the controller has.
    List {
        /// Those that this node (name or UUID) will have at its next boot.
        #[arg(long)]
        node: Option<String>,
    },
    /// One bundle, with its manifest.
    Show {
        /// Its digest, or the beginning of it.
        digest: String,
    },
    /// Take a bundle away, from one scope or from all.
    Remove {
        /// Its digest, or the beginning of it.
        digest: String,
        #[command(flatten)]
        scope: Scope,
    },
}

/// For whom.
#[derive(Debug, clap::Args)]
pub struct Scope {
    /// Nodes it is meant for: all, driver:NAME, resource_class:NAME or node:NODE.
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::Keygen { file } => offline::keygen(format, &file),
        Command::Build { root, manifest, bundle, key } => {
            offline::build(format, &root, &manifest, &bundle, key.as_deref())
        }
        Command::Verify { bundle, trust } => offline::verify(format, &bundle, &trust),
        Command::Add { bundle, scope } => remote::add(client, format, &bundle, scope.scope).await,
        Command::List { node } => remote::list(client, format, node).await,
        Command::Show { digest } => remote::show_one(client, format, &digest).await,
        Command::Remove { digest, scope } => remote::remove(client, format, &digest, scope.scope).await,
    }
}
