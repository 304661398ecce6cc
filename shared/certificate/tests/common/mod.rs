//! An example with something in every field.
#![allow(dead_code, reason = "each test program uses a part of it")]

use certificate::{
    BootProof, Certificate, Controller, DiskBefore, Evidence, Finding, INSTALL_BOOTLOADER, NodeName, Place,
    PowerOff, RequestSender, RetiredDisk, RunName, SigningKey, StepName, VERSION,
};
use serde_json::json;
use std::sync::OnceLock;

/// The node.
pub const NODE: &str = "62f4f467-864a-40c0-9b53-0820d3eb102f";

fn fresh() -> SigningKey {
    SigningKey::generate().expect("random numbers").0
}

/// The key of agent and controller: the prefix of the signed bytes separates their roles.
pub fn key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(fresh)
}

/// Another key.
pub fn other_key() -> &'static SigningKey {
    static KEY: OnceLock<SigningKey> = OnceLock::new();
    KEY.get_or_init(fresh)
}

/// Three disks: erased, metadata erased, skipped.
pub fn evidence() -> Evidence {
    let verification = json!({"kind": "full", "bytes_read": 8, "expected": "zeroes", "mismatched_bytes": 0,
                              "unchanged_samples": 0, "samples": 1, "markers": 1, "markers_found": 0,
                              "device_status": "reported", "seed": "00ff", "passed": true});
    let signatures = json!({"kind": "signatures", "bytes_read": 4, "expected": "zeroes", "mismatched_bytes": 0,
                            "unchanged_samples": 0, "samples": 1, "passed": true});
    let value = json!({
        "version": VERSION,
        "agent": {"version": "0.1.0", "boot_id": "boot", "process_id": "process"},
        "machine": {"manufacturer": "ACME", "product_name": "Größe <1>", "serial_number": "SN-1"},
        "node": NODE,
        "command_id": "run-0-0-0",
        "step": {"kind": "clean", "interface": "deploy", "step": "erase_devices"},
        "manager": {"name": "generic_hardware_manager", "version": "1.2"},
        "succeeded": true,
        "error": "none, or why",
        "disks": [
            {"device": "/dev/sda", "serial": "S1", "wwn": "0x5000c500a1b2c3d4", "model": "M",
             "media": "magnetic (sata)", "size": 8, "outcome": "erased", "method": "overwrite-zeroes", "level": "clear", "standard": "IEEE 2883-2022 clear",
             "fallbacks": [{"method": "discard", "error": "not supported"}], "bytes_erased": 8,
             "resumed_from": 4, "verification": verification,
             "rebuilt": [{"kind": "md", "name": "md0", "uuid": "u", "bytes": 4, "offset": 4}],
             "started_at": 1.5, "finished_at": 2.25},
            {"device": "/dev/sdb", "serial": "S2", "size": 8, "outcome": "metadata_erased", "method": "erase-metadata",
             "bytes_erased": 4, "verification": signatures},
            {"device": "/dev/sr0", "size": 0, "outcome": "skipped", "reason": "virtual media", "bytes_erased": 0},
        ],
        "ignored_controllers": [{"address": "0000:3b:00.0", "ids": "1000:005b", "reason": "no cables"}],
    });
    serde_json::from_value(value).expect("evidence")
}

/// The evidence of a deployment: a raw image of 16 bytes on a disk of 64.
pub fn deployment() -> Evidence {
    let (content, sum) = ("c".repeat(64), "5".repeat(64));
    let disk = json!({
        "device": "/dev/sda", "serial": "S1", "wwn": "0x5000c500a1b2c3d4", "model": "M", "size": 64,
        "record": {
            "source": "https://******@images/cloud.raw?******", "format": "raw", "compression": "plain",
            "downloaded": 16, "algorithm": "sha256", "download_digest": content, "size": 16, "written": 8, "leaf": 8,
            "written_sum": sum, "read_back": 16, "read_back_sum": sum, "read_back_sha256": content,
            "disk_id": "0x00000000",
            "edits": [{"what": "configdrive", "offset": 56, "length": 8, "sha256": "d".repeat(64)}],
        },
    });
    Evidence {
        step: StepName::of(["deploy", "deploy", "write_image"]),
        disks: Vec::new(),
        ignored_controllers: Vec::new(),
        deployed: Some(serde_json::from_value(disk).expect("a disk")),
        ..evidence()
    }
}

/// The evidence of boot entries.
pub fn boot_entries() -> Evidence {
    let entries = json!({
        "device": "/dev/sda", "serial": "S1", "wwn": "0x5000c500a1b2c3d4", "entry": "Boot0001", "label": "debian",
        "loader": "\\EFI\\debian\\shimx64.efi", "added": true, "order": ["0001", "0000"],
        "removed": [{"number": "0002", "label": "old", "why": "no_such_partition"}], "partitions_unknown": "why",
    });
    let entries = Some(serde_json::from_value(entries).expect("boot entries"));
    let step = StepName::of(INSTALL_BOOTLOADER);
    Evidence { step, deployed: None, boot_entries: entries, ..deployment() }
}

/// The first certificate of the node.
pub fn certificate(evidence: Evidence) -> Certificate {
    Certificate {
        version: VERSION,
        number: 1,
        previous: None,
        issued_at: certificate::instant(1_795_229_965_688_786),
        controller: Controller { name: "c1".to_owned(), version: "0.1.0".to_owned() },
        node: NodeName { uuid: NODE.to_owned(), name: Some("rack1-u2".to_owned()) },
        place: Some(Place {
            site: Some("Frankfurt 2".to_owned()),
            within: Some("rack 12, unit 7".to_owned()),
            description: Some("build server".to_owned()),
        }),
        boot_proof: Some(BootProof {
            quote_sha256: "4".repeat(64),
            endorsement_key: format!("000b{}", "5".repeat(64)),
        }),
        run: RunName {
            id: "run".to_owned(),
            kind: "automated_clean".to_owned(),
            step: 0,
            requested_by: Some(requested_by()),
            power_off: Some(PowerOff::Observed),
        },
        finding: Finding::of(&evidence),
        retired_disks: vec![RetiredDisk {
            serial: Some("S0".to_owned()),
            wwn: Some("0x5000c500a1b2c3d0".to_owned()),
            model: Some("M".to_owned()),
            reason: "returned to the vendor".to_owned(),
            at: certificate::instant(1_795_229_000_000_000),
        }],
        disk_before: evidence.deployed.as_ref().map(|_| DiskBefore::default()),
        evidence_key: key().public().to_string(),
        evidence: evidence.sign(key()),
    }
}

fn requested_by() -> RequestSender {
    RequestSender {
        user: Some("alice".to_owned()),
        project: Some("project-1".to_owned()),
        address: Some("192.0.2.9".to_owned()),
        request_id: Some("req-1".to_owned()),
    }
}
