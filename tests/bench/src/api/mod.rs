//! What one controller does alone with many nodes: lists, reads, writes, heartbeats, memory, the start. Each figure stands next to
//! its limit, which the same run measures: the same work by a program that does nothing else.
//!
//! ```text
//!   fill.rs      a database with so many nodes, through the store; kept for the next run
//!   serve.rs     the controller on a copy of it
//!   http.rs      clients: threads with a kept connection each      load.rs  many of them, and what they saw
//!   limits.rs    an empty route, a prepared statement, a group commit, a sync, a handshake
//!   tls.rs       what a controller with TLS needs
//!   measure.rs   the rows          peer.rs  a real Ironic           report.rs  the table
//!   lists.rs     clients that list all nodes, once or for an hour
//!   postgres/    apart from these: three controllers on PostgreSQL next to pgbench
//! ```

pub mod fill;
mod http;
pub mod limits;
pub mod lists;
mod load;
mod measure;
mod peer;
pub mod postgres;
mod report;
mod serve;
pub mod tls;

use anyhow::Result;
pub use report::Report;
use std::path::Path;
use std::time::Duration;

/// What a run is made of.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Nodes of the large database.
    pub nodes: usize,
    /// Nodes of the small one, whose memory is measured.
    pub few: usize,
    /// Nodes that have an agent.
    pub agents: usize,
    /// How long each load lasts.
    pub span: Duration,
}

/// Where a run finds and leaves its files.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The controller.
    pub controller: &'a Path,
    /// Its `node_cache_mib`, if it is not to be the default.
    pub node_cache_mib: Option<u32>,
    /// This program, which serves the empty route.
    pub bench: &'a Path,
    /// Databases that were filled before, and are filled now.
    pub filled: &'a Path,
    /// Where a real Ironic is installed and found again, if it is to be measured, too.
    pub peers: Option<&'a Path>,
    /// A new directory on the disk that is measured.
    pub scratch: &'a Path,
}

/// Measures everything.
///
/// # Errors
/// When a process cannot be started, or an answer is not what it must be.
pub fn run(place: Place<'_>, shape: &Shape) -> Result<Report> {
    let small = fill::filled(place.filled, shape.few, shape.agents.min(shape.few))?;
    let large = fill::filled(place.filled, shape.nodes, shape.agents)?;
    measure::all(place, shape, &small, &large)
}
