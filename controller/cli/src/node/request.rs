//! A verb as it is sent.

use super::instance_info::InstanceInfo;
use super::selection::Nodes;
use crate::wait::{WaitOption, WaitTarget};
use clap::Args;
use serde_json::Value;

/// Nodes, and whether to wait for the end.
#[derive(Debug, Args)]
pub struct Of {
    #[command(flatten)]
    pub(super) nodes: Nodes,
    #[command(flatten)]
    pub(super) wait: WaitOption,
}

/// What is sent, and what follows it.
pub(super) struct Request {
    pub(super) of: Of,
    pub(super) body: Value,
    /// What `--wait` waits for; `None`: for the target that the node then names.
    pub(super) goal: Option<WaitTarget>,
    /// A part of the body that must not be shown.
    pub(super) secret: Option<String>,
    /// Put into the node before the verb is sent.
    pub(super) instance_info: Option<InstanceInfo>,
}
