//! `/v1/nodes`, one file a resource.

pub mod boot_device;
pub mod create;
pub mod delete;
pub mod erase_plan;
pub mod history;
pub mod inventory;
pub mod list;
pub mod maintenance;
pub mod patch;
pub mod power;
pub mod provision;
pub mod rules;
pub mod show;
pub mod states;
pub mod steps;
pub mod traits;
pub mod validate;
