//! Programs that others wrote, installed and started on loopback; what more than the scenarios needs of them.

pub mod certificate;
pub mod disk;
pub mod ironic;
pub mod network;
pub mod peers;
pub mod process;
