//! Whether the record of a deployment shows what it claims. Pure.

use crate::Refused;
use agent_protocol::deployment::{WrittenDisk, WrittenImage};

/// Digits of a SHA-256.
const SHA256: usize = 64;

/// That the disk returned the whole image as it was written, that its digests are some, and that its source has no secret.
///
/// # Errors
/// The first claim that the record does not show.
pub(crate) fn check(disk: &WrittenDisk) -> Result<(), Refused> {
    let refuse = |why: String| Err(Refused::NotWritten { disk: label(disk), why });
    let image = &disk.record;
    if image.size == 0 || image.size > disk.size {
        return refuse(format!("the image has {} bytes, the disk {}", image.size, disk.size));
    }
    if image.read_back != image.size {
        return refuse(format!("{} of {} bytes were read back", image.read_back, image.size));
    }
    if image.read_back_sum != image.written_sum {
        return refuse("the disk did not return what was written".to_owned());
    }
    let digits = match image.algorithm.as_str() {
        "sha256" => SHA256,
        "sha512" => 2 * SHA256,
        other => return refuse(format!("the digest of the image is a {other:?}")),
    };
    let digests =
        [(&image.download_digest, digits), (&image.read_back_sha256, SHA256), (&image.written_sum, SHA256)];
    if let Some((text, _)) = digests.iter().find(|(text, digits)| !is_digest(text, *digits)) {
        return refuse(format!("{text:?} is no digest"));
    }
    if let Some(why) = is_not_the_download(image) {
        return refuse(why);
    }
    if let Some(edit) = image.edits.iter().find(|edit| !lies_within(edit.offset, edit.length, disk.size)) {
        return refuse(format!("its edit {:?} is not on the disk", edit.what));
    }
    if !is_masked(&image.source) {
        return refuse("the URL of the image is not masked".to_owned());
    }
    Ok(())
}

/// A raw file that is not compressed is the content of the disk.
fn is_not_the_download(image: &WrittenImage) -> Option<String> {
    if image.format != "raw" || image.compression != "plain" {
        return None;
    }
    if image.downloaded != image.size {
        return Some(format!("{} of {} downloaded bytes are on the disk", image.size, image.downloaded));
    }
    let differs = image.algorithm == "sha256" && image.download_digest != image.read_back_sha256;
    differs.then(|| "the disk holds another image than was downloaded".to_owned())
}

fn lies_within(offset: u64, length: u64, size: u64) -> bool {
    offset.checked_add(length).is_some_and(|end| end <= size)
}

fn is_digest(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a URL shows neither user nor query.
fn is_masked(url: &str) -> bool {
    let (address, query) = url.split_at(url.find(['?', '#']).unwrap_or(url.len()));
    let host = address.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    let user = host.and_then(|host| host.rsplit_once('@')).map(|(user, _)| user);
    host.is_some() && matches!(query, "" | "?******") && matches!(user, None | Some("******"))
}

/// A disk in a message.
fn label(disk: &WrittenDisk) -> String {
    format!("{} (serial {})", disk.device, disk.serial.as_deref().unwrap_or("none"))
}
