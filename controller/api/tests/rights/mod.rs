//! Callers without access are rejected: every endpoint of the table × every caller.

mod basic;
pub mod callers;
mod choices;
mod endpoints;
mod fields;
mod files;
mod policy;
mod projects;
mod token;
pub mod world;
