//! `GET /v1/nodes/{ident}/cleaning/steps`, as specs/manual-cleaning.txt defines it. Ironic never built it, so
//! it has no microversion and is served in all of them.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use axum::http::HeaderValue;
use model::step::run_order;
use model::{Catalogue, CatalogueStep};
use serde_json::{Value, json};
use store::StepKind;

/// Tells in how many seconds to ask again; -1: nobody knows.
const RETRY_HEADER: &str = "retry-request-after";

/// `GET …/cleaning/steps[?min_priority=N]`: the steps as the agent told them last, also while the node is
/// off; 202 when it never did.
pub async fn cleaning(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["min_priority"])?;
    let least =
        match call.args.text("min_priority") {
            None => None,
            Some(text) => {
                let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
                Some(number.ok_or_else(|| {
                    ApiError::invalid(format!("Expected a number for min_priority: {text}"))
                })?)
            }
        };
    let node = call.node(&ident).await?;
    if let Some(catalogue) = call.app.store.catalogue(node.uuid, StepKind::Clean).await? {
        return Ok(json(200, &view(&catalogue, least)));
    }
    let message = format!(
        "The clean steps of node {ident} are not known yet: its agent tells them when it boots for cleaning \
         the first time. Please retry later."
    );
    let mut response = json(202, &json!({"message": message, "steps": []}));
    response.headers_mut().insert(RETRY_HEADER, HeaderValue::from_static("-1"));
    Ok(response)
}

fn view(catalogue: &Catalogue, least: Option<f64>) -> Value {
    let mut steps: Vec<&CatalogueStep> = catalogue
        .steps
        .iter()
        .filter(|step| least.is_none_or(|least| step.priority.as_f64().unwrap_or(0.0) >= least))
        .collect();
    steps.sort_by(|a, b| run_order(a, b));
    let steps: Vec<_> = steps
        .into_iter()
        .map(|step| {
            let args: Vec<_> = step
                .args
                .iter()
                .map(|(name, arg)| {
                    json!({"name": name, "description": arg.description, "required": arg.required})
                })
                .collect();
            json!({
                "interface": step.interface,
                "step": step.step,
                "priority": step.priority,
                "abortable": step.abortable,
                "args": args,
            })
        })
        .collect();
    Value::Array(steps)
}
