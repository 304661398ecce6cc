//! The tests of the manager, one module a subject: one binary, so that they are linked once.

mod bad_images;
mod bios;
#[path = "../../../agent/block/tests/common/mod.rs"]
mod common;
mod conformance;
mod controllers;
mod hardware;
mod holders;
mod interrupted;
mod loop_devices;
mod step;
mod tree;
mod verify;
mod write_image;
