//! Nobody without the rights gets in: every endpoint of the table × every caller.

#[path = "../common/mod.rs"]
mod common;

mod basic;
mod callers;
mod endpoints;
mod fields;
mod files;
mod policy;
mod projects;
mod world;
