//! What an erase step does to the disks.

use crate::settings::Settings;
use crate::steps::{ERASE_DEVICES, ERASE_DEVICES_EXPRESS, ERASE_DEVICES_METADATA};
use block::{Method, Probe};

/// What is to be done to the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Everything on them.
    Erase,
    /// Everything where one command does it, else partition tables and signatures.
    Express,
    /// Partition tables and signatures.
    Metadata,
}

impl Job {
    /// The job of this step, if it is an erase step.
    pub(crate) fn of(step: &str) -> Option<Self> {
        match step {
            ERASE_DEVICES => Some(Job::Erase),
            ERASE_DEVICES_EXPRESS => Some(Job::Express),
            ERASE_DEVICES_METADATA => Some(Job::Metadata),
            _ => None,
        }
    }
}

/// Methods that erase the disk by a single command.
pub(crate) fn express(probe: &Probe, settings: &Settings) -> Vec<Method> {
    let allowed = |method: &Method| {
        method.is_express(probe.disk.rotational) && !settings.request.policy.never.contains(method)
    };
    block::methods(probe).into_iter().filter(allowed).collect()
}
