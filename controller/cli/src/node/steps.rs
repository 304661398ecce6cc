//! `anneal node steps`: what a node can be asked to do (`GET /v1/nodes/{ident}/cleaning/steps`).

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, cell, show, table};
use clap::{Args, ValueEnum};
use reqwest::{Method, StatusCode};
use serde_json::Value;

/// Which steps.
#[derive(Debug, Args)]
pub struct Options {
    /// Name or UUID.
    node: String,
    /// Only steps with at least this priority: 1 leaves those that run by themselves.
    #[arg(long, value_name = "N")]
    min_priority: Option<u32>,
    /// Kind of the steps.
    #[arg(long, value_enum, default_value_t = Kind::Clean)]
    kind: Kind,
}

/// Kind of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Steps of automated and manual cleaning.
    Clean,
}

/// Lists them. A controller that has yet to learn them answers 202; that is [`Failure::NotYet`], since a
/// script that goes on without steps would do the wrong thing.
pub async fn run(client: &Client, format: Format, options: &Options) -> Result<(), Failure> {
    let Kind::Clean = options.kind;
    let query: Vec<_> =
        options.min_priority.iter().map(|priority| ("min_priority", priority.to_string())).collect();
    let path = ["nodes", &options.node, "cleaning", "steps"];
    let reply = client.send(Method::GET, &path, &query, None).await?;
    if reply.status == StatusCode::ACCEPTED {
        let message = reply.body.get("message").and_then(Value::as_str);
        let otherwise = "the steps of the node are not known yet; they are learnt when its agent first runs";
        let message = message.unwrap_or(otherwise).trim_end_matches('.');
        return Err(Failure::NotYet(format!("{message}. Please try again later.")));
    }
    show(format, &reply.body, listing)
}

fn listing(body: &Value) -> String {
    let list = ["steps", "clean_steps"].iter().find_map(|key| body.get(key)).unwrap_or(body);
    let row = |step: &Value| {
        let yes = |key: &str| if step[key] == Value::Bool(true) { "yes" } else { "no" }.to_owned();
        let label = format!("{}.{}", cell(&step["interface"]), cell(&step["step"]));
        vec![label, cell(&step["priority"]), yes("abortable"), arguments(&step["args"])]
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
}
