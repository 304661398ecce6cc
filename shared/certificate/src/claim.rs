//! Whether the record of a disk shows what it claims. Pure.

use crate::Refused;
use crate::method::{EraseMethod, METHODS};
use agent_protocol::record::{DiskRecord, ERASE_METADATA, Outcome, RequiredVerification, Verification};

/// Kind of a verification that rests on the log of the drive.
const DEVICE_ATTESTED: &str = "device-attested";
/// Kind of a verification that rests on nothing, and so has not passed.
const UNVERIFIED: &str = "none";

/// That a disk which counts as erased was erased by a method of `docs/erase.md`, to a level that the method reaches, from
/// its first byte to its last, and that it was read back as far as the record says. A disk that was not erased claims
/// nothing.
///
/// # Errors
/// The first claim that the record does not show.
pub(crate) fn check(disk: &DiskRecord) -> Result<(), Refused> {
    match disk.outcome {
        Outcome::Erased => erased(disk),
        Outcome::MetadataErased => metadata_erased(disk),
        Outcome::Skipped | Outcome::Failed => Ok(()),
    }
}

fn erased(disk: &DiskRecord) -> Result<(), Refused> {
    let (name, seen) = proven(disk)?;
    let Some(method) = METHODS.iter().find(|known| known.name == name) else {
        return Err(Refused::UnknownMethod { disk: label(disk), method: name.to_owned() });
    };
    let level = disk.level.as_deref().unwrap_or("none");
    if !method.levels.contains(&level) {
        let (method, level) = (name.to_owned(), level.to_owned());
        return Err(Refused::WrongLevel { disk: label(disk), method, level });
    }
    if disk.bytes_erased != disk.size || disk.size == 0 {
        let (erased, size) = (disk.bytes_erased, disk.size);
        return Err(Refused::WrongExtent { disk: label(disk), erased, size });
    }
    read_back(disk, method, seen)
}

/// Whether the disk was read back as far as its verification says.
fn read_back(disk: &DiskRecord, method: &EraseMethod, seen: &Verification) -> Result<(), Refused> {
    let name = method.name;
    let not_read = |why: String| Err(Refused::NotReadBack { disk: label(disk), why });
    let promises = method.promises.join(" or ");
    // All of a disk can be compared with a known content only.
    let any_change = method.promises.contains(&"changed");
    let as_promised = if any_change {
        seen.expected == "zeroes"
    } else {
        method.promises.contains(&seen.expected.as_str())
    };
    match seen.kind.as_str() {
        "full" if seen.bytes_read != disk.size => {
            not_read(format!("{} of its {} bytes were", seen.bytes_read, disk.size))
        }
        "full" if !as_promised => {
            not_read(format!("it was compared with {:?}, and {name} promises {promises}", seen.expected))
        }
        "full" => Ok(()),
        "sampled" | DEVICE_ATTESTED | UNVERIFIED if !any_change => {
            not_read(format!("{name} promises {promises}, which samples do not show"))
        }
        "sampled" | DEVICE_ATTESTED | UNVERIFIED if seen.expected != "changed" => {
            not_read(format!("samples show a change, and not {:?}", seen.expected))
        }
        "sampled" if seen.samples == 0 && seen.markers == 0 => {
            not_read("no sample of it was taken, and no marker written".to_owned())
        }
        DEVICE_ATTESTED if !method.attested => {
            not_read(format!("no log of a drive reports the end of {name}"))
        }
        DEVICE_ATTESTED if seen.device_status.is_none() => {
            not_read("the record does not contain what the drive reports".to_owned())
        }
        "sampled" | DEVICE_ATTESTED | UNVERIFIED => Ok(()),
        other => not_read(format!("{other:?} is no way to read back an erased disk")),
    }
}

/// That the disk, if it counts as erased, was verified by as much as is required.
///
/// # Errors
/// It was verified by less.
pub(crate) fn suffices(disk: &DiskRecord, required: RequiredVerification) -> Result<(), Refused> {
    let kind = disk.verification.as_ref().map(|seen| seen.kind.as_str());
    let (has, why) = match kind.filter(|_| disk.outcome == Outcome::Erased) {
        Some(UNVERIFIED) => (RequiredVerification::None, "nothing of it was compared"),
        Some(DEVICE_ATTESTED) => (RequiredVerification::Device, "only its drive attests the erase"),
        _ => return Ok(()),
    };
    if has >= required {
        return Ok(());
    }
    let why = format!("{why}, and require_verification is {}", required.as_str());
    Err(Refused::NotReadBack { disk: label(disk), why })
}

fn metadata_erased(disk: &DiskRecord) -> Result<(), Refused> {
    let (name, seen) = proven(disk)?;
    if name != ERASE_METADATA {
        return Err(Refused::UnknownMethod { disk: label(disk), method: name.to_owned() });
    }
    if let Some(level) = &disk.level {
        let (method, level) = (name.to_owned(), level.clone());
        return Err(Refused::WrongLevel { disk: label(disk), method, level });
    }
    if disk.bytes_erased == 0 {
        return Err(Refused::WrongExtent { disk: label(disk), erased: 0, size: disk.size });
    }
    let not_read = |why: String| Err(Refused::NotReadBack { disk: label(disk), why });
    match (seen.kind.as_str(), seen.bytes_read) {
        ("signatures", 0) => not_read("no place where signatures can be was".to_owned()),
        ("signatures", _) => Ok(()),
        (other, _) => not_read(format!("{other:?} is no way to look for signatures")),
    }
}

/// Its method, and a verification that nothing speaks against and that passed, unless there was nothing to compare.
fn proven(disk: &DiskRecord) -> Result<(&str, &Verification), Refused> {
    let uncontradicted = |seen: &&Verification| {
        seen.passed == (seen.kind != UNVERIFIED)
            && seen.mismatched_bytes == 0
            && seen.unchanged_samples == 0
            && seen.markers_found == 0
    };
    let seen = disk.verification.as_ref().filter(uncontradicted);
    disk.method.as_deref().zip(seen).ok_or_else(|| Refused::Unverified(label(disk)))
}

/// A disk in a message.
fn label(disk: &DiskRecord) -> String {
    format!("{} (serial {})", disk.device, disk.serial.as_deref().unwrap_or("none"))
}
