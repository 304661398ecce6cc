//! The tests of boot entries: one binary, so that they are linked once.

mod bytes;
mod disks;
mod file_systems;
mod plans;
mod variables;
