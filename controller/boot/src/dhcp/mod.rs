//! DHCP for booting: the only server of a network, or a helper next to another one (proxy DHCP).
//!
//! Not a DHCP server for offices: one network, one range, leases in memory.

mod answer;
mod config;
mod leases;
mod service;

pub use answer::{Port, Reply, To, answer};
pub use config::{DhcpConfig, Mode, Pool};
pub use leases::{Leases, SharedLeases};
pub use service::{ActiveCheck, Dhcp, serve};
