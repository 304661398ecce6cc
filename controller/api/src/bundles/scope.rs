//! A scope as it is written in a query: `all`, `driver:NAME`, `resource_class:NAME`, `node:UUID or name`.

use crate::call::Call;
use crate::error::ApiError;
use model::Scope;

/// Longest resource class, as everywhere.
const CLASS_MAX: usize = 80;

/// The argument `scope`, checked against the drivers and nodes that exist, so that a typing error does not yield an empty scope.
pub async fn read(call: &Call) -> Result<Option<Scope>, ApiError> {
    let Some(text) = call.args.text("scope") else { return Ok(None) };
    let bad = || {
        ApiError::invalid(format!(
            "Expected all, driver:NAME, resource_class:NAME or node:UUID for scope: {text}"
        ))
    };
    if text == "all" {
        return Ok(Some(Scope::All));
    }
    let (kind, name) = text.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(bad)?;
    let scope = match kind {
        "driver" if call.app.drivers.drivers().iter().any(|driver| driver.name == name) => {
            Scope::Driver(name.to_owned())
        }
        "driver" => {
            return Err(ApiError::invalid(format!("No driver {name} for scope: {text}")));
        }
        "resource_class" if name.chars().count() <= CLASS_MAX && !name.chars().any(char::is_control) => {
            Scope::ResourceClass(name.to_owned())
        }
        "node" => Scope::Node(call.app.store.node_by_ident(name).await?.uuid),
        _ => return Err(bad()),
    };
    Ok(Some(scope))
}
