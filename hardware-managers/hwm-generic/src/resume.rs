//! Checkpoints from which overwrites continue after a reboot: stored by the controller, matched by the disk's identity.
//!
//! ```json
//! {"step": "erase_devices", "reached": 4, "disks": [{"serial": "S1", "wwn": "0x5", "size": 8, "method": "overwrite-zeroes",
//!                                                    "offset": 4, "samples": [[0, "00ff…"]]}]}
//! ```
//!
//! `reached` is for the controller: an interruption does not count while it grows.
//!
//! A name like `/dev/sda` means another disk after the next boot: a disk without serial number and world wide name is
//! never resumed, nor is one whose identity two disks share.

use block::{Checkpoint, Disk, Method};
use hwm_sdk::StepContext;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// Samples of all disks together: about 40 bytes each, of the 64 KiB that a checkpoint may have.
const SAMPLES: usize = 1024;

/// A checkpoint of the whole step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Saved {
    step: String,
    /// Bytes of all disks together; 0 in those of before it was there.
    #[serde(default)]
    reached: u64,
    disks: Vec<Entry>,
}

/// One disk of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Entry {
    serial: Option<String>,
    wwn: Option<String>,
    size: u64,
    method: String,
    offset: u64,
    samples: Vec<(u64, String)>,
}

/// Reads the checkpoint that an interrupted run left, and stores those of the disks of this run.
pub(crate) struct CheckpointWriter<'a> {
    disks: &'a [Disk],
    saved: Mutex<Saved>,
    context: &'a StepContext,
}

impl<'a> CheckpointWriter<'a> {
    /// With what an interrupted run of the same step left. A checkpoint that cannot be read is ignored.
    pub(crate) fn new(step: &str, disks: &'a [Disk], context: &'a StepContext) -> Self {
        let left = context.checkpoint().and_then(|data| serde_json::from_value::<Saved>(data.clone()).ok());
        let fresh = || Saved { step: step.to_owned(), ..Saved::default() };
        let saved = left.filter(|left| left.step == step).unwrap_or_else(fresh);
        CheckpointWriter { disks, saved: Mutex::new(saved), context }
    }

    /// The checkpoint from which the disk continues, if there is one.
    pub(crate) fn take(&self, disk: &Disk) -> Option<Checkpoint> {
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entries = saved.disks.iter().filter(|entry| entry.is_of(disk));
        let entry = entries.next()?;
        let alone =
            entries.next().is_none() && self.disks.iter().filter(|disk| entry.is_of(disk)).count() == 1;
        alone.then(|| entry.checkpoint()).flatten()
    }

    /// Store the checkpoint of a disk.
    pub(crate) fn keep(&self, disk: &Disk, checkpoint: &Checkpoint) {
        if !has_identity(disk) {
            return;
        }
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        saved.disks.retain(|entry| !entry.is_of(disk));
        saved.disks.push(Entry::of(disk, checkpoint, SAMPLES / self.disks.len().max(1)));
        saved.reached = saved.disks.iter().map(|entry| entry.offset).fold(0, u64::saturating_add);
        // Plain data with string keys: this cannot fail, and a null would be no checkpoint.
        self.context.save_checkpoint(&serde_json::to_value(&*saved).unwrap_or_default());
    }
}

fn has_identity(disk: &Disk) -> bool {
    disk.serial.is_some() || disk.wwn.is_some()
}

impl Entry {
    fn of(disk: &Disk, checkpoint: &Checkpoint, most: usize) -> Self {
        let step = checkpoint.samples.len().div_ceil(most.max(1)).max(1);
        let samples = checkpoint.samples.iter().step_by(step);
        Entry {
            serial: disk.serial.clone(),
            wwn: disk.wwn.clone(),
            size: disk.size,
            method: checkpoint.method.as_str().to_owned(),
            offset: checkpoint.offset,
            samples: samples
                .map(|(at, digest)| (*at, format!("{:016x}", u64::from_be_bytes(*digest))))
                .collect(),
        }
    }

    fn is_of(&self, disk: &Disk) -> bool {
        has_identity(disk) && (&self.serial, &self.wwn, self.size) == (&disk.serial, &disk.wwn, disk.size)
    }

