//! The virtual CD drive of a BMC (resource VirtualMedia, DSP0268), and a boot from what is in it.
//!
//! The BMC reads the medium as real ones do: over one connection, range after range. The machine that boots from it knows what
//! the kernel would find in the archive behind the initramfs.

use crate::bmc::{Reply, refuse};
use crate::firmware::CommandLine;
use crate::machine::Machine;
use agent_protocol::boot_medium::PARAMETERS;
use anyhow::{Context, Result, bail, ensure};
use bench::client::Route;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

/// The drives of a system.
pub const DRIVES: &str = "/redfish/v1/Systems/1/VirtualMedia";
const DRIVE: &str = "/redfish/v1/Systems/1/VirtualMedia/1";
const INSERT: &str = "/redfish/v1/Systems/1/VirtualMedia/1/Actions/VirtualMedia.InsertMedia";
const EJECT: &str = "/redfish/v1/Systems/1/VirtualMedia/1/Actions/VirtualMedia.EjectMedia";

/// Bytes that a BMC asks for at a time.
const RANGE: u64 = 64 << 10;
/// The parameters of a boot lie in the last so many bytes of a medium.
const TAIL: u64 = 1 << 20;
/// Bytes of the head of a member of an archive: magic and thirteen numbers (cpio, "newc").
const MEMBER: usize = 110;

/// The answer of a BMC to a call of its drive.
pub fn act(machine: &Machine, method: &Method, path: &str, body: &Value) -> Reply {
    match (method.as_str(), path) {
        ("GET", DRIVES) => (StatusCode::OK, json!({ "Members": [{ "@odata.id": DRIVE }] })),
        ("GET", DRIVE) => (StatusCode::OK, drive(machine)),
        ("POST", INSERT) => match body["Image"].as_str() {
            Some(url) if machine.medium().is_none() => inserted(machine, Some(url.to_owned())),
            Some(_) => refuse(StatusCode::CONFLICT, "ResourceInUse"),
            None => refuse(StatusCode::BAD_REQUEST, "ActionParameterMissing"),
        },
        ("POST", EJECT) => inserted(machine, None),
        _ => refuse(StatusCode::NOT_FOUND, "ResourceMissingAtURI"),
    }
}

fn inserted(machine: &Machine, url: Option<String>) -> Reply {
    machine.insert(url);
    (StatusCode::NO_CONTENT, Value::Null)
}

fn drive(machine: &Machine) -> Value {
    let medium = machine.medium();
    json!({
        "@odata.type": "#VirtualMedia.v1_3_0.VirtualMedia",
        "@odata.id": DRIVE,
        "Id": "1",
        "MediaTypes": ["CD", "DVD"],
        "Inserted": medium.is_some(),
        "Image": medium,
        "WriteProtected": true,
        "Actions": {
            "#VirtualMedia.InsertMedia": { "target": INSERT },
            "#VirtualMedia.EjectMedia": { "target": EJECT },
        },
    })
}

/// Reads the whole medium, and what the machine that boots from it finds.
///
/// # Errors
/// When the medium cannot be read, or has no parameters of a boot.
pub async fn boot(machine: &Machine, url: &str) -> Result<CommandLine> {
    let tail = read(machine, url).await.with_context(|| format!("node {}: the medium", machine.number))?;
    CommandLine::read(&parameters(&tail)?)
}

/// All bytes, in ranges; returns the last of them.
async fn read(machine: &Machine, url: &str) -> Result<Vec<u8>> {
    let (address, path) =
        url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).context("its URL")?;
    let route = Route { from: machine.address, ..Route::plain(address.parse()?) };
    let (mut sender, connection) = handshake(TokioIo::new(route.connect().await?)).await?;
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let (mut at, mut length, mut tail) = (0, RANGE, Vec::new());
    while at < length {
        let (whole, bytes) = range(&mut sender, address, path, at).await?;
        at += bytes.len() as u64;
        length = whole;
        if at + TAIL > length {
            tail.extend_from_slice(&bytes);
        }
    }
    Ok(tail)
}

/// Some bytes from there on, and how many the whole medium has.
async fn range(
    sender: &mut SendRequest<Empty<Bytes>>,
    address: &str,
    path: &str,
    at: u64,
) -> Result<(u64, Bytes)> {
    let request = Request::get(format!("/{path}"))
        .header(header::HOST, address)
        .header(header::RANGE, format!("bytes={at}-{}", at + RANGE - 1))
        .body(Empty::new())?;
    let answer = sender.send_request(request).await?;
    ensure!(answer.status() == StatusCode::PARTIAL_CONTENT, "it is answered {}", answer.status());
    let whole =
        answer.headers().get(header::CONTENT_RANGE).and_then(|value| value.to_str().ok()?.rsplit_once('/'));
    let whole = whole.context("an answer without Content-Range")?.1.parse()?;
    let bytes = answer.into_body().collect().await?.to_bytes();
    ensure!(!bytes.is_empty(), "an empty range");
    Ok((whole, bytes))
}

/// What the member of this name holds in the archive at the end of these bytes.
fn parameters(tail: &[u8]) -> Result<String> {
    let name = format!("{PARAMETERS}\0");
    let Some(at) = tail.windows(name.len()).position(|bytes| bytes == name.as_bytes()) else {
        bail!("{PARAMETERS} is not on it");
    };
    let head = at.checked_sub(MEMBER).map(|begin| &tail[begin..at]).context("half of an archive")?;
    ensure!(head.starts_with(b"070701"), "{PARAMETERS} is no member of an archive");
    let size = usize::from_str_radix(std::str::from_utf8(&head[54..62])?, 16)?;
    let begin = at + name.len();
    // A name and what follows it are filled up to a multiple of four, counted from the head.
    let begin = begin + (MEMBER + name.len()).next_multiple_of(4) - (MEMBER + name.len());
    Ok(String::from_utf8(tail.get(begin..begin + size).context("half of an archive")?.to_vec())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_a_boot_are_found_in_its_archive() {
        let (name, content) = (format!("{PARAMETERS}\0"), "anneal.boot-nonce=n quiet");
        let mut archive = vec![7; 123];
        archive.extend(b"070701");
        for number in [0, 0, 0, 0, 1, 0, content.len(), 0, 0, 0, 0, name.len(), 0] {
            archive.extend(format!("{number:08X}").as_bytes());
        }
        archive.extend(name.as_bytes());
        archive.resize(123 + (MEMBER + name.len()).next_multiple_of(4), 0);
        archive.extend(content.as_bytes());
        assert_eq!(parameters(&archive).unwrap(), content);
        archive.pop();
        assert!(parameters(&archive).is_err());
        assert!(parameters(b"nothing").is_err());
    }
}
