//! cgroup v2: one group a program, `MOUNT/anneal-PID/NAME-N`.

use crate::error::Error;
use crate::grants::Grants;
use crate::host::Host;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Controllers that are used, with what they bound.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];
/// One processor: microseconds of each 100 ms.
const CPU_MAX: &str = "100000 100000";
/// A fifth of what everything else has, when all want the processor.
const CPU_WEIGHT: &str = "20";

/// Held while a group is made in the directory of this process, and while that directory is removed: the last program
/// that ends must not take it from the next that starts.
static PARENT: Mutex<()> = Mutex::new(());

/// The group that a program is to have. Pure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    mount: PathBuf,
    /// Name of the group's directory.
    name: String,
    /// Controllers that the host has of those that are used.
    controllers: Vec<&'static str>,
    /// File and content.
    settings: Vec<(&'static str, String)>,
}

/// The group for a program with these grants, where the host has cgroup v2.
pub(crate) fn wanted(name: &str, grants: &Grants, host: &Host) -> Option<Wanted> {
    let (mount, offered) = host.cgroup.as_ref()?;
    let has = |controller: &&str| offered.iter().any(|offered| offered == controller);
    let controllers: Vec<&str> = CONTROLLERS.into_iter().filter(|controller| has(controller)).collect();
    let mut settings = Vec::new();
    for controller in &controllers {
        match *controller {
            "memory" => {
                // The scratch is memory, too.
                let bytes = (u64::from(grants.memory_mib) + u64::from(grants.scratch_mib)) << 20;
                settings.push(("memory.max", bytes.to_string()));
                settings.push(("memory.oom.group", "1".to_owned()));
            }
            "pids" => settings.push(("pids.max", grants.pids.to_string())),
            _ => {
                settings.push(("cpu.max", CPU_MAX.to_owned()));
                settings.push(("cpu.weight", CPU_WEIGHT.to_owned()));
            }
        }
    }
    Some(Wanted { mount: mount.clone(), name: format!("{name}-{}", host.user), controllers, settings })
}

impl Wanted {
    /// Whether a controller will bound the program.
    pub(crate) fn has(&self, controller: &str) -> bool {
        self.controllers.contains(&controller)
    }

    /// Make it. A group without controllers is made as well: it kills all at once.
    ///
    /// # Errors
    /// When a controller that the host offers cannot be had, or a bound not be set.
    pub(crate) fn make(&self) -> Result<Cgroup, Error> {
        let ours = self.mount.join(format!("anneal-{}", std::process::id()));
        let parent = lock();
        make(&ours)?;
        for controller in &self.controllers {
            for group in [&self.mount, &ours] {
                write(&group.join("cgroup.subtree_control"), &format!("+{controller}"))?;
            }
        }
        let path = ours.join(&self.name);
        make(&path)?;
        drop(parent);
        let group = Cgroup { path, parent: ours };
        for (file, content) in &self.settings {
            write(&group.path.join(file), content)?;
        }
        // Not in every kernel: without swap there is nothing to bound.
        let _ = fs::write(group.path.join("memory.swap.max"), "0");
        Ok(group)
    }
}

fn lock() -> MutexGuard<'static, ()> {
    PARENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make(path: &Path) -> Result<(), Error> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::host(format!("make cgroup {}", path.display()), error))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, content: &str) -> Result<(), Error> {
    fs::write(path, content)
        .map_err(|error| Error::host(format!("write {content:?} to {}", path.display()), error))
}

/// A group; removed when dropped.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    parent: PathBuf,
}

impl Cgroup {
    /// Its directory, for `CLONE_INTO_CGROUP`.
    pub(crate) fn open(&self) -> Result<File, Error> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let opened = fs::OpenOptions::new().read(true).custom_flags(flags).open(&self.path);
        opened.map_err(|error| Error::host(format!("open cgroup {}", self.path.display()), error))
    }

    /// Kill all that is in it (`cgroup.kill`, Linux 5.14). Best effort: the pid namespace is killed as well.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.path) {
            tracing::warn!(cgroup = %self.path.display(), %error, "a cgroup cannot be removed");
        }
        let _parent = lock();
        // Succeeds with the last group in it.
        let _ = fs::remove_dir(&self.parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_grant_becomes_a_bound() {
        let all = ["cpu", "hugetlb", "memory", "pids"].map(str::to_owned).to_vec();
        let host = Host {
            cgroup: Some(("/cg".into(), all)),
            root_is_rootfs: false,
            mount_points: Vec::new(),
            user: 7,
        };
        let grants = Grants { scratch_mib: 1, memory_mib: 2, pids: 3, ..Grants::default() };
        let wanted = wanted("x", &grants, &host).expect("cgroups");
        let settings: Vec<_> = wanted.settings.iter().map(|(file, text)| (*file, text.as_str())).collect();
        assert_eq!(
            settings,
            [
                ("memory.max", "3145728"),
                ("memory.oom.group", "1"),
                ("pids.max", "3"),
                ("cpu.max", "100000 100000"),
                ("cpu.weight", "20"),
            ]
        );
        assert!(["memory", "pids", "cpu"].into_iter().all(|controller| wanted.has(controller)));
    }
}
