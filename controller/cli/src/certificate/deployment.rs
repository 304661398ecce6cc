//! What a certificate says of a deployment.

use crate::output::bytes;
use agent_protocol::deployment::{BootEntries, Edit, WrittenDisk};
use certificate::Verified;

/// Names and values; none of an erase.
pub fn facts(verified: &Verified) -> Vec<(&'static str, String)> {
    let disk = verified.evidence.deployed.as_ref().map(|deployed| {
        let before = verified.certificate.disk_before.as_ref().and_then(|before| before.erased_by.as_deref());
        written(deployed, before)
    });
    let entries = verified.evidence.boot_entries.as_ref().map(boots);
    disk.into_iter().chain(entries).flatten().collect()
}

fn written(deployed: &WrittenDisk, erased_by: Option<&str>) -> Vec<(&'static str, String)> {
    let image = &deployed.record;
    let before = match erased_by {
        Some(id) => format!("erased by certificate {id}"),
        None => "not erased since the last deployment".to_owned(),
    };
    let mut facts = vec![
        ("disk", disk(&deployed.device, &deployed.serial, &deployed.wwn, deployed.model.as_deref())),
        ("disk before", before),
        ("image", format!("{} ({}, {})", image.source, image.format, image.compression)),
        ("downloaded", format!("{}, {} {}", bytes(image.downloaded), image.algorithm, image.download_digest)),
        ("written", format!("{} of a disk of {}", bytes(image.size), bytes(deployed.size))),
        ("read back", format!("{}, sha256 {}", bytes(image.read_back), image.read_back_sha256)),
    ];
    let edit = |edit: &Edit| {
        let text = format!("{}: {} bytes at {}, sha256 {}", edit.what, edit.length, edit.offset, edit.sha256);
        ("edit", text)
    };
    facts.extend(image.edits.iter().map(edit));
    facts
}

fn boots(entries: &BootEntries) -> Vec<(&'static str, String)> {
    let removed = entries
        .removed
        .iter()
        .map(|gone| ("removed boot entry", format!("Boot{} \"{}\": {}", gone.number, gone.label, gone.why)));
    let facts = vec![
        ("disk", disk(&entries.device, &entries.serial, &entries.wwn, None)),
        ("boot entry", format!("{} \"{}\" starts {}", entries.entry, entries.label, entries.loader)),
        ("boot order", entries.order.join(", ")),
    ];
    facts.into_iter().chain(removed).collect()
}

fn disk(device: &str, serial: &Option<String>, wwn: &Option<String>, model: Option<&str>) -> String {
    let text = |text: Option<&str>| text.unwrap_or("none").to_owned();
    let model = model.map(|model| format!(" {model}")).unwrap_or_default();
    format!("{device}{model}, serial {}, WWN {}", text(serial.as_deref()), text(wwn.as_deref()))
}
