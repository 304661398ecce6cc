//! `/v1/nodes/{ident}/vmedia`: the virtual drives of the BMC. The BMC fetches the image itself, from the URL that is
//! given, wherever `image_download_source` says.

use crate::body::{self, python};
use crate::call::{Call, empty, json};
use crate::driver_queries::MEDIA;
use crate::error::{ApiError, Reply};
use crate::lock::Lock;
use crate::schema;
use axum::extract::Path;

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
    let node = call.node(&ident).await?;
    let node = Lock::Held.opened(&call, node).await?;
    call.app.drivers.attach_media(&node, device, url).await?;
    Ok(empty(204, None))
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
    let node = call.node(&ident).await?;
    let node = Lock::Held.opened(&call, node).await?;
    call.app.drivers.detach_media(&node, devices.as_deref()).await?;
    Ok(empty(204, None))
}
