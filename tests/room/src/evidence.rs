//! What an agent of Anneal reports of its erases, and signs.

use agent_protocol::command::Status;
use agent_protocol::deployment::{WrittenDisk, WrittenImage};
use agent_protocol::record::{DiskRecord, ERASE_METADATA, EraseReport, Outcome, Verification};
use agentd::registry::Ending;
use certificate::{AgentName, EVIDENCE, Evidence, Machine, ManagerName, SigningKey, StepName, VERSION};
use model::StepKind;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The true record of a disk of `size` bytes that the erase step called `step` has treated.
pub fn erased(step: &str, device: &str, serial: &str, size: u64) -> DiskRecord {
    let metadata = step == "erase_devices_metadata";
    let read = if metadata { size.min(1 << 20) } else { size };
    DiskRecord {
        device: device.to_owned(),
        serial: Some(serial.to_owned()),
        wwn: None,
        model: None,
        media: None,
        size,
        outcome: if metadata { Outcome::MetadataErased } else { Outcome::Erased },
        reason: None,
        exempt: None,
        method: Some(if metadata { ERASE_METADATA } else { "overwrite-zeroes" }.to_owned()),
        level: (!metadata).then(|| "clear".to_owned()),
        standard: None,
        fallbacks: Vec::new(),
        bytes_erased: read,
        resumed_from: None,
        verification: Some(Verification {
            kind: if metadata { "signatures" } else { "full" }.to_owned(),
            bytes_read: read,
            expected: "zeroes".to_owned(),
            mismatched_bytes: 0,
            unchanged_samples: 0,
            samples: 0,
            markers: 0,
            markers_found: 0,
            device_status: None,
            seed: None,
            passed: true,
        }),
        rebuilt: Vec::new(),
        out_of_reach: Vec::new(),
        started_at: None,
        finished_at: None,
    }
}

/// The true record of a disk of `size` bytes with an image of half of them, whose file has this SHA-256.
pub fn deployed(device: &str, serial: &str, size: u64, sha256: &str) -> WrittenDisk {
    let (sum, content) = ("1".repeat(64), "2".repeat(64));
    WrittenDisk {
        device: device.to_owned(),
        serial: Some(serial.to_owned()),
        wwn: None,
        model: None,
        size,
        others: Vec::new(),
        record: WrittenImage {
            source: "https://images/cloud.qcow2?******".to_owned(),
            format: "qcow2".to_owned(),
            compression: "plain".to_owned(),
            downloaded: size / 4,
            algorithm: "sha256".to_owned(),
            download_digest: sha256.to_lowercase(),
            size: size / 2,
            written: size / 2,
            leaf: 1 << 16,
            written_sum: sum.clone(),
            read_back: size / 2,
            read_back_sum: sum,
            read_back_sha256: content,
            disk_id: "0x00000000".to_owned(),
            edits: Vec::new(),
        },
    }
}

fn read<T: DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    value.and_then(|value| serde_json::from_value(value.clone()).ok())
}

/// A step command: kind of the step, and the parameters of the command.
pub(crate) type SentStep = (StepKind, Map<String, Value>);

/// Put the evidence next to a result that reports disks, as `agentd` does.
pub(crate) fn attach(key: &SigningKey, agent: AgentName, id: &str, sent: &SentStep, ending: &mut Ending) {
    let (kind, params) = sent;
    let text = |of: &str, field: &str| {
        let value = params.get(of).and_then(|value| value.get(field)).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let Some(Value::Object(result)) = &mut ending.result else { return };
    let Some(report) = result.get(kind.result_field()) else { return };
    let (erase, deployed) = (read::<EraseReport>(Some(report)), read::<WrittenDisk>(report.get("image")));
    if erase.is_none() && deployed.is_none() {
        return;
    }
    let step = StepName {
        kind: kind.as_str().to_owned(),
        interface: text("step", "interface"),
        step: text("step", "step"),
    };
    let evidence = Evidence {
        succeeded: ending.status == Status::Succeeded,
        error: ending.error.as_ref().map(|error| error.details.clone()),
        deployed,
        ..evidence(agent, text("node", "uuid"), id, step, erase.unwrap_or_default())
    };
    let signed = serde_json::to_value(evidence.sign(key)).unwrap_or_default();
    result.insert(EVIDENCE.to_owned(), signed);
}

/// The result of the clean step `deploy.STEP` that succeeded with these records, signed by the agent of this boot.
pub fn signed_clean_result(
    key: &SigningKey,
    (boot_id, process_id): (&str, &str),
    node: &str,
    command_id: &str,
    step: &str,
    disks: Vec<DiskRecord>,
) -> Value {
    let agent = AgentName {
        version: "sim".to_owned(),
        boot_id: boot_id.to_owned(),
        process_id: process_id.to_owned(),
    };
    let kind = StepKind::Clean;
    let name =
        StepName { kind: kind.as_str().to_owned(), interface: "deploy".to_owned(), step: step.to_owned() };
    let report = EraseReport { disks, ..EraseReport::default() };
    let evidence = evidence(agent, node.to_owned(), command_id, name, report.clone());
    json!({ kind.result_field(): report, EVIDENCE: evidence.sign(key) })
}

/// The evidence of a step that succeeded.
fn evidence(
    agent: AgentName,
    node: String,
    command_id: &str,
    step: StepName,
    report: EraseReport,
) -> Evidence {
    Evidence {
        version: VERSION,
        agent,
        machine: Machine {
            manufacturer: String::new(),
            product_name: String::new(),
            serial_number: String::new(),
        },
        node,
        command_id: command_id.to_owned(),
        step,
        manager: ManagerName { name: "sim".to_owned(), version: "1".to_owned() },
        succeeded: true,
        error: None,
        disks: report.disks,
        ignored_controllers: report.ignored_controllers,
        deployed: None,
        boot_entries: None,
    }
}
