//! `anneal node steps`: what a node can be asked to do (`GET /v1/nodes/{ident}/cleaning/steps`, and the same of
//! deployment and service).

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, duration, show, table};
use clap::{Args, ValueEnum};
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// Which steps.
#[derive(Debug, Args)]
pub struct Options {
    /// Name or UUID.
    node: String,
    /// Only steps with at least this priority: 1 leaves those that run by themselves.
    #[arg(long, value_name = "N", value_parser = priority)]
    min_priority: Option<f64>,
    /// Kind of the steps.
    #[arg(long, value_enum, default_value_t = Kind::Clean)]
    kind: Kind,
}

/// Kind of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Steps of automated and manual cleaning.
    Clean,
    /// Steps of a deployment.
    Deploy,
    /// Steps on a node in use.
    Service,
}

/// Priorities of clean steps may have a fraction.
fn priority(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "a priority is a number, 0 or larger".to_owned())
}

/// Lists them. A controller that has yet to learn those of the agent answers 202 with the others; they are shown,
/// and the command ends as [`Failure::NotYet`], since a script that goes on with a part would do the wrong thing.
pub async fn run(client: &Client, format: Format, options: &Options) -> Result<(), Failure> {
    let query: Vec<_> =
        options.min_priority.iter().map(|priority| ("min_priority", priority.to_string())).collect();
    let kind = match options.kind {
        Kind::Clean => "cleaning",
        Kind::Deploy => "deploy",
        Kind::Service => "service",
    };
    let reply = client.send(Method::GET, &["nodes", &options.node, kind, "steps"], &query, None).await?;
    if reply.status != StatusCode::ACCEPTED {
        return show(format, &reply.body, listing);
    }
    if reply.body["steps"].as_array().is_some_and(|known| !known.is_empty()) {
        show(format, &reply.body, listing)?;
    }
    Err(Failure::NotYet(advice(&reply.body, reply.retry_after)))
}

/// What the controller says, with the advice to retry.
fn advice(body: &Value, retry_after: Option<u64>) -> String {
    let otherwise = "the steps of the node's agent are not known yet; they are learnt when it first runs";
    let message = body["message"].as_str().unwrap_or(otherwise).trim_end_matches('.');
    let when = retry_after.map_or_else(|| "later".to_owned(), |seconds| format!("in {}", duration(seconds)));
    format!("{message}. Please try again {when}.")
}

fn listing(body: &Value) -> String {
    let list = body.get("steps").unwrap_or(body);
    let row = |step: &Value| {
        let abortable = match step["abortable"].as_bool() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        let label = format!("{}.{}", cell(&step["interface"]), cell(&step["step"]));
        vec![label, cell(&step["priority"]), abortable.to_owned(), arguments(&step["args"])]
    };
    let rows: Vec<_> = list.as_array().into_iter().flatten().map(row).collect();
    table(&["STEP", "PRIORITY", "ABORTABLE", "ARGUMENTS"], &rows)
}

/// `size (required), name`
fn arguments(args: &Value) -> String {
    let one = |arg: &Value| {
        let required = if arg["required"] == Value::Bool(true) { " (required)" } else { "" };
        format!("{}{required}", cell(&arg["name"]))
    };
    args.as_array().into_iter().flatten().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steps_in_a_table() {
        let steps = json!([
            {"interface": "deploy", "step": "erase_devices", "priority": 10, "abortable": true, "args": []},
            {"interface": "raid", "step": "create", "priority": 0, "abortable": false,
             "args": [{"name": "size", "required": true}, {"name": "level", "required": false}]},
        ]);
        let golden = "STEP                  PRIORITY  ABORTABLE  ARGUMENTS\n\
                      deploy.erase_devices  10        yes\n\
                      raid.create           0         no         size (required), level\n";
        assert_eq!(listing(&steps), golden);
        assert_eq!(listing(&json!({"steps": steps})), golden);
    }

    #[test]
    fn the_advice_names_the_time_where_the_controller_does() {
        let body = json!({"message": "The agent boots."});
        assert_eq!(advice(&body, Some(90)), "The agent boots. Please try again in 1m30s.");
        assert_eq!(advice(&body, None), "The agent boots. Please try again later.");
    }
}
