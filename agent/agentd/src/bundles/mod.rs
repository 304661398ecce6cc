//! Bundles of external hardware managers: fetched after the lookup, before the first heartbeat.
//!
//! ```text
//!   offer (lookup) ─▶ fetch: into a sealed memfd ─▶ judge: digest, form, signature ─▶ mount: loop device, squashfs
//!
//!   DIR/NAME/root/          the root file system, read-only
//!           /manifest.json  the manifest as it was signed; written last: where it is, all is
//!           /digest         SHA-256 of the bundle
//! ```
//!
//! A bundle that cannot be had or is wrong is a [`Record`] with its reason, and the agent goes on without it. Bytes are
//! verified only after no process can write them any more, and those bytes are mounted.

mod fetch;

use crate::config::Config;
use crate::http::Client;
use crate::lookup::{Controller, LookupResult};
use crate::memory;
use crate::state::State;
use agent_protocol::lookup::BundleOffer;
use bundle::Trust;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All bundles of a boot within this, or without them.
const TIME_LIMIT: Duration = Duration::from_secs(600);
/// Most bundles of a node.
const COUNT_MAX: usize = 32;

/// What came of one offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What was offered.
    pub offer: BundleOffer,
    /// The directory with the manager, or why there is none.
    pub outcome: Result<PathBuf, String>,
}

/// Fetch and mount what the lookup named. Never fails: what went wrong is in the records and in the log.
pub async fn load(
    config: &Config,
    client: &Client,
    controller: &Controller,
    found: &LookupResult,
) -> Vec<Record> {
    let Some(directory) = &config.bundles else {
        let refused = |offer: &BundleOffer| {
            record(offer, Err("outside the ramdisk bundles are left alone without --bundles".to_owned()))
        };
        return found.bundles.iter().map(refused).collect();
    };
    hwm_host::bundles::clear(directory);
    if found.bundles.is_empty() {
        return Vec::new();
    }
    let deadline = tokio::time::Instant::now() + TIME_LIMIT;
    let trust = hwm_host::bundles::trusted_keys(&config.trusted_keys);
    // The other half is for what the managers do.
    let mut room = memory::available_kib().unwrap_or(0) / 2 * 1024;
    let mut records: Vec<Record> = Vec::new();
    for offer in &found.bundles {
        let outcome = match &trust {
            Err(problem) => Err(problem.clone()),
            Ok(trust) => {
                let loader = BundleLoader { directory, trust, room };
                let one = loader.load(client, controller, found, offer, records.len());
                let late = format!("not within the {} s that all bundles have", TIME_LIMIT.as_secs());
                tokio::time::timeout_at(deadline, one).await.unwrap_or(Err(late))
            }
        };
        if outcome.is_ok() {
            room = room.saturating_sub(offer.size);
        }
        records.push(record(offer, outcome));
    }
    records
}

/// Start the mounted managers, and list the others with their reasons in the agent's inventory. Blocks.
pub fn start(state: &State, records: &[Record]) {
    let source = |record: &Record| {
        let BundleOffer { name, version, .. } = &record.offer;
        match &record.outcome {
            Ok(place) => hwm_host::one(place, None),
            Err(reason) => Err(format!("bundle {name} {version}: {reason}")),
        }
    };
    state.add_externals(records.iter().map(source).collect());
}

fn record(offer: &BundleOffer, outcome: Result<PathBuf, String>) -> Record {
    let BundleOffer { name, version, digest, .. } = offer;
    match &outcome {
        Ok(path) => tracing::info!(name, version, digest, path = %path.display(), "bundle mounted"),
        Err(reason) => tracing::error!(name, version, digest, reason, "bundle left out"),
    }
    Record { offer: offer.clone(), outcome }
}

struct BundleLoader<'a> {
    directory: &'a Path,
    trust: &'a Trust,
    /// Memory for it, in bytes.
    room: u64,
}

impl BundleLoader<'_> {
    async fn load(
        &self,
        client: &Client,
        controller: &Controller,
        found: &LookupResult,
        offer: &BundleOffer,
        before: usize,
    ) -> Result<PathBuf, String> {
        if before >= COUNT_MAX {
            return Err(format!("more than {COUNT_MAX} bundles"));
        }
        // It becomes a part of a URL.
        if !bundle::is_digest(&offer.digest) {
            return Err(format!("{:?} is not a SHA-256", offer.digest));
        }
        if offer.size > self.room {
            let (need, room) = (offer.size, self.room);
            return Err(format!("it has {need} bytes, and this machine has memory for {room} more"));
        }
        let file = fetch::fetch(client, controller, found, offer).await?;
        let (directory, trust, offer) = (self.directory.to_owned(), self.trust.clone(), offer.clone());
        let mounted = tokio::task::spawn_blocking(move || {
            hwm_host::bundles::install(&directory, &file, &trust, &offer)
        });
        mounted.await.map_err(|error| format!("mounting it broke: {error}"))?
    }
}
