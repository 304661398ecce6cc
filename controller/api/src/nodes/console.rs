//! `/v1/nodes/{ident}/states/console`. No interface of ours has a console to show; the fake one can be switched.

use super::validation;
use crate::body;
use crate::call::{Call, empty, json};
use crate::error::{ApiError, Reply};
use crate::write;
use axum::extract::Path;
use serde_json::{Value, json};

/// `GET …/states/console`.
pub async fn show(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    if node.other.get("console_enabled") != Some(&Value::Bool(true)) {
        return Ok(json(200, &json!({"console_enabled": false, "console_info": null})));
    }
    validation::implemented(&call.app, &node, "console")?;
    Ok(json(200, &json!({"console_enabled": true, "console_info": {}})))
}

/// `PUT …/states/console`.
pub async fn set(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&["enabled"])?;
    let given = call.arguments(&["enabled"])?;
    let enabled = match given.get("enabled") {
        Some(value) => body::boolean("enabled", value)?,
        None => call.args.boolean("enabled")?,
    }
    .ok_or_else(|| ApiError::invalid("Missing mandatory parameter: enabled"))?;
    let node = call.node(&ident).await?;
    validation::implemented(&call.app, &node, "console")?;
    write::change_unlocked(&call, &ident, |node| {
        let mut node = node.clone();
        node.other.insert("console_enabled".into(), enabled.into());
        Ok((node, Vec::new()))
    })
    .await?;
    Ok(empty(202, Some(&call.links.v1(&format!("nodes/{ident}/states/console")))))
}
