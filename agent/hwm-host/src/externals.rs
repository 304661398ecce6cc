//! All vendors' hardware managers of one agent.

use crate::limits::Limits;
use crate::manager::External;
use crate::source::Source;
use agent_protocol::inventory::{
    External as ExternalReport, Inventory, ManagerRecord, ManagerReport, Suppression,
};
use hwm_sdk::protocol::Suppressed;
use hwm_sdk::{HardwareManager, StepKind};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

/// All external managers of this agent.
#[derive(Debug)]
pub struct Externals {
    held: RwLock<Held>,
    /// Steps of the agent itself.
    own: BTreeSet<String>,
    place: PathBuf,
    limits: Limits,
}

#[derive(Debug, Clone, Default)]
struct Held {
    managers: Vec<Arc<External>>,
    /// What could not even be read.
    unreadable: Vec<String>,
    /// Removed in the end: what managers have fetched.
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
        let all = Self { held: RwLock::default(), own: own.clone(), place: place.to_owned(), limits };
        all.add(sources);
        all
    }

    /// More of them. They are started when the inventory is completed the next time.
    pub fn add(&self, sources: Vec<Result<Source, String>>) {
        let mut all = self.held.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !sources.is_empty() && all.fetched.is_none() {
            let name = format!("anneal-fetched-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
            all.fetched = directory(&self.place.join(name));
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
            let manager = External::new(source, self.own.clone(), fetched, self.limits);
            if known {
                manager.refuse("there is another manager of its name");
            }
            all.managers.push(Arc::new(manager));
        }
    }

    fn held(&self) -> Held {
        self.held.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Those that may take part.
    pub fn managers(&self) -> Vec<Arc<dyn HardwareManager>> {
        let mut taking_part = self.held().managers;
        taking_part.retain(|manager| manager.report().state != "refused");
        taking_part.into_iter().map(|manager| manager as Arc<dyn HardwareManager>).collect()
    }

    /// Start all that are not running, at the same time, and add to the inventory what they are, know and did wrong.
    /// Ends when each is ready or has failed, at the latest with its deadlines.
    pub fn complete(&self, inventory: &mut Inventory) {
        let Held { managers, unreadable, .. } = self.held();
        if managers.is_empty() && unreadable.is_empty() {
            return;
        }
        let found = &*inventory;
        std::thread::scope(|scope| {
            for manager in &managers {
                scope.spawn(move || manager.evaluate(found));
            }
        });
        let suppressed = self.suppressed(inventory);
        let unreadable = unreadable.iter().map(|problem| ManagerReport {
            state: "refused".to_owned(),
            records: vec![ManagerRecord { at: 0.0, what: problem.clone() }],
            ..ManagerReport::default()
        });
        let reports = managers.iter().map(|manager| manager.report());
        inventory.anneal =
            Some(ExternalReport { hardware_managers: reports.chain(unreadable).collect(), suppressed });
    }

    /// Probes that a manager wants left out on this very machine.
    pub fn suppressed(&self, inventory: &Inventory) -> Vec<Suppression> {
        let mut all = Vec::new();
        for manager in &self.held().managers {
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
            for manager in self.held().managers {
                scope.spawn(move || manager.shut_down());
            }
        });
    }
}

impl Drop for Externals {
    fn drop(&mut self) {
        if let Some(fetched) = self.held().fetched {
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
