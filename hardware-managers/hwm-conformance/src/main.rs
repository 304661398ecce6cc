//! `hwm-conformance COMMAND…`: does this hardware manager keep the rules?

use anyhow::{Context, Result, bail};
use clap::Parser;
use hwm_conformance::{Plan, Rule, examine};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::process::ExitCode;

/// Starts a hardware manager as an agent would, and reports which rules of PROTOCOL.md it keeps. Nothing else is needed:
/// no server, no sandbox, no hardware. Steps that destroy nothing are run; others only with --run.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Inventory of a machine that the manager supports (JSON, as an agent shows it). Without: an example machine
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Run this step, with these arguments (a JSON object), although it destroys something
    #[arg(long, value_name = "STEP[=JSON]")]
    run: Vec<String>,
    /// ERASE this disk of the inventory with each method that the manager offers
    #[arg(long, value_name = "DISK")]
    erase: Vec<String>,
    /// Longest time of a step, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    run_deadline: u64,
    /// List the rules
    #[arg(long)]
    rules: bool,
    /// Program of the manager, with its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "rules", value_name = "COMMAND")]
    command: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.rules {
        for rule in Rule::ALL {
            println!("{rule}: {}", rule.text());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut plan = Plan::new(arguments.command);
    plan.deadlines.run = std::time::Duration::from_secs(arguments.run_deadline);
    plan.erases = arguments.erase;
    if let Some(path) = arguments.inventory {
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let wrong = || format!("{} is no inventory", path.display());
        plan.inventory = serde_json::from_slice(&text).with_context(wrong)?;
    }
    for run in arguments.run {
        let (step, args) = run.split_once('=').unwrap_or((&run, "{}"));
        let args: Value = serde_json::from_str(args).with_context(|| format!("--run {step}: no JSON"))?;
        let Value::Object(args) = args else { bail!("--run {step}: the arguments are no object") };
        plan.runs.insert(step.to_owned(), Map::from_iter(args));
    }
    let report = examine(&plan)?;
    println!("{report}");
    Ok(if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
