//! `anneal inspection-rule …`

use crate::client::Client;
use crate::collection::{self, Collection, Kind, Resource, column, field};
use crate::failure::Failure;
use crate::output::{Format, cell, show};
use crate::question::Question;
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Value, json};

/// Inspection rules.
#[derive(Debug)]
pub struct InspectionRule;

/// Verbs of inspection rules.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    Collection(collection::Command<InspectionRule>),
    /// Remove all rules.
    DeleteAll {
        #[command(flatten)]
        question: Question,
    },
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    let path = InspectionRule::COLLECTION.path;
    match command {
        Command::Collection(command) => collection::run(client, format, command).await,
        Command::DeleteAll { question } => {
            let rules = client.get_all(path, &[], InspectionRule::COLLECTION.list).await?;
            question.ask(rules.len(), "inspection rules are removed: no later inspection applies them")?;
            client.send(Method::DELETE, path, &[], None).await?;
            show(format, &json!({"deleted": rules.len()}), |_| {
                format!("deleted {} inspection rules", rules.len())
            })
        }
    }
}

impl Resource for InspectionRule {
    const COLLECTION: &'static Collection = &Collection {
        path: &["inspection_rules"],
        list: "inspection_rules",
        one: "inspection rule",
        many: "inspection rules",
        ident: ("RULE", "UUID"),
        has_address: false,
        creates: "Make a rule that every later inspection applies",
        query: Some(("detail", "true")),
        columns: &[
            column("UUID", "uuid"),
            column("PRIORITY", "priority"),
            column("DESCRIPTION", "description"),
            column("CONDITIONS", "conditions").shown(operators),
            column("ACTIONS", "actions").shown(operators),
        ],
        filters: &[],
        fields: &[
            field(
                "actions",
                "actions",
                Kind::List,
                "Actions, a JSON list of {\"op\", \"args\"}: a file, `-` for standard input, or the JSON itself",
            )
            .required(),
            field(
                "conditions",
                "conditions",
                Kind::List,
                "Conditions under which the actions are taken, given in the same ways; without them they always are",
            ),
            field("description", "description", Kind::Text, "What it is for"),
            field("priority", "priority", Kind::Integer, "From 0 to 9999: rules with a larger one are applied first"),
            field("phase", "phase", Kind::Text, "When it is applied: main"),
            field("sensitive", "sensitive", Kind::Boolean, "Whether conditions and actions are hidden once it is stored"),
        ],
    };
}

/// `is-empty, set-attribute`
fn operators(list: &Value) -> String {
    let Some(list) = list.as_array() else { return cell(list) };
    list.iter().map(|one| cell(&one["op"])).collect::<Vec<_>>().join(", ")
}
