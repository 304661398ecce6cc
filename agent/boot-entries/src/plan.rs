//! Which boot entries stay, which go, and in which order the firmware tries them. Pure.

use crate::device_path::{HardDrive, Signature, partition};
use crate::load_option::LoadOption;
use std::collections::BTreeSet;

/// What the firmware has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Firmware {
    /// `Boot0001` and its value.
    pub entries: Vec<(u16, Vec<u8>)>,
    /// `BootOrder`
    pub order: Vec<u16>,
    /// `BootCurrent`: what this boot came from.
    pub current: Option<u16>,
    /// `BootNext`: what the next boot alone tries first.
    pub next: Option<u16>,
}

/// What is to be done, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Entries that go.
    pub remove: Vec<Removal>,
    /// `BootNext` names one of them.
    pub clear_next: bool,
    /// Our entry.
    pub number: u16,
    /// Its value, unless the firmware has it.
    pub add: Option<Vec<u8>>,
    /// The order, unless the firmware has it.
    pub order: Option<Vec<u16>>,
}

/// An entry that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// `0001` of `Boot0001`.
    pub number: u16,
    /// What the firmware's menu shows.
    pub label: String,
    /// Why.
    pub why: Reason,
}

/// Why an entry goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It starts something on a disk by our label: an earlier deployment made it.
    SameLabel,
    /// Its partition is on no disk of the machine.
    NoSuchPartition,
}

impl Reason {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SameLabel => "same_label",
            Self::NoSuchPartition => "no_such_partition",
        }
    }
}

/// Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the firmware's NVRAM has {0} boot entries, and no number is free for another one")]
pub struct NoNumber(pub usize);

/// What makes `wanted` the first entry. `partitions` are those of all disks of the machine; `None` where that is not known
/// for sure, and then no entry goes because its partition is gone.
///
/// # Errors
/// [`NoNumber`]
pub fn plan(
    firmware: &Firmware,
    wanted: &LoadOption,
    value: &[u8],
    partitions: Option<&BTreeSet<[u8; 16]>>,
) -> Result<Plan, NoNumber> {
    let ours = firmware.entries.iter().find(|(_, entry)| entry == value).map(|(number, _)| *number);
    let judged = firmware.entries.iter().filter(|(number, _)| Some(*number) != ours);
    let remove: Vec<Removal> = judged
        .filter_map(|(number, entry)| {
            let option = LoadOption::parse(entry)?;
            let current = firmware.current == Some(*number);
            let why = reason(&option, &wanted.description, current, partitions)?;
            Some(Removal { number: *number, label: option.description, why })
        })
        .collect();
    let gone: BTreeSet<u16> = remove.iter().map(|removal| removal.number).collect();
    let number = match ours {
        Some(number) => number,
        None => free(firmware, &gone).ok_or(NoNumber(firmware.entries.len()))?,
    };
    let rest = firmware.order.iter().copied().filter(|other| *other != number && !gone.contains(other));
    let order: Vec<u16> = std::iter::once(number).chain(rest).collect();
    Ok(Plan {
        clear_next: firmware.next.is_some_and(|next| gone.contains(&next)),
        remove,
        number,
        add: ours.is_none().then(|| value.to_vec()),
        order: (order != firmware.order).then_some(order),
    })
}

/// Why an entry goes; only one that begins with a partition of a disk does.
fn reason(
    option: &LoadOption,
    label: &str,
    current: bool,
    partitions: Option<&BTreeSet<[u8; 16]>>,
) -> Option<Reason> {
    let HardDrive { signature, .. } = partition(&option.path)?;
    if option.description == label {
        return Some(Reason::SameLabel);
    }
    match (signature, partitions) {
        // What this boot came from is there, on whatever medium.
        (Signature::Gpt(id), Some(partitions)) if !current && !partitions.contains(&id) => {
            Some(Reason::NoSuchPartition)
        }
        _ => None,
    }
}

/// The smallest number that nothing names, or an entry that goes has.
fn free(firmware: &Firmware, gone: &BTreeSet<u16>) -> Option<u16> {
    let entries = firmware.entries.iter().map(|(number, _)| *number);
    let named = entries.chain(firmware.order.iter().copied()).chain(firmware.current).chain(firmware.next);
    let taken: BTreeSet<u16> = named.filter(|number| !gone.contains(number)).collect();
    (0..=u16::MAX).find(|number| !taken.contains(number))
}