    fn checkpoint(&self) -> Option<Checkpoint> {
        let sample = |(at, digest): &(u64, String)| {
            u64::from_str_radix(digest, 16).ok().map(|digest| (*at, digest.to_be_bytes()))
        };
        let samples = self.samples.iter().map(sample).collect::<Option<Vec<_>>>()?;
        Some(Checkpoint { method: Method::of(&self.method)?, offset: self.offset, samples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn disk(name: &str, serial: Option<&str>, wwn: Option<&str>) -> Disk {
        Disk {
            name: name.to_owned(),
            path: PathBuf::from(format!("/dev/{name}")),
            size: 1 << 30,
            serial: serial.map(str::to_owned),
            wwn: wwn.map(str::to_owned),
            ..Disk::default()
        }
    }

    fn checkpoint(samples: u64) -> Checkpoint {
        let samples = (0..samples).map(|at| (at * 512, (at + 7).to_be_bytes())).collect();
        Checkpoint { method: Method::Overwrite, offset: 1 << 26, samples }
    }

    /// What a disk of a later boot, among `present`, goes on from after `kept` was kept.
    fn again(kept: &Disk, present: &[Disk], step: &str) -> Vec<Option<Checkpoint>> {
        let before = StepContext::new();
        let writer = CheckpointWriter::new("erase_devices", std::slice::from_ref(kept), &before);
        writer.keep(kept, &checkpoint(2));
        let after = StepContext::new().resuming(before.saved());
        let writer = CheckpointWriter::new(step, present, &after);
        present.iter().map(|disk| writer.take(disk)).collect()
    }

    #[test]
    fn a_disk_is_known_by_its_identity_alone() {
        let one = disk("sda", Some("S1"), None);
        let renamed = Disk { path: "/dev/sdb".into(), name: "sdb".into(), ..one.clone() };
        assert_eq!(again(&one, &[renamed], "erase_devices"), [Some(checkpoint(2))]);
        for (what, present) in [
            ("another serial", disk("sda", Some("S2"), None)),
            ("a name alone", disk("sda", None, None)),
            ("one more name", disk("sda", Some("S1"), Some("0x5"))),
            ("another size", Disk { size: 1 << 31, ..one.clone() }),
        ] {
            assert_eq!(again(&one, &[present], "erase_devices"), [None], "{what}");
        }
        let nameless = disk("sda", None, None);
        assert_eq!(again(&nameless, std::slice::from_ref(&nameless), "erase_devices"), [None]);
        assert_eq!(again(&one, std::slice::from_ref(&one), "erase_devices_express"), [None], "another step");
        let twin = disk("sdb", Some("S1"), None);
        assert_eq!(again(&one, &[one.clone(), twin], "erase_devices"), [None, None], "a serial of two disks");
    }

    #[test]
    fn what_was_reached_is_the_sum_of_all_disks_and_grows_with_each_of_them() {
        let disks = ["S1", "S2", "S3"].map(|serial| disk("sda", Some(serial), None));
        let context = StepContext::new();
        let writer = CheckpointWriter::new("erase_devices", &disks, &context);
        let mut reached = Vec::new();
        for (disk, offset) in [(0, 900), (1, 10), (2, 20), (1, 30)] {
            writer.keep(&disks[disk], &Checkpoint { offset, ..checkpoint(1) });
            reached.push(context.saved().unwrap()["reached"].as_u64().unwrap());
        }
        assert_eq!(reached, [900, 910, 930, 950]);
    }

    #[test]
    fn all_disks_together_stay_below_the_longest_checkpoint() {
        let disks: Vec<Disk> =
            (0..100).map(|at| disk(&format!("sd{at}"), Some(&format!("SERIAL{at:014}")), None)).collect();
        let context = StepContext::new();
        let writer = CheckpointWriter::new("erase_devices", &disks, &context);
        disks.iter().for_each(|disk| writer.keep(disk, &checkpoint(32)));
        let saved = context.saved().unwrap();
        assert_eq!(saved["disks"].as_array().unwrap().len(), 100);
        assert!(
            saved.to_string().len() < agent_protocol::command::CHECKPOINT_MAX,
            "{}",
            saved.to_string().len()
        );
    }

    #[test]
    fn what_is_no_checkpoint_is_none() {
        let disks = [disk("sda", Some("S1"), None)];
        for data in [
            serde_json::json!(5),
            serde_json::json!({"step": "erase_devices"}),
            serde_json::json!({"step": "erase_devices", "disks": [{"serial": "S1", "wwn": null, "size": 1 << 30,
                "method": "nosuch", "offset": 5, "samples": []}]}),
        ] {
            let context = StepContext::new().resuming(Some(data));
            assert_eq!(CheckpointWriter::new("erase_devices", &disks, &context).take(&disks[0]), None);
        }
    }
}
