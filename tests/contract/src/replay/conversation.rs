//! Recorded conversations, and what the operator did meanwhile.

use super::listed::file;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One exchange.
#[derive(Debug, Clone, Deserialize)]
pub struct Exchange {
    /// `osc`, `agent` or `ironic`: who asked.
    pub from: String,
    pub method: String,
    /// Path and query.
    pub path: String,
    /// `X-OpenStack-Ironic-API-Version` of the request.
    pub version: Option<String>,
    /// Body of the request.
    pub sent: Value,
    /// `None`: the recorder missed the answer.
    pub status: Option<u16>,
    /// Headers of the answer that are compared.
    pub headers: BTreeMap<String, String>,
    /// Body of the answer.
    pub answer: Value,
}

/// What an operator did whose requests were not recorded.
#[derive(Debug, Clone, Deserialize)]
pub struct Deed {
    /// Before this line; one after the last: at the end.
    pub before: usize,
    /// The request; none: only wait.
    #[serde(default)]
    pub method: String,
    #[serde(default)]
    pub path: String,
    #[serde(default)]
    pub body: Value,
    /// The provision state that the node is waited for in.
    #[serde(default)]
    pub until: String,
    /// Ironic took the request and failed later; ours refuses it.
    #[serde(default)]
    pub refused: bool,
}

/// A conversation.
#[derive(Debug)]
pub struct Conversation {
    pub name: String,
    pub lines: Vec<Exchange>,
    pub deeds: Vec<Deed>,
}

/// All that `replay/operator.json` names.
///
/// # Errors
/// When a file of them is not what it should be.
pub fn all() -> Result<Vec<Conversation>> {
    let operator: BTreeMap<String, Vec<Deed>> =
        serde_json::from_str(&file("operator.json")?).context("operator.json")?;
    let read = |(name, deeds): (String, Vec<Deed>)| {
        let text = file(&format!("{name}.jsonl"))?;
        let line =
            |(index, line)| serde_json::from_str(line).with_context(|| format!("{name} line {}", index + 1));
        let lines = text.lines().enumerate().map(line).collect::<Result<_>>()?;
        Ok(Conversation { name, lines, deeds })
    };
    operator.into_iter().map(read).collect()
}
