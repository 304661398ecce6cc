//! From a call to the function of the step: found by the node's interfaces, its arguments checked, its time
//! bounded.

use std::sync::Arc;
use std::time::Duration;

use agent_protocol::schema;
use serde_json::{Map, Value};

use crate::declared::{Declared, StepCall, StepEnd};
use crate::{BmcError, ErrorKind, Settings, interfaces};

/// A step that takes longer has to go on outside ([`StepEnd::Running`]).
const LONGEST: Duration = Duration::from_secs(60);

fn wrong(message: String) -> BmcError {
    BmcError::new(ErrorKind::Step, "", "run a step", message)
}

/// Runs one call of an out-of-band step, for 60 s at most.
pub(crate) async fn run_step(call: &StepCall<'_>, settings: &Arc<Settings>) -> Result<StepEnd, BmcError> {
    let label = format!("{} step {}.{}", call.kind.as_str(), call.interface, call.step);
    let chosen = interfaces::chosen(call.driver, call.interfaces)?;
    let found = chosen.iter().find(|(interface, _)| *interface == call.interface);
    let is_it = |step: &&Declared| step.step == call.step && step.priority(call.kind).is_some();
    let Some(step) = found.and_then(|(_, implementation)| implementation.steps.iter().find(is_it)) else {
        let provider = found.map_or("none", |(_, implementation)| implementation.name);
        return Err(wrong(format!(
            "{label} does not exist with driver {} and {}_interface {provider}",
            call.driver, call.interface
        )));
    };
    check(&label, step, call.args)?;
    tokio::time::timeout(LONGEST, (step.run)(call, settings)).await.unwrap_or_else(|_| {
        let message = format!("{label} has not ended within {} s", LONGEST.as_secs());
        // Worth another try of a step that may be repeated.
        Err(wrong(message).with_retryable(true))
    })
}

/// Whether the arguments are those that the step declares.
fn check(label: &str, step: &Declared, args: &Map<String, Value>) -> Result<(), BmcError> {
    let names = |names: Vec<&str>| names.join(", ");
    let missing: Vec<&str> =
        step.args.iter().filter(|arg| arg.required && !args.contains_key(arg.name)).map(|a| a.name).collect();
    if !missing.is_empty() {
        return Err(wrong(format!("{label} is missing these required arguments: {}", names(missing))));
    }
    let unknown: Vec<&str> =
        args.keys().map(String::as_str).filter(|name| !step.args.iter().any(|a| a.name == *name)).collect();
    if !unknown.is_empty() {
        return Err(wrong(format!("{label} has these unexpected arguments: {}", names(unknown))));
    }
    for arg in step.args {
        let Some(value) = args.get(arg.name) else { continue };
        schema::check(arg.name, &arg.schema(), value)
            .map_err(|why| wrong(format!("{label}: argument {why}")))?;
    }
    Ok(())
}
