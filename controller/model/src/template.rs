//! Deploy templates: deploy steps under the name of a trait.

use crate::step::RequestedStep;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

/// A deploy template. An instance that asks for the trait it is named after is deployed with its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployTemplate {
    /// Its id.
    pub uuid: Uuid,
    /// Name of a trait, unique among templates.
    pub name: String,
    /// Count of writes; guards against lost updates. Never on the wire.
    #[serde(default)]
    pub version: u64,
    /// Its steps in the order given, each with a priority and no two of one interface and name.
    pub steps: Vec<RequestedStep>,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Free for clients.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    #[serde(default)]
    pub updated_at: Option<Timestamp>,
}
