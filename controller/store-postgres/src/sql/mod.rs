//! The statements, by noun. Those that write lock what they compare.

pub mod bundle;
pub mod certificate;
pub mod conductor;
pub mod contact;
pub mod discovery;
pub mod event_log;
pub mod inventory;
pub mod lease;
pub mod list;
#[cfg(test)]
mod list_cost;
pub mod node;
pub mod node_list;
pub mod resource;
pub mod resource_list;
pub mod webhook;
