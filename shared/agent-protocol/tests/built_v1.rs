//! Messages built from values, and the bytes they must have. `frozen_v1.rs` shows that reading and writing agree; here
//! each value is set by the Rust name of its field, so that two fields whose names are swapped are noticed. Values
//! differ from each other within a message. Never edit an expected text; add lines when a message grows.

use agent_protocol::boot_proof::{Answer, Capabilities, Challenge, Start};
use agent_protocol::command::{CommandError, CommandRequest, CommandStatus, Status};
use agent_protocol::discovery::{DiscoveryAnswer, DiscoveryLookup, Verdict};
use agent_protocol::heartbeat::{AgentState, Heartbeat, Running};
use agent_protocol::inspection::{Configuration, Discovered, InspectionAnswer, InspectionReport, Manager};
use agent_protocol::inventory::{
    Boot, Cpu, Disk, External, Firmware, Interface, Inventory, ManagerRecord, ManagerReport, Memory,
    Suppression, SystemVendor,
};
use agent_protocol::lookup::{BundleOffer, LookupAnswer, LookupConfig, LookupNode, Offer};
use agent_protocol::progress::{DiskProgress, Phase, Progress};
use agent_protocol::record::{
    DiskRecord, EraseReport, Fallback, IgnoredController, Outcome, Rebuilt, Verification,
};
use agent_protocol::step::{AdvertisedSteps, ArgInfo, Step};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

