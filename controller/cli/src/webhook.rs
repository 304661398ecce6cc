//! `anneal webhook …`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// Verbs of webhooks, which the configuration of the controllers names.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// How far each webhook got the events.
    List,
    /// Events that a webhook was not given: it did not take them often enough.
    #[command(subcommand)]
    Dead(Dead),
}

/// Verbs of dead letters.
#[derive(Debug, Subcommand)]
pub enum Dead {
    /// The oldest 1,000 of a webhook.
    List {
        /// Name of the webhook.
        webhook: String,
    },
    /// Have the controller try them again.
    Retry {
        /// Name of the webhook.
        webhook: String,
        /// Only this one.
        #[arg(long, value_name = "NUMBER")]
        place: Option<u64>,
    },
    /// Forget one.
    Delete {
        /// Name of the webhook.
        webhook: String,
        /// Its number.
        place: u64,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::List => {
            let found = client.get(&["anneal", "webhooks"], &[]).await?;
            show(format, &found["webhooks"], listing)
        }
        Command::Dead(Dead::List { webhook }) => {
            let found = client.get(&["anneal", "webhooks", &webhook, "dead_letters"], &[]).await?;
            show(format, &found["dead_letters"], letters)
        }
        Command::Dead(Dead::Retry { webhook, place }) => {
            let path = ["anneal", "webhooks", &webhook, "dead_letters", "retry"];
            let body = place.map_or_else(|| json!({}), |place| json!({"place": place}));
            let done = client.send(Method::POST, &path, &[], Some(body)).await?.body;
            show(format, &done, |done| {
                format!("dead letters that are tried again: {}", cell(&done["retried"]))
            })
        }
        Command::Dead(Dead::Delete { webhook, place }) => {
            let number = place.to_string();
            let path = ["anneal", "webhooks", &webhook, "dead_letters", &number];
            client.send(Method::DELETE, &path, &[], None).await?;
            show(format, &json!({"deleted": place}), |_| format!("deleted dead letter {place} of {webhook}"))
        }
    }
}

fn listing(webhooks: &Value) -> String {
    let row = |webhook: &Value| {
        let columns = ["name", "after", "conductor", "tries", "next_try_at", "last_error"];
        columns.map(|column| cell(&webhook[column])).to_vec()
    };
    let rows: Vec<_> = webhooks.as_array().into_iter().flatten().map(row).collect();
    table(&["NAME", "AFTER", "CONDUCTOR", "TRIES", "NEXT TRY", "LAST ERROR"], &rows)
}

fn letters(letters: &Value) -> String {
    let row = |letter: &Value| {
        let event = &letter["event"];
        let node = if event["node_name"].is_null() { &event["node_uuid"] } else { &event["node_name"] };
        let again = if letter["retry"] == true { "yes" } else { "no" };
        vec![
            cell(&letter["place"]),
            cell(&event["at"]),
            cell(node),
            cell(&event["text"]),
            cell(&letter["error"]),
            again.to_owned(),
        ]
    };
    let rows: Vec<_> = letters.as_array().into_iter().flatten().map(row).collect();
    table(&["NUMBER", "AT", "NODE", "EVENT", "ERROR", "TRIED AGAIN"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_and_dead_letters_in_tables() {
        let webhooks = json!([{"name": "cmdb", "after": "1f4-9a3b22c1", "conductor": "c1", "tries": 2,
            "next_try_at": null, "last_error": "it answered with status 500"}]);
        assert_eq!(
            listing(&webhooks),
            "NAME  AFTER         CONDUCTOR  TRIES  NEXT TRY  LAST ERROR\n\
             cmdb  1f4-9a3b22c1  c1         2      -         it answered with status 500\n"
        );
        let dead = json!([{"place": 7, "event": {"at": "t", "node_name": null, "node_uuid": "u", "text": "e"},
            "error": "late", "retry": true}]);
        assert_eq!(
            letters(&dead),
            "NUMBER  AT  NODE  EVENT  ERROR  TRIED AGAIN\n7       t   u     e      late   yes\n"
        );
    }
}
