//! Drives that QEMU does not have: what their own methods do is seen from outside, in the memory that is their medium.
//! Some must not be touched, and nothing is; then the operator keeps those, and each of the others is erased by
//! its own method, as far as that is true.

use agent_protocol::record::{DiskRecord, Outcome};
use anyhow::{Result, ensure};
use lab::controller::Controller;
use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::stage::{ERASE, NODE, SHORT, Stage, through};

pub const ABOUT: &str =
    "SATA and SAS drives in user space: sanitize, secure erase, format; frozen, reserved, lying, busy ones";

/// Drives, the method that erases each, and what the disk then reads as.
const ERASED: [(&str, &str, Left); 14] = [
    ("ata,SATACRYPTO,crypto", "ata-sanitize-crypto", Left::Noise),
    ("ata,SATABLOCK,block", "ata-sanitize-block", Left::Zeroes),
    ("ata,SATAOVER,overwrite,spins", "ata-sanitize-overwrite", Left::Zeroes),
    ("ata,SATASECURE,security,spins", "ata-secure-erase-enhanced", Left::Noise),
    ("ata,SATAFLASH,security", "ata-secure-erase-enhanced", Left::Noise),
    ("ata,SATAPLAIN,security,plain", "ata-secure-erase", Left::Zeroes),
    ("ata,SATALIES,crypto,block,lies", "ata-sanitize-block", Left::Zeroes),
    ("ata,SATABUSY,block,busy,takes=6", "ata-sanitize-block", Left::Zeroes),
    ("ata,SATAKEYBUSY,crypto,busy,takes=6", "ata-sanitize-crypto", Left::Noise),
    ("scsi,SASCRYPTO,crypto", "scsi-sanitize-crypto", Left::Noise),
    ("scsi,SASOVER,overwrite,spins", "scsi-sanitize-overwrite", Left::Zeroes),
    ("scsi,SASFORMAT,format", "scsi-format-unit", Left::Zeroes),
    ("scsi,SASFAILS,crypto,block,fails", "scsi-sanitize-block", Left::Zeroes),
    ("scsi,SASBUSY,block,busy,takes=6", "scsi-sanitize-block", Left::Zeroes),
];

/// Drives that must not be erased, and the reason that their record gives.
const REFUSED: [(&str, &str); 4] = [
    ("ata,FROZEN,security,spins,frozen", "the drive is frozen"),
    ("scsi,RESERVED,crypto,reserved", "a persistent reservation"),
    ("ata,HIDDEN,crypto,hidden=2048", "2048 sectors are hidden by the host protected area"),
    ("ata,ACCESSIBLE,crypto,hidden=1024,amac", "1024 sectors are hidden by the accessible max address"),
];

/// Methods below the level that are allowed by name.
const WEAKER: [&str; 3] = ["ata-secure-erase-enhanced", "ata-secure-erase", "scsi-format-unit"];

/// What a disk reads as after its erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Zeroes,
    Noise,
}

pub async fn story(stage: Stage) -> Result<()> {
    let specs: Vec<&str> =
        ERASED.iter().map(|drive| drive.0).chain(REFUSED.iter().map(|drive| drive.0)).collect();
    let rig = Rig::new(&stage, &specs)?;
    let mut site = rig.site(&stage).await?;
    // Its BMC answers while this is kept.
    let _node = rig.node(&mut site).await?;
    let controller = &site.controller;

    let held = through(controller, clean(), "clean failed").await?;
    for (spec, reason) in REFUSED {
        let record = held.record(ERASE, serial(spec))?;
        ensure!(record.outcome == Outcome::Skipped, "{record:?}");
        ensure!(
            record.reason.as_deref().is_some_and(|given| given.contains(reason)),
            "{reason:?}: {record:?}"
        );
        held.ensure_says(&[serial(spec), reason])?;
    }
    for disk in rig.disks() {
        // The others' host overwrites theirs whenever it likes.
        if !disk.serial().ends_with("BUSY") {
            disk.ensure_untouched()?;
        }
    }

    keep_refused(controller).await?;
    let cleaned = through(controller, clean(), "manageable").await?;
    for (spec, method, left) in ERASED {
        let serial = serial(spec);
        let record = cleaned.record(ERASE, serial)?;
        ensure!(record.outcome == Outcome::Erased && record.method.as_deref() == Some(method), "{record:?}");
        ensure!(fallbacks(&record) == expected_fallbacks(serial), "{record:?}");
        let seen =
            record.verification.as_ref().map(|seen| (seen.kind.as_str(), seen.device_status.is_some()));
        ensure!(
            seen == Some(expected_verification(serial, left)),
            "{serial} is verified by {seen:?}: {record:?}"
        );
        let found = rig.disk(serial)?.findings()?;
        ensure!(found.held_data > 0 && found.unchanged == 0 && found.tags == 0, "{serial}: {found:?}");
        ensure!((found.nonzero_bytes == 0) == (left == Left::Zeroes), "{serial} is not {left:?}: {found:?}");
    }
    for serial in ["SATASECURE", "SATAFLASH", "SATAPLAIN"] {
        ensure!(!rig.has_password(serial)?, "{serial} was left with a password");
    }
    for (spec, _) in REFUSED {
        rig.disk(serial(spec))?.ensure_untouched()?;
    }
    Ok(())
}

fn serial(spec: &str) -> &str {
    spec.split(',').nth(1).unwrap_or_default()
}

fn clean() -> Value {
    let args = json!({"level": "purge", "allow": WEAKER});
    json!({"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase_devices", "args": args}]})
}

/// The operator keeps the refused drives.
async fn keep_refused(controller: &Controller) -> Result<()> {
    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await?;
    let hints: Vec<Value> = REFUSED.iter().map(|(spec, _)| json!({"serial": serial(spec)})).collect();
    let patch = json!([{"op": "add", "path": "/properties/skip_block_devices", "value": hints}]);
    let (status, body) = controller.call(Method::PATCH, &format!("/v1/nodes/{NODE}"), Some(patch)).await?;
    ensure!(status == 200, "keeping drives: {status} {body}");
    Ok(())
}

/// Methods given up, each with the first words of why.
fn fallbacks(record: &DiskRecord) -> Vec<(&str, &'static str)> {
    const WHY: [&str; 2] = ["read-back", "sanitize command failed"];
    let why = |error: &str| WHY.into_iter().find(|why| error.contains(why)).unwrap_or("another reason");
    record.fallbacks.iter().map(|fallback| (fallback.method.as_str(), why(&fallback.error))).collect()
}

/// Kind of the verification, and whether a log of the drive reports the end of its method.
fn expected_verification(serial: &str, left: Left) -> (&'static str, bool) {
    let kind = match left {
        // It gives nothing to compare: it is found in the middle of a sanitize.
        Left::Noise if serial.ends_with("BUSY") => "device-attested",
        Left::Noise => "sampled",
        Left::Zeroes => "full",
    };
    (kind, !["SATASECURE", "SATAFLASH", "SATAPLAIN", "SASFORMAT"].contains(&serial))
}

fn expected_fallbacks(serial: &str) -> Vec<(&'static str, &'static str)> {
    match serial {
        "SATALIES" => vec![("ata-sanitize-crypto", "read-back")],
        "SASFAILS" => vec![("scsi-sanitize-crypto", "sanitize command failed")],
        _ => Vec::new(),
    }
}
