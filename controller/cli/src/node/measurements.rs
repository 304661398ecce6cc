//! `anneal node measurements …`: the TPM of a node, and what its boots must measure.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// The TPM of a node, and what its firmware measures.
#[derive(Debug, Subcommand)]
pub enum Measurements {
    /// The recorded TPM, what is recorded, and how the last boot differs from it.
    Show {
        /// Name or UUID.
        node: String,
    },
    /// Accept what the last boot measured, and show how it differs. From then on each boot must measure that.
    Accept {
        /// Name or UUID.
        node: String,
        /// Only if the changed measurements have this id, as `show` named it.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
    /// Forget the TPM of a node whose board was replaced. The next inspection records the one that it finds.
    Forget {
        /// Name or UUID.
        node: String,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Measurements) -> Result<(), Failure> {
    match command {
        Measurements::Show { node } => show(format, &read(client, &node).await?, view),
        Measurements::Accept { node, id } => {
            let before = read(client, &node).await?;
            let changed = before["changed"]["id"].as_str().map(str::to_owned);
            let id = id.or(changed).ok_or_else(|| {
                Failure::Usage(format!("node {node} has no changed measurements to accept"))
            })?;
            let path = ["anneal", "nodes", &node, "measurements", "accept"];
            client.send(Method::POST, &path, &[], Some(json!({"id": id}))).await?;
            show(format, &before["changed"], |changed| format!("{}accepted: {id}", differences(changed)))
        }
        Measurements::Forget { node } => {
            client.send(Method::DELETE, &["anneal", "nodes", &node, "measurements"], &[], None).await?;
            show(format, &json!({"forgotten": node}), |_| format!("forgotten: the TPM of node {node}"))
        }
    }
}

async fn read(client: &Client, node: &str) -> Result<Value, Failure> {
    client.get(&["anneal", "nodes", node, "measurements"], &[]).await
}

fn view(found: &Value) -> String {
    let (tpm, recorded, changed) = (&found["tpm"], &found["recorded"], &found["changed"]);
    if tpm.is_null() {
        return "no TPM is recorded".to_owned();
    }
    let certificate = if tpm["certificate"].is_null() { "none" } else { "shown by the TPM, not verified" };
    let facts = [
        ("endorsement key", cell(&tpm["endorsement_key"])),
        ("its certificate", certificate.to_owned()),
        ("recorded at", cell(&tpm["enrolled_at"])),
        ("accepted at", cell(&recorded["at"])),
        ("accepted id", cell(&recorded["id"])),
    ];
    let mut rows: Vec<Vec<String>> =
        facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
    for register in list(&recorded["registers"]) {
        let name = format!("PCR {}, {}", cell(&register["pcr"]), cell(&register["what"]));
        rows.push(vec![name, cell(&register["digest"])]);
    }
    for program in list(&recorded["programs"]) {
        rows.push(vec!["other program".to_owned(), cell(program)]);
    }
    let text = table(&["FACT", "VALUE"], &rows);
    match changed.is_null() {
        true => text,
        false => format!(
            "{text}\nThe boot at {} differs (id {}):\n{}",
            cell(&changed["at"]),
            cell(&changed["id"]),
            differences(changed)
        ),
    }
}

/// One line for each register, and for each event that is gone or new.
fn differences(changed: &Value) -> String {
    let mut text = String::new();
    for difference in list(&changed["differences"]) {
        let [pcr, what, before, now] = ["pcr", "what", "recorded", "now"].map(|key| cell(&difference[key]));
        text.push_str(&format!("PCR {pcr}, {what}: {now}, recorded {before}\n"));
        for (sign, key) in [("-", "gone"), ("+", "new")] {
            for event in list(&difference[key]) {
                text.push_str(&format!("  {sign} {} {}\n", cell(&event["name"]), cell(&event["digest"])));
            }
        }
    }
    for program in list(&changed["new_programs"]) {
        text.push_str(&format!("  + the firmware starts a program {}\n", cell(program)));
    }
    text
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_shown_with_its_events() {
        let changed = json!({"id": "ii", "at": "t2", "new_programs": ["ee"], "differences": [{
            "pcr": 7, "what": "Secure Boot", "recorded": "aa", "now": "bb",
            "gone": [{"name": "EV_SEPARATOR", "digest": "cc"}], "new": [{"name": "db", "digest": "dd"}]}]});
        let found = json!({
            "tpm": {"endorsement_key": "000b11", "public": "AA", "certificate": null, "enrolled_at": "t1"},
            "recorded": {"id": "jj", "at": "t1", "programs": [],
                "registers": [{"pcr": 7, "what": "Secure Boot", "digest": "aa", "events": []}]},
            "changed": changed});
        assert_eq!(
            view(&found),
            "FACT                VALUE\n\
             endorsement key     000b11\n\
             its certificate     none\n\
             recorded at         t1\n\
             accepted at         t1\n\
             accepted id         jj\n\
             PCR 7, Secure Boot  aa\n\
             \n\
             The boot at t2 differs (id ii):\n\
             PCR 7, Secure Boot: bb, recorded aa\n  - EV_SEPARATOR cc\n  + db dd\n  \
             + the firmware starts a program ee\n"
        );
        assert_eq!(view(&json!({"tpm": null, "recorded": null, "changed": null})), "no TPM is recorded");
    }
}
