//! What an auditor does without a controller: judging files.

use crate::failure::Failure;
use crate::output::{Format, bytes, fields, printable, show, table};
use agent_protocol::record::{DiskRecord, Outcome};
use certificate::{BootProof, Place, PowerOff, PublicKey, Refused, RequestSender, Verified, Wanted};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

pub fn wrong(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

pub fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| wrong(path, error))
}

/// `anneal certificate verify`
pub fn verify(
    file: &Path,
    keys: &[PublicKey],
    wanted: Wanted,
    previous: Option<&Path>,
) -> Result<Verified, Failure> {
    let previous = previous.map(read).transpose()?;
    let wanted = Wanted { previous: previous.as_deref(), ..wanted };
    judge(&read(file)?, keys, &wanted).map_err(|error| wrong(file, error))
}

/// The judgement of a text.
pub fn judge(text: &str, keys: &[PublicKey], wanted: &Wanted) -> Result<Verified, Failure> {
    certificate::verify_with_any(text, keys, wanted).map_err(|error| refused(&error))
}

/// A refusal with its name.
pub fn refused(refused: &Refused) -> Failure {
    Failure::Usage(format!("refused ({}): {refused}", refused.name()))
}

/// `anneal certificate export`
pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| wrong(path, error))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| wrong(path, error))
}

/// What a certificate says.
pub fn report(format: Format, verified: &Verified) -> Result<(), Failure> {
    let contents =
        json!({"id": verified.id, "certificate": verified.certificate, "evidence": verified.evidence});
    show(format, &contents, |_| {
        if verified.evidence.disks.is_empty() && verified.evidence.kind() == "deployment" {
            return fields(&facts(verified));
        }
        let rows: Vec<_> = verified.evidence.disks.iter().map(row).collect();
        let headings = [
            "DEVICE",
            "MODEL",
            "SERIAL",
            "WWN",
            "SIZE",
            "MEDIA",
            "OUTCOME",
            "METHOD",
            "LEVEL",
            "READ BACK",
            "REASON",
        ];
        format!("{}\n{}", fields(&facts(verified)), table(&headings, &rows))
    })
}

/// All but the disks.
pub fn facts(verified: &Verified) -> Vec<(String, String)> {
    let (certificate, evidence) = (&verified.certificate, &verified.evidence);
    let (node, machine, step) = (&certificate.node, &evidence.machine, &evidence.step);
    let row = |name: &str, value: String| (name.to_owned(), printable(&value));
    let name = node.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
    let ignored = evidence.ignored_controllers.iter().map(|controller| {
        let text = format!("{} ({}): {}", controller.address, controller.ids, controller.reason);
        row("ignored controller", text)
    });
    let rows = vec![
        row("finding", certificate.finding.as_str().to_owned()),
        row("certificate", verified.id.clone()),
        row("number", certificate.number.to_string()),
        row("previous", certificate.previous.clone().unwrap_or_else(|| "none".to_owned())),
        row("issued", certificate.issued_at.clone()),
        row("controller", format!("{} {}", certificate.controller.name, certificate.controller.version)),
        row("node", format!("{}{name}", node.uuid)),
        row(
            "machine",
            format!("{} {} {}", machine.manufacturer, machine.product_name, machine.serial_number),
        ),
        row("place", place(certificate.place.as_ref())),
        row("run", format!("{} {}", certificate.run.kind, certificate.run.id)),
        row("requested by", requested_by(certificate.run.requested_by.as_ref())),
        row("boots", PowerOff::in_words(certificate.run.power_off).to_owned()),
        row("boot proof", boot_proof(certificate.boot_proof.as_ref())),
        row("step", format!("{}.{} ({})", step.interface, step.step, evidence.command_id)),
        row("error", evidence.error.clone().unwrap_or_else(|| "none".to_owned())),
        row("manager", format!("{} {}", evidence.manager.name, evidence.manager.version)),
        row("agent", format!("{}, boot {}", evidence.agent.version, evidence.agent.boot_id)),
        row("agent's key", certificate.evidence_key.clone()),
    ];
    let retired = certificate.retired_disks.iter().map(|disk| {
        let name = disk.serial.as_deref().or(disk.wwn.as_deref()).unwrap_or("none");
        row("retired disk", format!("{name}, {}: {}", disk.at, disk.reason))
    });
    let deployed = super::deployment::facts(verified);
    let deployed = deployed.into_iter().map(|(name, value)| row(name, value));
    rows.into_iter().chain(ignored).chain(retired).chain(deployed).collect()
}

/// What a TPM proved of the boot, as far as the certificate says.
fn boot_proof(proof: Option<&BootProof>) -> String {
    let said =
        proof.map(|proof| format!("quote {}, endorsement key {}", proof.quote_sha256, proof.endorsement_key));
    said.unwrap_or_else(|| "none".to_owned())
}

/// Where the node stood, as far as the certificate says.
fn place(place: Option<&Place>) -> String {
    let Some(Place { site, within, description }) = place else { return "not stated".to_owned() };
    [site, within, description].into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// The sender of the request that started the run, as far as the certificate says.
fn requested_by(who: Option<&RequestSender>) -> String {
    let Some(who) = who else { return "not known".to_owned() };
    let named = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
    let parts = [
        named("user", &who.user),
        named("project", &who.project),
        named("address", &who.address),
        named("request", &who.request_id),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn row(disk: &DiskRecord) -> Vec<String> {
    let text = |text: &Option<String>| printable(text.as_deref().unwrap_or("-"));
    vec![
        printable(&disk.device),
        text(&disk.model),
        text(&disk.serial),
        text(&disk.wwn),
        bytes(disk.size),
        text(&disk.media),
        outcome(disk.outcome).to_owned(),
        text(&disk.method),
        text(&disk.level),
        read_back(disk),
        text(&disk.reason),
    ]
}

/// In words.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Erased => "erased",
        Outcome::MetadataErased => "metadata erased",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
    }
}

/// What the read-back saw.
pub fn read_back(disk: &DiskRecord) -> String {
    let seen = disk.verification.as_ref().map(|seen| {
        let passed = if seen.passed { "passed" } else { "FAILED" };
        format!("{passed}: {}, {} {}", seen.kind, bytes(seen.bytes_read), seen.expected)
    });
    let rebuilt = disk.rebuilt.iter().map(|rebuilt| {
        let (length, offset) = (rebuilt.bytes, rebuilt.offset);
        format!("; then {length} bytes of {} {} written at {offset}", rebuilt.kind, rebuilt.name)
    });
    let out_of_reach = disk.out_of_reach.iter().map(|part| format!("; not reached: {part}"));
    printable(
        &rebuilt.chain(out_of_reach).fold(seen.unwrap_or_else(|| "no".to_owned()), |all, one| all + &one),
    )
}
