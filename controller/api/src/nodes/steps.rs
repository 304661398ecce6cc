//! `GET /v1/nodes/{ident}/cleaning/steps`, as specs/manual-cleaning.txt defines it, and the same for deploy
//! and service steps. Ironic never built it, so it has no microversion and is served in all of them.

use crate::call::{Call, json};
use crate::error::{ApiError, Reply};
use axum::extract::Path;
use axum::http::HeaderValue;
use model::plan::run_order;
use model::{CatalogueStep, Cursor, Node, StepKind, Timestamp};
use serde_json::{Value, json};

/// Seconds after which to ask again; -1: unknown.
const RETRY_HEADER: &str = "retry-request-after";

/// `GET …/cleaning/steps[?min_priority=N]`.
pub async fn cleaning(path: Path<String>, call: Call) -> Reply {
    steps(path, call, StepKind::Clean).await
}

/// `GET …/deploy/steps[?min_priority=N]`.
pub async fn deploy(path: Path<String>, call: Call) -> Reply {
    steps(path, call, StepKind::Deploy).await
}

/// `GET …/service/steps[?min_priority=N]`.
pub async fn service(path: Path<String>, call: Call) -> Reply {
    steps(path, call, StepKind::Service).await
}

/// The steps of the node's interfaces and those that its agent reported last, also while the node is off; 202 if its
/// agent never reported any.
async fn steps(Path(ident): Path<String>, call: Call, kind: StepKind) -> Reply {
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
    let abilities = call.app.drivers.abilities(&node)?;
    let in_band = if kind == StepKind::Deploy { abilities.deploys_with_agent() } else { abilities.agent };
    let catalogue = if in_band { call.app.store.catalogue(node.uuid, kind).await? } else { None };
    let learnt = catalogue.is_some() || !in_band;
    let of_agent = catalogue.map(|catalogue| catalogue.steps).unwrap_or_default();
    let mut known = call.app.drivers.configured(kind, of_agent);
    known.extend_from_slice(abilities.out_of_band(kind));
    let shown = view(&mut known, least);
    if learnt {
        return Ok(json(200, &shown));
    }
    let (retry, when) = match boot_ends_in(&node, call.now()) {
        Some(seconds) => (seconds.to_string(), format!("Its ramdisk is booting; ask again in {seconds} s.")),
        None => ("-1".to_owned(), "Please retry once it has been booted into the ramdisk.".to_owned()),
    };
    let message = format!(
        "The in-band {} steps of node {ident} are not known yet: its agent reports them when it boots the first \
         time. {when}",
        kind.as_str()
    );
    let mut response = json(202, &json!({"message": message, "steps": shown}));
    if let Ok(value) = HeaderValue::from_str(&retry) {
        response.headers_mut().insert(RETRY_HEADER, value);
    }
    Ok(response)
}

/// Seconds until the deadline of the boot in progress, at least 1.
fn boot_ends_in(node: &Node, now: Timestamp) -> Option<u64> {
    let run = node.run.as_ref().filter(|run| run.is_active())?;
    if !matches!(run.cursor, Cursor::AwaitAgent) {
        return None;
    }
    Some(node.wait.as_ref()?.deadline?.since(now).as_secs().max(1))
}

fn view(known: &mut Vec<CatalogueStep>, least: Option<f64>) -> Value {
    known.retain(|step| least.is_none_or(|least| step.priority.as_f64().unwrap_or(0.0) >= least));
    known.sort_by(run_order);
    known
        .iter()
        .map(|step| {
            let args: Vec<_> = step
                .args
                .iter()
                .map(|(name, arg)| {
                    let mut shown =
                        json!({"name": name, "description": arg.description, "required": arg.required});
                    if let (Some(schema), Some(shown)) = (&arg.schema, shown.as_object_mut()) {
                        shown.insert("schema".into(), schema.clone());
                    }
                    shown
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
        .collect()
}
