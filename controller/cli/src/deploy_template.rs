//! `anneal deploy-template …`

use crate::collection::{Collection, EXTRA, Kind, Resource, column, field};
use crate::output::cell;
use serde_json::Value;

/// Deploy templates.
#[derive(Debug)]
pub struct DeployTemplate;

impl Resource for DeployTemplate {
    const COLLECTION: &'static Collection = &Collection {
        path: &["deploy_templates"],
        list: "deploy_templates",
        one: "deploy template",
        many: "templates",
        ident: ("TEMPLATE", "Name or UUID"),
        has_address: false,
        creates: "Make a template: its steps run when an instance with the trait of its name is deployed",
        query: Some(("detail", "true")),
        columns: &[
            column("UUID", "uuid"),
            column("NAME", "name"),
            column("STEPS (PRIORITY)", "steps").shown(steps_in_a_cell),
        ],
        filters: &[],
        fields: &[
            field("name", "name", Kind::Text, "Name, which is a trait: `CUSTOM_…` or one of the standard traits")
                .first(),
            field(
                "steps",
                "steps",
                Kind::Steps,
                "Steps, a JSON list of {\"interface\", \"step\", \"args\", \"priority\"}: a file, `-` for standard input, or the \
                 JSON itself. Priority 0 switches a step off that would run by itself",
            )
            .required(),
            field("description", "description", Kind::Text, "What it is for"),
            EXTRA,
        ],
    };
}

/// `bios.apply_configuration (150)`
fn steps_in_a_cell(steps: &Value) -> String {
    let label = |step: &Value| {
        format!("{}.{} ({})", cell(&step["interface"]), cell(&step["step"]), cell(&step["priority"]))
    };
    steps.as_array().into_iter().flatten().map(label).collect::<Vec<_>>().join(", ")
}
