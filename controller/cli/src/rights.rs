//! `anneal rights`, `anneal node rights`

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, fields, show, table};
use serde_json::Value;

/// The user, and what the user may do to something.
pub async fn own(client: &Client, format: Format) -> Result<(), Failure> {
    show(format, &client.get(&["anneal", "rights"], &[]).await?, caller)
}

/// What the user may say to a node now.
pub async fn of_node(client: &Client, format: Format, node: &str) -> Result<(), Failure> {
    show(format, &client.get(&["anneal", "nodes", node, "rights"], &[]).await?, choices)
}

fn caller(rights: &Value) -> String {
    let row = |name: &str| (name.to_owned(), cell(&rights[name]));
    let policies = rights["policies"].as_array().into_iter().flatten().map(cell).collect::<Vec<_>>();
    format!("{}\n{}\n", fields(&["user", "role", "project"].map(row)), policies.join("\n"))
}

fn choices(rights: &Value) -> String {
    let rows = |list: &str, word: &str| -> Vec<Vec<String>> {
        let row = |choice: &Value| {
            let allowed = if choice["allowed"] == true { "yes" } else { "no" };
            let text = if choice["allowed"] == true { &choice["question"] } else { &choice["why_not"] };
            vec![cell(&choice[word]), allowed.to_owned(), cell(text)]
        };
        rights[list].as_array().into_iter().flatten().map(row).collect()
    };
    let all = [rows("verbs", "verb"), rows("power", "target")].concat();
    table(&["VERB", "ALLOWED", "RISK, OR WHY NOT"], &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn choices_in_a_table() {
        let rights = json!({
            "verbs": [{"verb": "provide", "allowed": true, "question": "its disks are erased", "why_not": null}],
            "power": [{"target": "power off", "allowed": false, "question": "x", "why_not": "your role"}],
        });
        assert_eq!(
            choices(&rights),
            "VERB       ALLOWED  RISK, OR WHY NOT\n\
             provide    yes      its disks are erased\n\
             power off  no       your role\n"
        );
        let own =
            caller(&json!({"user": "alice", "role": "reader", "project": null, "policies": ["a", "b"]}));
        assert!(own.contains("alice") && own.ends_with("a\nb\n"), "{own}");
    }
}
