//! `/v1/nodes/{ident}/vmedia`: the virtual drives of the BMC. The BMC fetches the image itself, from the URL that is
//! given, wherever `image_download_source` says.
//!
//! What the driver or the BMC refuses is in the node's `last_error` once the answer, 204, is there: Ironic asks them later.

use crate::body::{self, python};
use crate::call::{Call, empty, json};
use crate::driver_queries::{DriverError, MEDIA};
use crate::error::{ApiError, Reply};
use crate::lock::Lock;
use crate::schema;
use crate::write;
use axum::extract::Path;
use model::Node;
use model::history::{EventKind, Severity};
use model::request::event;

/// Schemes of an image's URL.
const SCHEMES: [&str; 5] = ["http", "https", "nfs", "cifs", "smb"];

const FIELDS: [&str; 3] = ["device_type", "image_url", "image_download_source"];

/// `GET …/vmedia`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(93)?;
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    Ok(json(200, &call.app.drivers.virtual_media(&node).await?))
}

/// `POST …/vmedia`.
pub async fn attach(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(89)?;
    call.args.only(&[])?;
    let bad = |why: String| ApiError::invalid(format!("Schema error for vmedia: {why}"));
    let given = schema::object("vmedia", call.json()?)?;
    let unknown: Vec<_> = given.keys().map(String::as_str).filter(|name| !FIELDS.contains(name)).collect();
    schema::no_others("vmedia", &unknown)?;
    for name in ["device_type", "image_url"] {
        if !given.contains_key(name) {
            return Err(bad(format!("'{name}' is a required property")));
        }
    }
    let device = body::required(&given, "device_type")?;
    let url = body::required(&given, "image_url")?;
    if !MEDIA.contains(&device) {
        return Err(bad(format!("'{device}' is not one of ['disk', 'cdrom', 'floppy']")));
    }
    if let Some(source) = given.get("image_download_source")
        && !source.as_str().is_some_and(|source| ["http", "local", "swift"].contains(&source))
    {
        return Err(bad(format!("{} is not one of ['http', 'local', 'swift']", python(source))));
    }
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
    if !SCHEMES.contains(&scheme.as_str()) {
        return Err(ApiError::invalid(format!("Unsupported or missing URL scheme: {scheme}")));
    }
    let node = ready(&call, &ident).await?;
    let done = call.app.drivers.attach_media(&node, device, url).await;
    note(&call, &node, done, |why| format!("Could not attach device {device} to node {}: {why}", node.uuid))
        .await
}

/// `DELETE …/vmedia[?device_types=a,b]`.
pub async fn detach(Path(ident): Path<String>, call: Call) -> Reply {
    call.version.has_path(89)?;
    call.args.only(&["device_types"])?;
    let devices = call.args.list("device_types").filter(|devices| !devices.is_empty());
    let invalid: Vec<_> =
        devices.iter().flatten().map(String::as_str).filter(|device| !MEDIA.contains(device)).collect();
    if !invalid.is_empty() {
        return Err(ApiError::invalid(format!(
            "Invalid device type(s) {} (valid are {})",
            invalid.join(", "),
            MEDIA.join(", ")
        )));
    }
    let node = ready(&call, &ident).await?;
    let done = call.app.drivers.detach_media(&node, devices.as_deref()).await;
    let named = devices.map_or_else(|| MEDIA.join(", "), |devices| devices.join(", "));
    note(&call, &node, done, |why| {
        format!("Could not detach device(s) {named} from node {}: {why}", node.uuid)
    })
    .await
}

/// The node once it is not locked, if its driver can be asked at all.
///
/// # Errors
/// 400: its `driver_info` does not suffice. 409: it stays locked.
async fn ready(call: &Call, ident: &str) -> Result<Node, ApiError> {
    let node = call.node(ident).await?;
    let node = Lock::Held.opened(call, node).await?;
    let findings = call.app.drivers.validate(&node.driver, &node.driver_info).await;
    if let Some(finding) = findings.get("management").filter(|finding| finding.result == Some(false)) {
        return Err(ApiError::invalid(finding.reason.clone().unwrap_or_default()));
    }
    Ok(node)
}

/// 204, and the outcome in `last_error`: what stood there is over.
async fn note(
    call: &Call,
    node: &Node,
    done: Result<(), DriverError>,
    failed: impl Fn(&DriverError) -> String + Send + Sync,
) -> Reply {
    let error = done.err().map(|why| failed(&why));
    if error.is_some() || node.last_error.is_some() {
        write::change(call, &node.uuid.to_string(), |node| {
            let failed =
                |text: &String| event(EventKind::Monitoring, Severity::Error, text.clone(), call.now());
            let events = error.iter().map(failed).collect();
            Ok((Node { last_error: error.clone(), ..node.clone() }, events))
        })
        .await?;
    }
    Ok(empty(204, None))
}
