//! `PUT /v1/nodes/{ident}/management/inject_nmi`.

use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::lock::Lock;
use axum::extract::Path;

/// `PUT …/management/inject_nmi`: at once.
pub async fn inject(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    call.arguments(&[])?;
    if !call.version.has(29) {
        return Err(ApiError::not_found());
    }
    let node = call.node(&ident).await?;
    let node = Lock::Held.opened(&call, node).await?;
    call.app.drivers.inject_nmi(&node).await?;
    Ok(empty(204, None))
}
