//! What the record of a deployment must show before its step counts as done: the image and the disk that were asked for.

use agent_protocol::deployment::{BootEntries, WrittenDisk};
use model::image::ImageRequest;
use model::{Node, RunKind};
use serde_json::Value;

/// Why this record of the step, called `label`, is not of what was asked for. What the record shows by itself is judged by
/// the crate `certificate`.
pub(super) fn shortfall(
    node: &Node,
    run: RunKind,
    label: &str,
    deployed: Option<&WrittenDisk>,
) -> Option<String> {
    let Some(deployed) = deployed else {
        return Some(format!("step {label} was reported as a success without a record of the disk"));
    };
    let refuse = |why: String| Some(format!("the record of step {label} is of {why}"));
    let image = match ImageRequest::of(node) {
        Ok(image) => image,
        Err(error) => return Some(error.to_string()),
    };
    let found = &deployed.record.download_digest;
    if let Some(wanted) = image.known_digest().filter(|wanted| !wanted.eq_ignore_ascii_case(found)) {
        return refuse(format!("an image with the digest {found}, and {wanted} was asked for"));
    }
    let name = name_of(deployed.serial.as_deref(), deployed.wwn.as_deref());
    match node.root_disk.as_ref().filter(|_| run == RunKind::Rebuild) {
        Some(before) if !before.fits(deployed.serial.as_deref(), deployed.wwn.as_deref()) => {
            refuse(format!("disk {name}, which is not that of the deployment before"))
        }
        _ => {
            let (hint, wanted) = other_hint(node, deployed)?;
            refuse(format!("disk {name}, and root_device asks for {hint} {wanted}"))
        }
    }
}

/// Why these boot entries are not those of the disk that was written.
pub(super) fn boot_shortfall(node: &Node, label: &str, entries: Option<&BootEntries>) -> Option<String> {
    let (entries, root) = (entries?, node.root_disk.as_ref()?);
    let (serial, wwn) = (entries.serial.as_deref(), entries.wwn.as_deref());
    let other = (!root.fits(serial, wwn)).then(|| name_of(serial, wwn))?;
    Some(format!("the boot entries of step {label} are of disk {other}, and another one was written"))
}

fn name_of<'a>(serial: Option<&'a str>, wwn: Option<&'a str>) -> &'a str {
    serial.or(wwn).unwrap_or("without identity")
}

/// The hint that gives the serial number or WWN of another disk. What else hints say only the agent can compare with disks.
fn other_hint<'a>(node: &'a Node, deployed: &WrittenDisk) -> Option<(&'static str, &'a str)> {
    let of = |fields: &'a serde_json::Map<String, Value>| {
        fields.get("root_device").and_then(Value::as_object).filter(|hints| !hints.is_empty())
    };
    let hints = of(&node.instance_info).or_else(|| of(&node.properties))?;
    [("serial", &deployed.serial), ("wwn", &deployed.wwn)].into_iter().find_map(|(hint, has)| {
        let wanted = hints.get(hint).and_then(Value::as_str).map(str::trim).filter(|text| is_plain(text))?;
        let other = !has.as_deref().is_some_and(|has| has.trim().eq_ignore_ascii_case(wanted));
        other.then_some((hint, wanted))
    })
}

/// A value without an operator.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte))
}
