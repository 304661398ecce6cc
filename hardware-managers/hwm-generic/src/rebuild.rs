//! Arrays and volume groups after automated cleaning: the apparent configuration of a node must not change
//! (specs/state-machine.txt, CLEANING), so what was there before is there again, empty. After manual cleaning it is not.

use crate::job::Job;
use agent_protocol::record::{DiskRecord, Outcome, Rebuilt};
use block::fault::chain;
use block::layout::{self, Member};
use block::{Device, Disk};
use hwm_sdk::{StepCall, StepKind};
use serde_json::Value;
use std::sync::{Mutex, PoisonError};

/// What an erase step has to do about arrays and groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RebuildMode {
    /// Nothing.
    None,
    /// Remember them: a later step of the run erases more.
    Remember,
    /// Remember them, and write them back once every disk is erased.
    Rebuild,
}

impl RebuildMode {
    /// From the node's fields (Ironic's names) that describe the run; and whether the step is the first of the run that
    /// writes to disks. Only a cleaning that ends with an available node is an automated one; without the list of its
    /// steps the last erase cannot be determined.
    pub(crate) fn of(call: &StepCall) -> (Self, bool) {
        let info = &call.node["driver_internal_info"];
        let automated = call.kind == StepKind::Clean && call.node["target_provision_state"] == "available";
        let refused = info["agent_rebuild_volumes"] == Value::Bool(false);
        let index = info["clean_step_index"].as_u64().and_then(|index| usize::try_from(index).ok());
        let (Some(steps), Some(index)) = (info["clean_steps"].as_array(), index) else {
            return (Self::None, true);
        };
        let current = steps.get(index).is_some_and(|step| step["step"] == call.step.step.as_str());
        let writes = |step: &Value| {
            step["interface"] == "raid" || step["step"].as_str().is_some_and(|step| Job::of(step).is_some())
        };
        let first = !steps.iter().take(index).any(writes);
        if !automated || refused || !current {
            return (Self::None, true);
        }
        (if steps.iter().skip(index + 1).any(writes) { Self::Remember } else { Self::Rebuild }, first)
    }
}

/// What the disks were members of when an erase step of this boot began.
#[derive(Debug, Default)]
pub(crate) struct RememberedVolumes(Mutex<Vec<(Identity, Member)>>);

/// What a step does about arrays and groups, and what is known of them.
pub(crate) struct Volumes<'a> {
    pub(crate) mode: RebuildMode,
    pub(crate) remembered: &'a RememberedVolumes,
}

/// A disk within one boot.
type Identity = (Option<String>, Option<String>, u64, std::path::PathBuf);

fn identity(disk: &Disk) -> Identity {
    (disk.serial.clone(), disk.wwn.clone(), disk.size, disk.path.clone())
}

impl RememberedVolumes {
    /// A run begins: what an earlier one left is not its own.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Look at a disk before it is written. What cannot be read is not remembered.
    pub(crate) fn remember(&self, device: &Device) {
        match layout::remember(device) {
            Ok(Some(member)) => {
                let disk = identity(device.disk());
                let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                known.retain(|(other, _)| *other != disk);
                known.push((disk, member));
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(device = %device.disk().path.display(), error = chain(&error), "not remembered");
            }
        }
    }

    /// Write back what is complete on the erased disks, and say so in their records. Nothing is remembered afterwards.
    pub(crate) fn rebuild(&self, disks: &mut [(&Device, &mut DiskRecord)]) {
        let known = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let member = |(device, record): &(&Device, &mut DiskRecord)| {
            let disk = identity(device.disk());
            let zeroes = record.outcome == Outcome::Erased
                && record.verification.as_ref().is_some_and(|seen| seen.passed && seen.expected == "zeroes");
            known.iter().find(|(other, _)| zeroes && *other == disk).map(|(_, member)| member.clone())
        };
        let members = layout::complete(disks.iter().map(member).collect());
        let mut failed: Vec<Member> = Vec::new();
        for ((device, record), member) in disks.iter_mut().zip(&members) {
            let Some(member) = member else { continue };
            if failed.iter().any(|other| other.is_with(member)) {
                continue;
            }
            match layout::write_back(*device, member) {
                Ok(regions) => record.rebuilt = regions.into_iter().map(rebuilt).collect(),
                Err(error) => {
                    record.outcome = Outcome::Failed;
                    record.reason = Some(format!("erased, but not rebuilt: {}", chain(&error)));
                    failed.push(member.clone());
                }
            }
        }
        // Half of an array is worse than none.
        for ((device, record), member) in disks.iter_mut().zip(&members) {
            let Some(member) = member.as_ref().filter(|member| failed.iter().any(|it| it.is_with(member)))
            else {
                continue;
            };
            if record.rebuilt.is_empty() {
                continue;
            }
            match layout::blank(*device, member) {
                Ok(()) => record.rebuilt.clear(),
                Err(error) => {
                    record.outcome = Outcome::Failed;
                    record.reason = Some(format!("erased, but rebuilt in part: {}", chain(&error)));
                }
            }
        }
    }
}

fn rebuilt(region: layout::Rebuilt) -> Rebuilt {
    let layout::Rebuilt { kind, name, uuid, bytes, offset } = region;
    Rebuilt { kind: kind.to_owned(), name, uuid, bytes, offset }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_protocol::step::Step;
    use serde_json::json;

    fn mode(kind: StepKind, target: &str, steps: Value, index: u64) -> (RebuildMode, bool) {
        let steps_now = steps.as_array().cloned().unwrap_or_default();
        let now = steps_now
            .get(usize::try_from(index).unwrap())
            .cloned()
            .unwrap_or(json!({"step": "erase_devices"}));
        let step: Step =
            serde_json::from_value(json!({"interface": "deploy", "step": now["step"], "priority": 1}))
                .unwrap();
        let node = json!({"target_provision_state": target,
            "driver_internal_info": {"clean_steps": steps, "clean_step_index": index}});
        RebuildMode::of(&StepCall {
            kind,
            step,
            args: Default::default(),
            node,
            inventory: Default::default(),
        })
    }

    #[test]
    fn the_last_erase_of_an_automated_cleaning_rebuilds_and_no_other_step() {
        let step = |interface: &str, step: &str| json!({"interface": interface, "step": step});
        let both = || {
            json!([
                step("deploy", "erase_devices_metadata"),
                step("bios", "x"),
                step("deploy", "erase_devices")
            ])
        };
        let clean = StepKind::Clean;
        assert_eq!(mode(clean, "available", both(), 0), (RebuildMode::Remember, true));
        assert_eq!(mode(clean, "available", both(), 2), (RebuildMode::Rebuild, false));
        let raid = json!([step("deploy", "erase_devices"), step("raid", "create_configuration")]);
        assert_eq!(mode(clean, "available", raid, 0), (RebuildMode::Remember, true));
        assert_eq!(mode(clean, "manageable", both(), 2).0, RebuildMode::None, "manual cleaning");
        assert_eq!(
            mode(clean, "available", Value::Null, 0).0,
            RebuildMode::None,
            "the steps that follow are unknown"
        );
        assert_eq!(mode(StepKind::Deploy, "available", both(), 2).0, RebuildMode::None);
    }
}
