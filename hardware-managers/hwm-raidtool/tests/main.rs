//! The tests, one module a subject: one binary, so that they are linked once.

mod conformance;
mod raidtool;
mod rig;
mod served;
