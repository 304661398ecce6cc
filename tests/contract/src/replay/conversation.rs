//! Recorded conversations, and what the operator did meanwhile.

use super::listed::file;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One exchange.
#[derive(Debug, Clone, Deserialize)]
pub struct Exchange {
    /// The sender of the request: `osc`, `agent` or `ironic`.
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

/// An operator's action whose requests were not recorded.
#[derive(Debug, Clone, Deserialize)]
pub struct Action {
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
    /// Not before our node's history has this text.
    #[serde(default)]
    pub once: String,
    /// The conductor is killed first, as by a power cut, and started again.
    #[serde(default)]
    pub restarts: bool,
}

/// A conversation.
#[derive(Debug)]
pub struct Conversation {
    pub name: String,
    pub lines: Vec<Exchange>,
    pub actions: Vec<Action>,
}

impl Conversation {
    /// The certificate in the recorded agent's heartbeats, when it listened with TLS.
    pub fn certificate(&self) -> Option<&str> {
        self.lines.iter().find_map(|line| line.sent["agent_verify_ca"].as_str())
    }

    /// Seconds, as the recorded Ironic sent them to its agent; 300, its default, where there was none.
    pub fn heartbeat_timeout(&self) -> u64 {
        let timeout = |line: &Exchange| line.answer["config"]["heartbeat_timeout"].as_u64();
        self.lines.iter().find_map(timeout).unwrap_or(300)
    }
}

/// A recording that is not replayed.
#[derive(Debug, Clone)]
pub struct Left {
    pub name: String,
    pub exchanges: usize,
    pub why: String,
}

/// All that `replay/left_out.tsv` names.
///
/// # Errors
/// When the file is not what it should be.
pub fn left_out() -> Result<Vec<Left>> {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, exchanges, why] = fields[..] else { bail!("not three fields: {line}") };
        let exchanges = exchanges.parse().with_context(|| line.to_owned())?;
        Ok(Left { name: name.to_owned(), exchanges, why: why.to_owned() })
    };
    file("left_out.tsv")?.lines().skip(1).map(read).collect()
}

/// All that `replay/operator.json` names.
///
/// # Errors
/// When a file of them is not what it should be.
pub fn all() -> Result<Vec<Conversation>> {
    let operator: BTreeMap<String, Vec<Action>> =
        serde_json::from_str(&file("operator.json")?).context("operator.json")?;
    let read = |(name, actions): (String, Vec<Action>)| {
        let text = file(&format!("{name}.jsonl"))?;
        let line =
            |(index, line)| serde_json::from_str(line).with_context(|| format!("{name} line {}", index + 1));
        let lines = text.lines().enumerate().map(line).collect::<Result<_>>()?;
        Ok(Conversation { name, lines, actions })
    };
    operator.into_iter().map(read).collect()
}
