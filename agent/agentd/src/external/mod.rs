//! Hardware managers that are programs of their own (hardware-managers/hwm-sdk/PROTOCOL.md): each in a sandbox, each
//! behind the trait of those in the tree.
//!
//! ```text
//!   source     where they are; manifest and digest
//!   manager    External: the trait, its lives, its restarts, what is kept of it
//!   accept     what of its answers is taken (pure)
//!   link       one life of its process: calls and deadlines
//!   attend     the thread that reads and kills it
//!   services   what it may ask: read_device, fetch
//!   grants     what its manifest grants, as devices of this machine
//! ```
//!
//! Invariants: nothing a manager does ends or blocks the agent for longer than its deadlines; what it breaks is its
//! own step; no reserved name, no step of the agent's own is its; two of one name: the second is refused.

mod accept;
mod attend;
mod grants;
mod limits;
mod link;
mod manager;
mod records;
mod services;
mod source;

pub use limits::Limits;
pub use manager::External;
pub use source::{ARTIFACTS, Source, read};

use agent_protocol::inventory::{External as Told, Inventory, ManagerRecord, ManagerReport, Suppression};
use hwm_sdk::protocol::Suppressed;
use hwm_sdk::{HardwareManager, StepKind};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All external managers of this agent.
#[derive(Debug, Default)]
pub struct Externals {
    managers: Vec<Arc<External>>,
    /// What could not even be read.
    unreadable: Vec<String>,
    /// Removed with this: what managers have fetched.
    fetched: Option<PathBuf>,
}

/// Names of all steps that these managers offer, whatever the hardware.
pub fn step_names(managers: &[Arc<dyn HardwareManager>]) -> BTreeSet<String> {
    let none = Inventory::default();
    let of = |manager: &Arc<dyn HardwareManager>| {
        StepKind::ALL.into_iter().flat_map(|kind| manager.steps(kind, &none)).collect::<Vec<_>>()
    };
    managers.iter().flat_map(of).map(|step| step.step).collect()
}

impl Externals {
    /// The managers of these sources. `own` are the steps of the agent itself; what managers fetch is put into a
    /// directory below `place`.
    pub fn new(
        sources: Vec<Result<Source, String>>,
        own: &BTreeSet<String>,
        place: &Path,
        limits: Limits,
    ) -> Self {
        let mut all = Self::default();
        if !sources.is_empty() {
            let name = format!("anneal-fetched-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
            all.fetched = directory(&place.join(name));
        }
        for source in sources {
            let source = match source {
                Ok(source) => source,
                Err(problem) => {
                    tracing::error!(problem, "a hardware manager cannot be read");
                    all.unreadable.push(problem);
                    continue;
                }
            };
            let known = all.managers.iter().any(|other| other.name() == source.manifest.name);
            let fetched = all.fetched.as_ref().and_then(|parent| directory(&parent.join(&source.digest)));
            let manager = External::new(source, own.clone(), fetched, limits);
            if known {
                manager.refuse("there is another manager of its name");
            }
            all.managers.push(Arc::new(manager));
        }
        all
    }

    /// Those that may take part.
    pub fn managers(&self) -> impl Iterator<Item = Arc<dyn HardwareManager>> + '_ {
        let refused = |manager: &&Arc<External>| manager.report().state == "refused";
        let taking_part = self.managers.iter().filter(move |manager| !refused(manager));
        taking_part.map(|manager| manager.clone() as Arc<dyn HardwareManager>)
    }

    /// Start all that are not running, at the same time, and add to the inventory what they are, know and did wrong.
    /// Ends when each is ready or has failed, at the latest with its deadlines.
    pub fn complete(&self, inventory: &mut Inventory) {
        if self.managers.is_empty() && self.unreadable.is_empty() {
            return;
        }
        let found = &*inventory;
        std::thread::scope(|scope| {
            for manager in &self.managers {
                scope.spawn(move || manager.evaluate(found));
            }
        });
        let suppressed = self.suppressed(inventory);
        let unreadable = self.unreadable.iter().map(|problem| ManagerReport {
            state: "refused".to_owned(),
            records: vec![ManagerRecord { at: 0.0, what: problem.clone() }],
            ..ManagerReport::default()
        });
        let reports = self.managers.iter().map(|manager| manager.report());
        inventory.anneal = Some(Told { hardware_managers: reports.chain(unreadable).collect(), suppressed });
    }

    /// Probes that a manager wants left out on this very machine.
    pub fn suppressed(&self, inventory: &Inventory) -> Vec<Suppression> {
        let mut all = Vec::new();
        for manager in &self.managers {
            for quirk in manager.quirks(inventory) {
                let probe = match quirk.suppress {
                    Suppressed::Bmc => "bmc",
                    Suppressed::Lldp => "lldp",
                    Suppressed::Unknown => continue,
                };
                if quirk.covers(&inventory.system_vendor) {
                    let (manager, reason) =
                        (manager.name().to_owned(), quirk.reason.chars().take(256).collect());
                    all.push(Suppression { probe: probe.to_owned(), manager, reason });
                }
            }
        }
        all
    }

    /// End them all, at the same time.
    pub fn shut_down(&self) {
        std::thread::scope(|scope| {
            for manager in &self.managers {
                scope.spawn(|| manager.shut_down());
            }
        });
    }
}

impl Drop for Externals {
    fn drop(&mut self) {
        if let Some(fetched) = &self.fetched {
            // It may be gone already; what stays is a directory of a temporary file system.
            let _ = std::fs::remove_dir_all(fetched);
        }
    }
}

/// A directory that every user can look into.
fn directory(path: &Path) -> Option<PathBuf> {
    let made = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)));
    match made {
        Ok(()) => Some(path.to_owned()),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "no place for what managers fetch");
            None
        }
    }
}
