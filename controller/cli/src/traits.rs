//! `anneal node trait …` and `anneal runbook trait …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

/// What to do with the traits.
#[derive(Debug, Subcommand)]
pub enum Traits {
    /// Show them.
    List {
        /// Name or UUID.
        #[arg(value_name = "NODE|RUNBOOK")]
        ident: String,
    },
    /// Add some.
    Add(Named),
    /// Remove some, or all.
    Remove {
        /// Name or UUID.
        #[arg(value_name = "NODE|RUNBOOK")]
        ident: String,
        /// Which.
        #[arg(value_name = "TRAIT", required_unless_present = "all", conflicts_with = "all")]
        traits: Vec<String>,
        /// All of them.
        #[arg(long)]
        all: bool,
    },
    /// These and no others.
    Set(Named),
}

/// A node or runbook, and traits.
#[derive(Debug, Args)]
pub struct Named {
    /// Name or UUID.
    #[arg(value_name = "NODE|RUNBOOK")]
    ident: String,
    /// Standard traits, or `CUSTOM_…` in capitals.
    #[arg(value_name = "TRAIT", required = true)]
    traits: Vec<String>,
}

/// Does it, and shows what one of the collection, `nodes` or `runbooks`, has then.
pub async fn run(client: &Client, format: Format, of: &str, command: Traits) -> Result<(), Failure> {
    let ident = match command {
        Traits::List { ident } => ident,
        Traits::Add(Named { ident, traits }) => {
            for one in &traits {
                client.send(Method::PUT, &[of, &ident, "traits", one], &[], None).await?;
            }
            ident
        }
        Traits::Remove { ident, all: true, .. } => {
            client.send(Method::DELETE, &[of, &ident, "traits"], &[], None).await?;
            ident
        }
        Traits::Remove { ident, traits, all: false } => {
            for one in &traits {
                client.send(Method::DELETE, &[of, &ident, "traits", one], &[], None).await?;
            }
            ident
        }
        Traits::Set(Named { ident, traits }) => {
            let body = json!({"traits": traits});
            client.send(Method::PUT, &[of, &ident, "traits"], &[], Some(body)).await?;
            ident
        }
    };
    let traits = client.get(&[of, &ident, "traits"], &[]).await?;
    show(format, &traits, listing)
}

fn listing(body: &Value) -> String {
    let lines: Vec<_> = body["traits"].as_array().into_iter().flatten().map(cell).collect();
    if lines.is_empty() { "no traits".to_owned() } else { lines.join("\n") }
}
