//! A node as the client shows it, waited for and asserted on.

use crate::process::wait_until;
use crate::stock::Stock;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Many times what anything with a fake node takes.
const LIMIT: Duration = Duration::from_secs(60);

/// One node, asked for by the stock client.
pub struct Node<'a> {
    pub stock: &'a Stock<'a>,
    /// UUID.
    pub uuid: String,
    /// Where files for the client are written.
    pub dir: PathBuf,
}

impl Node<'_> {
    /// As it is now.
    pub fn show(&self) -> Result<Value> {
        self.stock.json(&["node", "show", &self.uuid])
    }

    /// Runs `baremetal node VERB UUID …` without waiting for its end.
    pub fn ask(&self, verb: &[&str], more: &[&str]) -> Result<()> {
        self.stock.run(&[&["node"], verb, &[self.uuid.as_str()], more].concat())
    }

    /// The same, refused; what the client said.
    pub fn refused(&self, verb: &str, more: &[&str]) -> Result<String> {
        self.stock.refused(&[&["node", verb, self.uuid.as_str()], more].concat())
    }

    /// Looks until the node is as wanted, and gives it. A failure that is not wanted ends it at once.
    pub fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut seen = Value::Null;
        wait_until(what, LIMIT, || {
            seen = self.show()?;
            let state = seen["provision_state"].as_str().unwrap_or_default();
            let failed = state.ends_with(" failed") || state == "error";
            ensure!(wanted(&seen) || !failed, "the node is {state}: {}", seen["last_error"]);
            Ok(wanted(&seen))
        })
        .with_context(|| format!("the node is {}", seen["provision_state"]))?;
        Ok(seen)
    }

    /// Waits until it rests in `state`, with nothing wrong and no step current.
    pub fn rests_in(&self, state: &str) -> Result<Value> {
        let node =
            self.until(&format!("the node becomes {state}"), |node| node["provision_state"] == state)?;
        for field in ["last_error", "fault", "target_provision_state"] {
            ensure!(node[field].is_null(), "{state}: {field} is {}", node[field]);
        }
        ensure!(node["maintenance"] == false, "{state}: in maintenance: {}", node["maintenance_reason"]);
        for kind in ["clean", "deploy", "service"] {
            let step = &node[format!("{kind}_step")];
            ensure!(*step == json!({}), "{state}: {kind}_step is {step}");
            let index = &node["driver_internal_info"][format!("{kind}_step_index")];
            ensure!(index.is_null(), "{state}: {kind}_step_index is {index}");
        }
        Ok(node)
    }

    /// Runs a verb to its end.
    pub fn through(&self, verb: &str, more: &[&str], end: &str) -> Result<Value> {
        self.ask(&[verb], more)?;
        self.rests_in(end).with_context(|| verb.to_owned())
    }

    /// Runs a verb that fails; the node must end in `state` and say all of `words`.
    pub fn fails(&self, verb: &str, more: &[&str], state: &str, words: &[&str]) -> Result<Value> {
        self.ask(&[verb], more)?;
        self.failed(state, words).with_context(|| format!("{verb} {more:?}"))
    }

    /// Waits until it is in this state of failure, and says all of `words`.
    pub fn failed(&self, state: &str, words: &[&str]) -> Result<Value> {
        let node =
            self.until(&format!("the node becomes {state}"), |node| node["provision_state"] == state)?;
        let error = node["last_error"].as_str().unwrap_or_default();
        for word in words {
            ensure!(error.contains(word), "{word:?} is not in last_error: {error}");
        }
        Ok(node)
    }

    /// Waits for a step to be current, in one of these provision states.
    pub fn runs(&self, kind: &str, step: &str, states: &[&str]) -> Result<Value> {
        let field = format!("{kind}_step");
        let node = self.until(&format!("{kind} step {step}"), |node| node[&field]["step"] == step)?;
        let state = node["provision_state"].as_str().unwrap_or_default();
        ensure!(states.contains(&state), "{kind} step {step} runs in {state}");
        Ok(node)
    }

    /// Writes steps, or anything, to a file for the client.
    pub fn file(&self, name: &str, content: &Value) -> Result<String> {
        let path = self.dir.join(name);
        std::fs::write(&path, content.to_string())?;
        Ok(path.display().to_string())
    }
}
