//! Each erase method that the lab has, once, under a kernel that Secure Boot has locked down; that of the host, an overwrite, is in
//! the scenario `secure_boot`. Such a kernel maps no device for programs, so the content of drives in user space is in the node, and
//! what counts is what the agent reads from them.

use agent_protocol::record::Outcome;
use anyhow::{Result, ensure};
use lab::disk::Bus;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::secure_boot::{LOCKED_DOWN, SignedSite, console};
use crate::stage::{ERASE, Stage, through};

pub const ABOUT: &str = "Secure Boot: ATA, SCSI and NVMe erase under the kernel's lockdown";

/// The drives' contents are in its memory.
const MEMORY_MIB: u32 = 768;

/// Drives in user space, and the method that erases each.
const DRIVES: [(&str, &str); 9] = [
    ("ata,SATACRYPTO,crypto", "ata-sanitize-crypto"),
    ("ata,SATABLOCK,block", "ata-sanitize-block"),
    ("ata,SATAOVER,overwrite,spins", "ata-sanitize-overwrite"),
    ("ata,SATASECURE,security,spins", "ata-secure-erase-enhanced"),
    ("ata,SATAPLAIN,security,plain", "ata-secure-erase"),
    ("scsi,SASCRYPTO,crypto", "scsi-sanitize-crypto"),
    ("scsi,SASBLOCK,block", "scsi-sanitize-block"),
    ("scsi,SASOVER,overwrite,spins", "scsi-sanitize-overwrite"),
    ("scsi,SASFORMAT,format", "scsi-format-unit"),
];

/// Methods below the level that are allowed by name.
const WEAKER: [&str; 4] =
    ["ata-secure-erase-enhanced", "ata-secure-erase", "scsi-format-unit", "nvme-format-user-data"];

pub async fn story(stage: Stage) -> Result<()> {
    let nvme = stage.disk("FORMATTED", Bus::Nvme, 16)?;
    let (image, arguments) = Rig::inside(&stage, &DRIVES.map(|(spec, _)| spec))?;
    let mut signed = SignedSite::start(&stage, &image, &arguments, "").await?;
    let node = signed.node(&[&nvme], MEMORY_MIB).await?;

    let cleaned = through(&signed.site.controller, clean(), "manageable").await?;
    ensure!(console(&node)?.contains(LOCKED_DOWN), "the kernel is not locked down");
    let drives = DRIVES.map(|(spec, method)| (spec.split(',').nth(1).unwrap_or_default(), method));
    for (serial, method) in drives.into_iter().chain([(nvme.serial(), "nvme-format-user-data")]) {
        let record = cleaned.record(ERASE, serial)?;
        let verified = record.verification.as_ref().is_some_and(|seen| seen.passed);
        ensure!(record.outcome == Outcome::Erased && verified, "{record:?}");
        ensure!(record.method.as_deref() == Some(method) && record.fallbacks.is_empty(), "{record:?}");
    }
    nvme.ensure_erased()
}

fn clean() -> Value {
    let args = json!({"level": "purge", "allow": WEAKER});
    json!({"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase_devices", "args": args}]})
}
