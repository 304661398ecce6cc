//! Forms of the configuration drive of an instance: its parts as an object, a URL, or the image itself in
//! base64.

use crate::app::App;
use crate::body::python;
use crate::error::ApiError;
use crate::microversion::Version;
use crate::nodes::validation;
use configdrive::{Drive, check_packed};
use model::Node;
use model::image::{CONFIGDRIVE, DIRECT, ImageError};
use model::ramdisk_deploy::{RAMDISK, check_drive};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Check the configuration drive that comes with a target.
pub fn check(drive: &Value, target: &str, version: Version) -> Result<(), ApiError> {
    let allowed: &[&str] = if version.has(35) { &["active", "rebuild"] } else { &["active"] };
    if !allowed.contains(&target) {
        return Err(ApiError::invalid(format!(
            "Adding a config drive is only supported when setting provision state to {}",
            allowed.join(", ")
        )));
    }
    match drive {
        Value::String(text) => check_text(text),
        Value::Object(parts) => {
            check_parts(parts)?;
            since(version, 56, "Providing a JSON object for configdrive")?;
            match drive.get("vendor_data") {
                Some(_) => since(version, 59, "Providing vendor_data in configdrive"),
                None => Ok(()),
            }
        }
        other => Err(ApiError::invalid(format!(
            "Expected types <class 'NoneType'>, <class 'dict'>, <class 'str'> for configdrive: {}",
            python(other)
        ))),
    }
}

fn since(version: Version, minor: u16, what: &str) -> Result<(), ApiError> {
    if version.has(minor) {
        return Ok(());
    }
    Err(ApiError::invalid(format!("{what} is only supported starting with API version 1.{minor}")))
}

fn check_text(text: &str) -> Result<(), ApiError> {
    let is_base64 = || text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\n\r\t ".contains(&byte));
    if text.contains("://") || is_base64() {
        return Ok(());
    }
    Err(ApiError::invalid("Invalid configdrive format: it is neither a JSON, nor a URL, nor a base64 string"))
}

fn check_parts(parts: &Map<String, Value>) -> Result<(), ApiError> {
    // Which node it is for makes no difference here.
    let made = Drive::of(parts, Uuid::nil(), None);
    made.map(drop).map_err(|why| ApiError::invalid(format!("Invalid configdrive format: {why}")))
}

/// Whether the agent of a node with the deploy interface `direct` could write the drive: the one of the request, or else the
/// stored one. What a URL leads to, only the agent sees.
pub async fn check_writable(app: &App, node: &Node, given: Option<&Value>) -> Result<(), ImageError> {
    match validation::interface(app, node, "deploy") {
        Some(DIRECT) => {}
        Some(RAMDISK) => return check_drive(given),
        _ => return Ok(()),
    }
    let problem = match given.or(node.instance_info.get(CONFIGDRIVE)) {
        Some(Value::Object(parts)) => {
            Drive::of(parts, node.uuid, node.name.as_deref()).err().map(|why| why.to_string())
        }
        Some(Value::String(text)) if !text.contains("://") && !text.is_empty() => {
            // Up to 64 MiB are unpacked: not on a thread that serves requests.
            let text = text.clone();
            let checked = tokio::task::spawn_blocking(move || check_packed(&text)).await;
            checked
                .map_or(Some("it cannot be checked".to_owned()), |done| done.err().map(|why| why.to_string()))
        }
        _ => None,
    };
    match problem {
        None => Ok(()),
        Some(why) => Err(ImageError::Other(format!("Invalid configdrive format: {why}"))),
    }
}
