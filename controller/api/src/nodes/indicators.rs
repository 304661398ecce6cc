//! `/v1/nodes/{ident}/management/indicators`: lamps, named `<name>@<component>`.

use crate::body;
use crate::call::{Call, empty, json};
use crate::driver_queries::{INDICATOR_STATES, Indicator, IndicatorId};
use crate::error::{ApiError, Reply};
use crate::lock::Lock;
use axum::extract::Path;
use model::Node;
use serde_json::{Value, json};

/// `GET …/indicators`.
pub async fn list(Path(ident): Path<String>, call: Call) -> Reply {
    let node = call.node(&ident).await?;
    let indicators = call.app.drivers.indicators(&node).await?;
    let shown: Vec<_> = indicators.iter().map(|indicator| view(&call, &ident, indicator)).collect();
    Ok(json(200, &json!({ "indicators": shown })))
}

/// `GET …/indicators/{name}@{component}`.
pub async fn show(Path((ident, indicator)): Path<(String, String)>, call: Call) -> Reply {
    call.args.only(&[])?;
    let node = call.node(&ident).await?;
    let lamp = lamp(&indicator)?;
    known(&call, &node, &lamp).await?;
    let state = call.app.drivers.indicator(&node, &lamp).await?;
    Ok(json(200, &json!({ "state": state })))
}

/// `PUT …/indicators/{name}@{component}`.
pub async fn set(Path((ident, indicator)): Path<(String, String)>, call: Call) -> Reply {
    call.args.only(&["state"])?;
    let given = call.arguments(&["state"])?;
    let state = match call.args.text("state") {
        Some(state) => state,
        None => body::required(&given, "state")?,
    };
    // Clients write them in either case.
    let state = state.to_lowercase();
    let node = call.node(&ident).await?;
    let lamp = lamp(&indicator)?;
    let indicator = known(&call, &node, &lamp).await?;
    if !INDICATOR_STATES.contains(&state.as_str()) || !indicator.states.contains(&state) {
        return Err(ApiError::invalid(format!("Invalid indicator state {state} specified.")));
    }
    if indicator.read_only {
        return Err(ApiError::invalid(format!("Indicator {} can only be read.", lamp.name)));
    }
    let node = Lock::Held.opened(&call, node).await?;
    call.app.drivers.set_indicator(&node, &lamp, &state).await?;
    Ok(empty(204, None))
}

fn lamp(unique: &str) -> Result<IndicatorId, ApiError> {
    let (name, component) = unique
        .split_once('@')
        .ok_or_else(|| ApiError::invalid(format!("Malformed indicator name \"{unique}\"")))?;
    Ok(IndicatorId { component: component.to_owned(), name: name.to_owned() })
}

async fn known(call: &Call, node: &Node, lamp: &IndicatorId) -> Result<Indicator, ApiError> {
    let indicators = call.app.drivers.indicators(node).await?;
    if !indicators.iter().any(|known| known.lamp.component == lamp.component) {
        return Err(ApiError::invalid(format!("Invalid component {} specified.", lamp.component)));
    }
    let found = indicators.into_iter().find(|known| known.lamp == *lamp);
    found.ok_or_else(|| ApiError::invalid(format!("Invalid indicator {} specified.", lamp.name)))
}

fn view(call: &Call, ident: &str, indicator: &Indicator) -> Value {
    let name = format!("{}@{}", indicator.lamp.name, indicator.lamp.component);
    json!({
        "name": name,
        "component": indicator.lamp.component,
        "readonly": indicator.read_only,
        "states": indicator.states,
        "links": call.links.pair(&format!("nodes/{ident}/management/indicators/{name}")),
    })
}
