//! A template as clients see it.

use crate::error::ApiError;
use crate::format::{at, iso};
use crate::links::Links;
use model::DeployTemplate;
use model::mask::masked;
use serde_json::{Map, Value, json};

/// Fields in the order in which messages list them.
pub const FIELDS: [&str; 8] =
    ["created_at", "description", "extra", "links", "name", "steps", "updated_at", "uuid"];

/// Fields that lists cannot be sorted by.
pub const UNSORTABLE: [&str; 3] = ["extra", "links", "steps"];

/// Check the fields that a client wants to see.
pub fn check_wanted(wanted: &[String]) -> Result<(), ApiError> {
    match wanted.iter().find(|name| !FIELDS.contains(&name.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            let known: Vec<_> = FIELDS.iter().map(|name| format!("'{name}'")).collect();
            let known = known.join(", ");
            Err(ApiError::invalid(format!("Schema error: '{unknown}' is not one of [{known}]")))
        }
    }
}

/// The template in the wanted fields, or in all. Ironic keeps no description; here it is shown when there is
/// one.
pub fn view(template: &DeployTemplate, links: &Links, wanted: Option<&[String]>) -> Value {
    let steps: Vec<_> = template
        .steps
        .iter()
        .map(|step| {
            json!({
                "interface": step.interface,
                "step": step.step,
                "args": masked(&step.args),
                "priority": step.priority,
            })
        })
        .collect();
    let mut view = Map::new();
    let mut put = |name: &str, value: Value| {
        if name == "links" || wanted.is_none_or(|wanted| wanted.iter().any(|wanted| wanted == name)) {
            view.insert(name.to_owned(), value);
        }
    };
    put("uuid", template.uuid.to_string().into());
    put("created_at", iso(template.created_at).into());
    put("updated_at", at(template.updated_at));
    put("name", template.name.clone().into());
    put("extra", Value::Object(template.extra.clone()));
    put("links", links.pair(&format!("deploy_templates/{}", template.uuid)));
    put("steps", Value::Array(steps));
    if let Some(description) = &template.description {
        put("description", description.clone().into());
    }
    Value::Object(view)
}
