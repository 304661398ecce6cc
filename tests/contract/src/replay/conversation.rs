//! Recorded conversations, and what the operator did meanwhile.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

const OPERATOR: &str = include_str!("../../replay/operator.json");

/// The recordings (`replay/make.py`), by name.
pub const ALL: &[(&str, &str)] = &[
    ("cli_walk", include_str!("../../replay/cli_walk.jsonl")),
    ("ipa_autoclean_plain", include_str!("../../replay/ipa_autoclean_plain.jsonl")),
    ("ipa_conductor_restart", include_str!("../../replay/ipa_conductor_restart.jsonl")),
    ("ipa_deploy_service_plain", include_str!("../../replay/ipa_deploy_service_plain.jsonl")),
    ("ipa_inspect_plain", include_str!("../../replay/ipa_inspect_plain.jsonl")),
    ("ipa_manual_clean", include_str!("../../replay/ipa_manual_clean.jsonl")),
    ("ipa_stale_step", include_str!("../../replay/ipa_stale_step.jsonl")),
    ("ipa_tls_clean", include_str!("../../replay/ipa_tls_clean.jsonl")),
];

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
    pub name: &'static str,
    pub lines: Vec<Exchange>,
    pub deeds: Vec<Deed>,
}

/// All of them.
///
/// # Errors
/// When a file of them is not what it should be.
pub fn all() -> Result<Vec<Conversation>> {
    let mut operator: BTreeMap<String, Vec<Deed>> = serde_json::from_str(OPERATOR).context("operator.json")?;
    ALL.iter()
        .map(|(name, text)| {
            let read = |(index, line)| {
                serde_json::from_str(line).with_context(|| format!("{name} line {}", index + 1))
            };
            let lines = text.lines().enumerate().map(read).collect::<Result<_>>()?;
            Ok(Conversation { name, lines, deeds: operator.remove(*name).unwrap_or_default() })
        })
        .collect()
}
