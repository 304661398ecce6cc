//! The calls that every manager answers at its start and its end.

use super::{Claim, Empty, Method, Notification, Quirk};
use crate::Support;
use agent_protocol::inventory::Inventory;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `hello`: name and version of the manager, and the version of the protocol.
#[derive(Debug, Clone, Copy)]
pub struct Hello;

impl Method for Hello {
    const NAME: &'static str = "hello";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(5));
    type Params = HelloParams;
    type Answer = HelloAnswer;
}

/// Versions of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloParams {
    /// Versions it speaks.
    pub protocol_versions: Vec<u32>,
    /// Its own version, for logs.
    pub agent_version: String,
}

/// Identity of the manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloAnswer {
    /// The version that both will speak: one of those offered.
    pub protocol_version: u32,
    /// Its name, see [`super::bad_manager_name`].
    pub name: String,
    /// Its version, see [`super::bad_version`]; a change restarts automated cleaning.
    pub version: String,
    /// Vendor of the manager.
    pub vendor: String,
}

/// `detect`: is this machine yours? Fast, from the inventory alone.
#[derive(Debug, Clone, Copy)]
pub struct Detect;

impl Method for Detect {
    const NAME: &'static str = "detect";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(2));
    type Params = DetectParams;
    type Answer = Detected;
}

/// What is known of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DetectParams {
    /// The hardware as the agent found it.
    pub inventory: Inventory,
}

/// Support for this machine, with claims and quirks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// How well it supports the machine.
    pub support: Support,
    /// Devices that the manager is responsible for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Probes that the agent must leave out on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<Quirk>,
}

/// `init`: prepare. Slow preparation belongs here.
#[derive(Debug, Clone, Copy)]
pub struct Init;

impl Method for Init {
    const NAME: &'static str = "init";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));
    type Params = Empty;
    type Answer = Empty;
}

/// `shutdown`: answer and exit.
#[derive(Debug, Clone, Copy)]
pub struct Shutdown;

impl Method for Shutdown {
    const NAME: &'static str = "shutdown";
    const DEADLINE: Option<Duration> = Some(super::GRACE);
    type Params = Empty;
    type Answer = Empty;
}

/// `cancel`: stop a call that has not been answered yet.
#[derive(Debug, Clone, Copy)]
pub struct Cancel;

impl Notification for Cancel {
    const NAME: &'static str = "cancel";
    type Params = Cancelled;
}

/// The call to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Id of the call.
    pub id: u64,
}
