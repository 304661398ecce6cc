//! Forms of the configuration drive of an instance: its parts as an object, a URL, or the image itself in
//! base64.

use crate::body::python;
use crate::error::ApiError;
use crate::microversion::Version;
use serde_json::Value;

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
        Value::Object(_) => {
            check_object(drive)?;
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

/// Errors do not quote values: user data hold passwords.
fn check_object(drive: &Value) -> Result<(), ApiError> {
    for (name, part) in drive.as_object().into_iter().flatten() {
        let sound = match name.as_str() {
            "meta_data" | "network_data" | "vendor_data" => part.is_object(),
            "user_data" => part.is_object() || part.is_array() || part.is_string(),
            _ => {
                return Err(ApiError::invalid(format!(
                    "Invalid configdrive format: Additional properties are not allowed ('{name}' was unexpected)"
                )));
            }
        };
        if !sound && !part.is_null() {
            return Err(ApiError::invalid(format!(
                "Invalid configdrive format: {name} is of the wrong type"
            )));
        }
    }
    Ok(())
}
