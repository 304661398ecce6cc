//! The tests, one module a subject: one binary, so that they are linked once.

mod attach;
mod common;
mod docs;
mod drives;
mod engine;
mod libblkid;
mod list;
mod loop_devices;
mod resume;
mod signatures;
mod simulated;
