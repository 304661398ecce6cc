//! The calls that every manager answers at its start and its end.

use super::{Claim, Method, Nothing, Notification, Quirk};
use crate::Support;
use agent_protocol::inventory::Inventory;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `hello`: who is there, and which version of the protocol is spoken.
#[derive(Debug, Clone, Copy)]
pub struct Hello;

impl Method for Hello {
    const NAME: &'static str = "hello";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(5));
    type Params = HelloParams;
    type Answer = HelloAnswer;
}

/// What the agent says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelloParams {
    /// Versions it speaks.
    pub protocol_versions: Vec<u32>,
    /// Its own version, for logs.
    pub agent_version: String,
}

/// What the manager says of itself.
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

/// What the manager is for this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// How well it supports the machine.
    pub support: Support,
    /// Devices it will care for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// What the agent must leave alone on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<Quirk>,
}

/// `init`: get ready. Slow things belong here.
#[derive(Debug, Clone, Copy)]
pub struct Init;

impl Method for Init {
    const NAME: &'static str = "init";
    const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));
    type Params = Nothing;
    type Answer = Nothing;
}

/// `shutdown`: answer and exit.
#[derive(Debug, Clone, Copy)]
pub struct Shutdown;

impl Method for Shutdown {
    const NAME: &'static str = "shutdown";
    const DEADLINE: Option<Duration> = Some(super::GRACE);
    type Params = Nothing;
    type Answer = Nothing;
}

/// `cancel`: stop a call that has not been answered yet.
#[derive(Debug, Clone, Copy)]
pub struct Cancel;

impl Notification for Cancel {
    const NAME: &'static str = "cancel";
    type Params = Cancelled;
}

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Id of the call.
    pub id: u64,
}
