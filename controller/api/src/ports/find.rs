//! From the name in a path to the port.

use crate::args::is_logical_name;
use crate::call::Call;
use crate::error::ApiError;
use model::Port;
use store::StoreError;
use uuid::Uuid;

/// The port with this UUID or, since 1.88, name.
pub async fn find(call: &Call, ident: &str) -> Result<Port, ApiError> {
    let missing = || ApiError::client(404, format!("Port {ident} could not be found."));
    if let Ok(uuid) = Uuid::parse_str(ident) {
        return match call.app.store.port(uuid).await {
            Err(StoreError::NotFound { .. }) => Err(missing()),
            other => Ok(other?),
        };
    }
    if !is_logical_name(ident) {
        return Err(ApiError::invalid(format!("Expected UUID or name for port_ident: {ident}")));
    }
    if !call.version.has(88) {
        return Err(missing());
    }
    let ports = call.app.store.ports(None).await?;
    ports.into_iter().find(|port| port.name.as_deref() == Some(ident)).ok_or_else(missing)
}
