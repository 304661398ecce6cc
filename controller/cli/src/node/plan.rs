//! `anneal node plan`: what an erase would do to each disk, by which methods, and why not.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, bytes, cell, duration, fields, show, table};
use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Which node, and which erase.
#[derive(Debug, Args)]
pub struct Options {
    /// Name or UUID.
    node: String,
    /// The step: erase_devices, erase_devices_express or erase_devices_metadata.
    #[arg(long, default_value = "erase_devices")]
    step: String,
    /// Its arguments as a JSON object: {"level": "purge"}
    #[arg(long, value_name = "JSON", value_parser = object)]
    args: Option<Map<String, Value>>,
}

/// JSON, an object.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

/// Shows the plan. A run that would be refused ends as [`Failure::Ended`], after the plan.
pub async fn run(client: &Client, format: Format, options: &Options) -> Result<(), Failure> {
    let body = json!({"step": options.step, "args": options.args});
    let path = ["anneal", "nodes", &options.node, "erase_plan"];
    let plan = client.send(Method::POST, &path, &[], Some(body)).await?.body;
    show(format, &plan, view)?;
    if plan["refuses"] == Value::Bool(false) {
        return Ok(());
    }
    let is_refused = |disk: &&Value| disk["fate"] == "refuse"; // wording: wire name
    let refusing: Vec<_> = disks(&plan).filter(is_refused).map(|disk| cell(&disk["device"])).collect();
    Err(Failure::Ended(format!("the run would be refused, because of {}", refusing.join(", "))))
}

fn disks(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["disks"].as_array().into_iter().flatten()
}

fn view(plan: &Value) -> String {
    let mut rows = Vec::new();
    for disk in disks(plan) {
        let size = disk["size"].as_u64().map_or_else(|| "-".to_owned(), bytes);
        let mut row = ["device", "serial", "wwn"].map(|key| cell(&disk[key])).to_vec();
        row.extend([size, cell(&disk["fate"])]); // wording: wire name
        let methods = disk["methods"].as_array().map(Vec::as_slice).unwrap_or_default();
        if methods.is_empty() {
            row.extend(["-".to_owned(), "-".to_owned(), "-".to_owned(), cell(&disk["reason"])]);
            rows.push(row);
            continue;
        }
        for method in methods {
            let estimate = method["estimate_s"].as_u64().map_or_else(|| "-".to_owned(), duration);
            let mut line = std::mem::replace(&mut row, vec![String::new(); 5]);
            line.extend([cell(&method["method"]), cell(&method["level"]), estimate, cell(&method["reason"])]);
            rows.push(line);
        }
    }
    let headings = ["DEVICE", "SERIAL", "WWN", "SIZE", "DECISION", "METHOD", "LEVEL", "TAKES", "REASON"];
    let time = |key: &str| plan[key].as_u64().map_or_else(|| "-".to_owned(), duration);
    let times = [("estimate without reading back", "estimate_s"), ("deadline of the step", "deadline_s")];
    let times: Vec<_> = times.iter().map(|(name, key)| ((*name).to_owned(), time(key))).collect();
    format!("{}\n{}", table(&headings, &rows), fields(&times))
}
