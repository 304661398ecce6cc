//! The types and rules of the controller: no async, no SQL, no HTTP, no clock.
//!
//! Only this crate decides which transitions are allowed ([`provision::transition`]). The conductor decides when they are
//! due, the API how they look on the wire.

pub mod abilities;
pub mod agent;
mod basis;
pub mod bmc_login;
pub mod boot;
pub mod boot_medium;
pub mod bundle;
pub mod certificate;
pub mod clock_jump;
pub mod conductors;
pub mod deploy_step;
pub mod disks;
pub mod fast_track;
pub mod health;
pub mod hello;
pub mod history;
pub mod image;
pub mod interface;
pub mod inventory;
pub mod json_structure;
mod kept_ramdisk;
pub mod kind;
mod logged_event;
pub mod mask;
pub mod node;
pub mod plan;
mod port;
pub mod power;
pub mod provision;
pub mod raid;
pub mod ramdisk_deploy;
pub mod request;
mod request_sender;
pub mod resource;
pub mod root_disk;
pub mod run;
pub mod step;
pub mod storage;
mod table;
pub mod time;
pub mod traits;
pub mod why;

pub use abilities::Abilities;
pub use agent::Contact;
pub use basis::Basis;
pub use bundle::{Bundle, Scope};
pub use certificate::Certificate;
pub use conductors::{AgentApi, ConductorReport};
pub use health::Health;
pub use history::{Event, EventKind};
pub use inventory::Inventory;
pub use kind::RunKind;
pub use logged_event::{CertificateName, LoggedEvent};
pub use node::{Node, Wait};
pub use power::{PowerState, PowerTarget};
pub use provision::{ProvisionState, Refused, Verb};
pub use request_sender::RequestSender;
pub use resource::{Resource, ResourceKind};
pub use root_device::DiskIdentity;
pub use run::{Cursor, Logs, Run};
pub use step::{Catalogue, CatalogueStep, PlannedStep, RequestedStep, StepKind, StepResult};
pub use time::Timestamp;