fn written(message: &impl Serialize, expected: Value) {
    assert_eq!(serde_json::to_value(message).expect("writes"), expected);
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn disk_progress() -> DiskProgress {
    DiskProgress {
        device: "/dev/sda".into(),
        serial: some("S1"),
        phase: Phase::Erasing,
        method: some("overwrite-zeroes"),
        bytes_done: 1,
        bytes_total: 4,
        rate: 2,
        eta: Some(3),
        stalled_since: Some(5.5),
    }
}

#[test]
fn a_heartbeat_names_each_value() {
    let progress = Progress { percent: Some(40), text: some("flashing"), disks: vec![disk_progress()] };
    let heartbeat = Heartbeat {
        callback_url: "https://192.0.2.7:9999".into(),
        agent_token: some("t"),
        agent_version: some("0.1.0"),
        agent_verify_ca: some("PEM"),
        anneal: Some(AgentState {
            extension: 1,
            boot_id: "b".into(),
            process_id: "p".into(),
            evidence_key: some("ed25519:00"),
            running: Some(Running {
                id: "c1".into(),
                command_name: "execute_clean_step".into(),
                progress: Some(progress),
            }),
            ended: vec!["c0".into()],
        }),
    };
    written(
        &heartbeat,
        json!({
            "callback_url": "https://192.0.2.7:9999", "agent_token": "t", "agent_version": "0.1.0",
            "agent_verify_ca": "PEM",
            "anneal": {
                "extension": 1, "boot_id": "b", "process_id": "p", "evidence_key": "ed25519:00",
                "running": {
                    "id": "c1", "command_name": "execute_clean_step",
                    "progress": {"percent": 40, "text": "flashing", "disks": [{
                        "device": "/dev/sda", "serial": "S1", "phase": "erasing", "method": "overwrite-zeroes",
                        "bytes_done": 1, "bytes_total": 4, "rate": 2, "eta": 3, "stalled_since": 5.5,
                    }]},
                },
                "ended": ["c0"],
            },
        }),
    );
}

#[test]
fn a_lookup_answer_names_each_value() {
    let answer = LookupAnswer {
        node: LookupNode {
            uuid: "u".into(),
            properties: object(json!({"p": 1})),
            instance_info: object(json!({"i": 2})),
            driver_internal_info: object(json!({"d": 3})),
            links: vec![json!({"href": "h"})],
        },
        config: LookupConfig {
            heartbeat_timeout: 300.0,
            agent_token: some("t"),
            agent_token_required: true,
            anneal: Some(Offer { extension: 1 }),
            anneal_bundles: vec![BundleOffer {
                name: "acme".into(),
                version: "1.2".into(),
                digest: "ab12".into(),
                size: 4096,
                signed_by: some("k"),
            }],
            other: object(json!({"metrics": {}})),
        },
    };
    written(
        &answer,
        json!({
            "node": {"uuid": "u", "properties": {"p": 1}, "instance_info": {"i": 2}, "driver_internal_info": {"d": 3},
                     "links": [{"href": "h"}]},
            "config": {"heartbeat_timeout": 300.0, "agent_token": "t", "agent_token_required": true,
                       "anneal": {"extension": 1}, "metrics": {},
                       "anneal_bundles": [{"name": "acme", "version": "1.2", "digest": "ab12", "size": 4096,
                                           "signed_by": "k"}]},
        }),
    );
}

#[test]
fn a_command_and_its_status_name_each_value() {
    let request = CommandRequest {
        name: "standby.sync".into(),
        params: object(json!({"a": 1})),
        anneal_command_id: some("c1"),
        anneal_epoch: Some(7),
    };
    written(
        &request,
        json!({"name": "standby.sync", "params": {"a": 1}, "anneal_command_id": "c1", "anneal_epoch": 7}),
    );
    let without = CommandRequest { anneal_epoch: None, ..request };
    written(&without, json!({"name": "standby.sync", "params": {"a": 1}, "anneal_command_id": "c1"}));
    let status = CommandStatus {
        id: "c1".into(),
        command_name: "sync".into(),
        command_status: Status::Failed,
        command_error: Some(CommandError {
            kind: "CleaningError".into(),
            code: 500,
            message: "Clean step failed".into(),
            details: "no".into(),
        }),
        command_result: Some(json!({"r": 1})),
        progress: Some(Progress { percent: Some(7), text: None, disks: Vec::new() }),
        checkpoint: Some(json!({"at": 2})),
    };
    written(
        &status,
        json!({
            "id": "c1", "command_name": "sync", "command_status": "FAILED",
            "command_error": {"type": "CleaningError", "code": 500, "message": "Clean step failed", "details": "no"},
            "command_result": {"r": 1}, "progress": {"percent": 7, "disks": []}, "checkpoint": {"at": 2},
        }),
    );
}

#[test]
fn advertised_steps_name_each_value() {
    let argument =
        ArgInfo { description: "Versions".into(), required: true, schema: Some(json!({"type": "object"})) };
    let step = Step {
        step: "verify_firmware".into(),
        priority: 90.into(),
        interface: "management".into(),
        reboot_requested: true,
        abortable: false,
        argsinfo: Some(BTreeMap::from([("baseline".to_owned(), argument)])),
        args: Some(object(json!({"baseline": {}}))),
        other: object(json!({"idempotent": true})),
    };
    let steps = AdvertisedSteps {
        clean_steps: BTreeMap::from([("manager".to_owned(), vec![step])]),
        hardware_manager_version: BTreeMap::from([("manager".to_owned(), "1.2".to_owned())]),
    };
    written(
        &steps,
        json!({
            "clean_steps": {"manager": [{
                "step": "verify_firmware", "priority": 90, "interface": "management", "reboot_requested": true,
                "abortable": false, "args": {"baseline": {}}, "idempotent": true,
                "argsinfo": {"baseline": {"description": "Versions", "required": true, "schema": {"type": "object"}}},
            }]},
            "hardware_manager_version": {"manager": "1.2"},
        }),
    );
}

#[test]
fn a_record_of_an_erase_names_each_value() {
    let record = DiskRecord {
        device: "/dev/sda".into(),
        serial: some("S1"),
        wwn: some("0x5"),
        model: some("M"),
        media: some("flash (nvme)"),
        size: 8,
        outcome: Outcome::MetadataErased,
        reason: some("why"),
        exempt: some("boot-medium"),
        method: some("overwrite-zeroes"),
        level: some("clear"),
        standard: some("ACS-4"),
        fallbacks: vec![Fallback { method: "nvme-format".into(), error: "refused".into() }],
        bytes_erased: 7,
        resumed_from: Some(4),
        verification: Some(Verification {
            kind: "full".into(),
            bytes_read: 6,
            expected: "zeroes".into(),
            mismatched_bytes: 1,
            unchanged_samples: 2,
            samples: 3,
            markers: 4,
            markers_found: 5,
            device_status: some("done"),
            seed: some("00ff"),
            passed: false,
        }),
        rebuilt: vec![Rebuilt {
            kind: "md".into(),
            name: "mirror".into(),
            uuid: "ab".into(),
            bytes: 512,
            offset: 4096,
        }],
        out_of_reach: vec!["HPA".into()],
        started_at: Some(1.5),
        finished_at: Some(2.5),
    };
    written(
        &EraseReport {
            disks: vec![record],
            ignored_controllers: vec![IgnoredController {
                address: "0000:3b:00.0".into(),
                ids: "1000:005b".into(),
                reason: "no cables".into(),
            }],
        },
        json!({"disks": [{
            "device": "/dev/sda", "serial": "S1", "wwn": "0x5", "model": "M", "media": "flash (nvme)", "size": 8, "outcome": "metadata_erased",
            "reason": "why", "exempt": "boot-medium", "method": "overwrite-zeroes", "level": "clear", "standard": "ACS-4",
            "fallbacks": [{"method": "nvme-format", "error": "refused"}], "bytes_erased": 7, "resumed_from": 4,
            "verification": {"kind": "full", "bytes_read": 6, "expected": "zeroes", "mismatched_bytes": 1,
                             "unchanged_samples": 2, "samples": 3, "markers": 4, "markers_found": 5,
                             "device_status": "done", "seed": "00ff", "passed": false},
            "rebuilt": [{"kind": "md", "name": "mirror", "uuid": "ab", "bytes": 512, "offset": 4096}],
            "out_of_reach": ["HPA"], "started_at": 1.5, "finished_at": 2.5,
        }], "ignored_controllers": [{"address": "0000:3b:00.0", "ids": "1000:005b", "reason": "no cables"}]}),
    );
}

fn inventory() -> Inventory {
    Inventory {
        interfaces: vec![Interface {
            name: "eno1".into(),
            mac_address: "52:54:00:12:34:56".into(),
            ipv4_address: some("192.0.2.1"),
            ipv6_address: some("2001:db8::1"),
            has_carrier: true,
            lldp: Some(json!([[1, "04"]])),
            vendor: some("0x1af4"),
            product: some("0x1000"),
            speed_mbps: Some(1000),
            driver: some("virtio_net"),
            pci_address: some("0000:00:03.0"),
        }],
        cpu: Cpu {
            model_name: "EPYC".into(),
            frequency: some("2000"),
            count: 2,
            architecture: "x86_64".into(),
            flags: vec!["fpu".into()],
            socket_count: Some(1),
        },
        disks: vec![Disk {
            name: "/dev/sda".into(),
            model: some("M"),
            size: 8,
            rotational: true,
            wwn: some("0x5"),
            serial: some("S1"),
            vendor: some("V"),
            wwn_with_extension: some("0x56"),
            wwn_vendor_extension: some("0x6"),
            hctl: some("0:0:0:0"),
            by_path: some("/dev/disk/by-path/p"),
            logical_sectors: Some(512),
            physical_sectors: Some(4096),
            tran: some("sata"),
            anneal: object(json!({"hidden": 1})),
        }],
        memory: Memory { total: 1, physical_mb: Some(2) },
        bmc_address: some("192.0.2.2"),
        bmc_v6address: some("2001:db8::2"),
        bmc_mac: some("52:54:00:00:00:02"),
        system_vendor: SystemVendor {
            product_name: "P".into(),
            serial_number: "S2".into(),
            manufacturer: "ACME".into(),
            firmware: Firmware { vendor: "F".into(), version: "1".into(), build_date: "2026".into() },
        },
        boot: Boot { current_boot_mode: "uefi".into(), pxe_interface: some("52:54:00:12:34:56") },
        hostname: "h".into(),
        anneal: Some(External {
            hardware_managers: vec![ManagerReport {
                name: "acme".into(),
                version: "1@ab".into(),
                vendor: "V2".into(),
                state: "ready".into(),
                records: vec![ManagerRecord { at: 1.5, what: "it hung".into() }],
                patch: object(json!({"firmware": []})),
            }],
            suppressed: vec![Suppression {
                probe: "lldp".into(),
                manager: "acme".into(),
                reason: "it hangs".into(),
            }],
        }),
    }
}

#[test]
fn a_verdict_of_a_discovery_names_each_value() {
    let anneal_discovery = DiscoveryAnswer { verdict: Verdict::Rejected, seconds_left: 7 };
    let expected = json!({"anneal_discovery": {"verdict": "rejected", "seconds_left": 7}});
    written(&DiscoveryLookup { anneal_discovery }, expected);
}

#[test]
fn an_inspection_report_names_each_value() {
    let report = InspectionReport {
        inventory: inventory(),
        root_disk: Some(Disk { name: "/dev/sdb".into(), size: 9, ..Disk::default() }),
        boot_interface: some("52:54:00:12:34:56"),
        configuration: Configuration {
            collectors: vec!["default".into()],
            managers: vec![Manager { name: "acme".into(), version: "1".into() }],
        },
        error: some("e"),
        anneal: Some(Discovered {
            managers: BTreeMap::from([("acme".to_owned(), json!({"firmware": []}))]),
            problems: BTreeMap::from([("other".to_owned(), "no answer".to_owned())]),
        }),
        other: object(json!({"logs": "H4sI"})),
    };
    let found = serde_json::to_value(&report).expect("writes");
    let expected = json!({
        "boot_interface": "52:54:00:12:34:56",
        "configuration": {"collectors": ["default"], "managers": [{"name": "acme", "version": "1"}]},
        "error": "e",
        "anneal": {"managers": {"acme": {"firmware": []}}, "problems": {"other": "no answer"}},
        "logs": "H4sI",
        "inventory": {
            "interfaces": [{
                "name": "eno1", "mac_address": "52:54:00:12:34:56", "ipv4_address": "192.0.2.1",
                "ipv6_address": "2001:db8::1", "has_carrier": true, "lldp": [[1, "04"]], "vendor": "0x1af4",
                "product": "0x1000", "speed_mbps": 1000, "driver": "virtio_net", "pci_address": "0000:00:03.0",
            }],
            "cpu": {"model_name": "EPYC", "frequency": "2000", "count": 2, "architecture": "x86_64", "flags": ["fpu"],
                    "socket_count": 1},
            "disks": [{
                "name": "/dev/sda", "model": "M", "size": 8, "rotational": true, "wwn": "0x5", "serial": "S1",
                "vendor": "V", "wwn_with_extension": "0x56", "wwn_vendor_extension": "0x6", "hctl": "0:0:0:0",
                "by_path": "/dev/disk/by-path/p", "logical_sectors": 512, "physical_sectors": 4096, "tran": "sata",
                "anneal": {"hidden": 1},
            }],
            "memory": {"total": 1, "physical_mb": 2},
            "bmc_address": "192.0.2.2", "bmc_v6address": "2001:db8::2", "bmc_mac": "52:54:00:00:00:02",
            "system_vendor": {"product_name": "P", "serial_number": "S2", "manufacturer": "ACME",
                              "firmware": {"vendor": "F", "version": "1", "build_date": "2026"}},
            "boot": {"current_boot_mode": "uefi", "pxe_interface": "52:54:00:12:34:56"},
            "hostname": "h",
            "anneal": {
                "hardware_managers": [{"name": "acme", "version": "1@ab", "vendor": "V2", "state": "ready",
                                       "records": [{"at": 1.5, "what": "it hung"}], "patch": {"firmware": []}}],
                "suppressed": [{"probe": "lldp", "manager": "acme", "reason": "it hangs"}],
            },
        },
    });
    assert_eq!((&found["root_disk"]["name"], &found["root_disk"]["size"]), (&json!("/dev/sdb"), &json!(9)));
    let mut without_root_disk = found;
    without_root_disk.as_object_mut().expect("an object").remove("root_disk");
    assert_eq!(without_root_disk, expected);
    written(&InspectionAnswer { uuid: some("u") }, json!({"uuid": "u"}));
}

#[test]
fn a_proof_of_a_boot_names_each_value() {
    let start = Start {
        addresses: vec!["52:54:00:00:00:01".into()],
        boot_id: "b".into(),
        endorsement_key: "ZWs=".into(),
        endorsement_certificate: some("Y2VydA=="),
        attestation_key: "YWs=".into(),
    };
    let started = json!({
        "addresses": ["52:54:00:00:00:01"], "boot_id": "b", "endorsement_key": "ZWs=",
        "endorsement_certificate": "Y2VydA==", "attestation_key": "YWs=",
    });
    written(&start, started.clone());
    written(&Start { endorsement_certificate: None, ..start.clone() }, {
        let mut without = started.clone();
        without["endorsement_certificate"] = json!(null);
        without
    });
    let challenge = Challenge {
        nonce: "bm9uY2U=".into(),
        credential: "Y3JlZA==".into(),
        secret: "c2VjcmV0".into(),
        pcrs: vec![0, 11],
    };
    written(
        &challenge,
        json!({"nonce": "bm9uY2U=", "credential": "Y3JlZA==", "secret": "c2VjcmV0", "pcrs": [0, 11]}),
    );
    let answer = Answer {
        start,
        nonce: "bm9uY2U=".into(),
        activated: "YWN0".into(),
        quote: "cXVvdGU=".into(),
        signature: "c2ln".into(),
        pcrs: BTreeMap::from([(0, "00".into()), (11, "0b".into())]),
        event_log: "bG9n".into(),
        tls_certificate: "ab".into(),
        evidence_key: "ed25519:00".into(),
    };
    written(
        &answer,
        json!({
            "start": started, "nonce": "bm9uY2U=", "activated": "YWN0", "quote": "cXVvdGU=",
            "signature": "c2ln", "pcrs": {"0": "00", "11": "0b"}, "event_log": "bG9n",
            "tls_certificate": "ab", "evidence_key": "ed25519:00",
        }),
    );
    let read: Answer = serde_json::from_value(serde_json::to_value(&answer).expect("writes")).expect("reads");
    assert_eq!(read, answer);
    written(&Capabilities { boot_proof: 1 }, json!({"boot_proof": 1}));
    let before: Capabilities =
        serde_json::from_value(json!({"extension": 1})).expect("a controller of before");
    assert_eq!(before.boot_proof, 0);
}
