//! `anneal runbook …`

use crate::client::Client;
use crate::collection::{self, Collection, EXTRA, Kind, Resource, column, field};
use crate::failure::Failure;
use crate::output::{Format, cell};
use crate::traits::{self, Traits};
use clap::Subcommand;
use serde_json::Value;

/// Runbooks.
#[derive(Debug)]
pub struct Runbook;

/// Verbs of runbooks.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    Collection(collection::Command<Runbook>),
    /// The traits of a runbook: it may be used on nodes that have one of them.
    #[command(subcommand)]
    Trait(Traits),
}

/// Does it.
pub async fn run(client: &Client, format: Format, command: Command) -> Result<(), Failure> {
    match command {
        Command::Collection(command) => collection::run(client, format, command).await,
        Command::Trait(traits) => traits::run(client, format, "runbooks", traits).await,
    }
}

impl Resource for Runbook {
    const COLLECTION: &'static Collection = &Collection {
        path: &["runbooks"],
        list: "runbooks",
        one: "runbook",
        many: "runbooks",
        ident: ("RUNBOOK", "Name or UUID"),
        has_address: false,
        creates: "Keep steps of cleaning or service under a name: `anneal node clean NODE --runbook NAME`",
        query: Some(("detail", "true")),
        columns: &[
            column("UUID", "uuid"),
            column("NAME", "name"),
            column("OWNER", "owner"),
            column("PUBLIC", "public"),
            column("TRAITS", "traits").shown(traits_in_a_cell),
            column("STEPS", "steps").shown(steps_in_a_cell),
        ],
        filters: &[],
        fields: &[
            field("name", "name", Kind::Text, "Name, unique").first(),
            field(
                "steps",
                "steps",
                Kind::Steps,
                "Steps, a JSON list of {\"interface\", \"step\", \"args\", \"order\"}: a file, `-` for standard input, or the JSON \
                 itself",
            )
            .required(),
            field("disable_ramdisk", "disable-ramdisk", Kind::Boolean, "Do not boot the ramdisk: no step may need it"),
            field("owner", "owner", Kind::Text, "Project whose runbook it is"),
            field("public", "public", Kind::Boolean, "Whether every project may use it"),
            field("description", "description", Kind::Text, "What it is for"),
            EXTRA,
        ],
    };
}

/// `CUSTOM_A, CUSTOM_B`
fn traits_in_a_cell(traits: &Value) -> String {
    traits.as_array().into_iter().flatten().map(cell).collect::<Vec<_>>().join(", ")
}

/// `raid.create_configuration, deploy.erase_devices`, in the order in which they run.
fn steps_in_a_cell(steps: &Value) -> String {
    let mut steps: Vec<&Value> = steps.as_array().into_iter().flatten().collect();
    steps.sort_by_key(|step| step["order"].as_u64());
    let label = |step: &Value| format!("{}.{}", cell(&step["interface"]), cell(&step["step"]));
    steps.into_iter().map(label).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn steps_are_shown_as_they_run() {
        let steps = serde_json::json!([
            {"interface": "deploy", "step": "erase_devices", "order": 10},
            {"interface": "raid", "step": "create_configuration", "order": 2}]);
        assert_eq!(super::steps_in_a_cell(&steps), "raid.create_configuration, deploy.erase_devices");
    }
}
