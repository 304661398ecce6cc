//! Whether the record of a disk shows what it claims. Pure.

use crate::Refused;
use crate::method::METHODS;
use agent_protocol::record::{DiskRecord, ERASE_METADATA, Outcome, Verification};

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
        "sampled" if !any_change => {
            not_read(format!("{name} promises {promises}, which samples do not show"))
        }
        "sampled" if seen.expected != "changed" => {
            not_read(format!("samples show a change, and not {:?}", seen.expected))
        }
        "sampled" if seen.samples == 0 => not_read("no sample of it was taken".to_owned()),
        "sampled" => Ok(()),
        other => not_read(format!("{other:?} is no way to read back an erased disk")),
    }
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

/// Its method, and a verification that passed.
fn proven(disk: &DiskRecord) -> Result<(&str, &Verification), Refused> {
    let passed =
        |seen: &&Verification| seen.passed && seen.mismatched_bytes == 0 && seen.unchanged_samples == 0;
    let seen = disk.verification.as_ref().filter(passed);
    disk.method.as_deref().zip(seen).ok_or_else(|| Refused::Unverified(label(disk)))
}

/// A disk in a message.
fn label(disk: &DiskRecord) -> String {
    format!("{} (serial {})", disk.device, disk.serial.as_deref().unwrap_or("none"))
}
