//! `/v1/nodes/{ident}/management/boot_device`.

use crate::body;
use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use crate::format::text;
use crate::lock::Lock;
use axum::extract::Path;
use model::Node;
use model::provision::Budget;
use serde_json::json;

/// `GET …/boot_device`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    let boot = call.app.drivers.boot_device(&node).await?;
    Ok(json(200, &json!({"boot_device": text(boot.device.as_deref()), "persistent": boot.persistent})))
}

/// `GET …/boot_device/supported`.
pub async fn supported(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    let devices = call.app.drivers.supported_boot_devices(&node).await?;
    Ok(json(200, &json!({"supported_boot_devices": devices})))
}

/// `PUT …/boot_device`.
pub async fn set(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["boot_device", "persistent"])?;
    let given = call.arguments(&["boot_device", "persistent"])?;
    let device = match call.args.text("boot_device") {
        Some(device) => device,
        None => body::required(&given, "boot_device")?,
    };
    let persistent = match given.get("persistent") {
        Some(value) => body::boolean("persistent", value)?,
        None => call.args.boolean("persistent")?,
    };
    let node = call.node(&ident).await?;
    check_rests(&node)?;
    let node = Lock::Held.opened(&call, node).await?;
    check_rests(&node)?;
    call.app.drivers.set_boot_device(&node, device, persistent.unwrap_or(false)).await?;
    Ok(empty(204, None))
}

/// 409 while the controller works on the node: its boot device is the conductor's.
fn check_rests(node: &Node) -> Result<(), ApiError> {
    if node.provision_state.budget() == Budget::User {
        return Ok(());
    }
    Err(ApiError::conflict(format!(
        "The boot device of node {} can not be changed while it is in state \"{}\".",
        node.uuid,
        node.provision_state.as_str()
    )))
}
