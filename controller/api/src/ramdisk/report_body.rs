//! The body of an inspection's report: read a piece at a time, since its sender is unknown and it may be large.

use crate::bounded_json;
use crate::error::ApiError;
use axum::body::{Body, Bytes};
use http_body_util::BodyExt;
use model::json_structure;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use store::{StoreError, inventory};
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Largest body while no node is known to wait for a report, in bytes: ten times the report of a large server.
pub const SMALL: usize = 256 << 10;

/// Largest report without the ramdisk's logs, in bytes: some twenty times that of a large server. Text and values of it
/// are in memory several times while it is stored, read and judged.
const KEPT_MAX: usize = inventory::MAX / 8 * 3;

/// Most memory that its objects and values may need, in bytes: some 2,200 objects or 16,000 values.
const STRUCTURE_MAX: usize = json_structure::STRUCTURE_MAX / 2;

/// Largest body, in bytes: the largest report, and 2 MiB of the ramdisk's logs, which are not kept.
pub const BODY_LIMIT: usize = KEPT_MAX + (2 << 20);

/// Most bodies above [`SMALL`] in memory at once.
const LARGE_AT_ONCE: usize = 8;

/// Lets in one report from each address at a time, and a few large ones in all.
pub struct ReportGate {
    addresses: StdMutex<HashMap<IpAddr, Arc<Mutex<()>>>>,
    large: Arc<Semaphore>,
}

/// A body, and what entitles the request to hold it.
pub struct ReportBody {
    /// The bytes.
    pub bytes: Vec<u8>,
    large: Option<OwnedSemaphorePermit>,
}

impl Default for ReportGate {
    fn default() -> Self {
        Self { addresses: StdMutex::default(), large: Arc::new(Semaphore::new(LARGE_AT_ONCE)) }
    }
}

impl ReportGate {
    /// Wait until no other report of this address is read or judged. The wait ends with the connection, and the server
    /// bounds the connections of one address.
    pub async fn turn(&self, address: IpAddr) -> OwnedMutexGuard<()> {
        let turn = {
            let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            addresses.retain(|known, turn| *known == address || Arc::strong_count(turn) > 1);
            addresses.entry(address).or_default().clone()
        };
        turn.lock_owned().await
    }
}

impl ReportBody {
    /// Read a body. One above [`SMALL`] is read on only if `awaited` says that a node waits for it.
    ///
    /// # Errors
    /// 413: it is too large. 400: it does not arrive whole.
    pub async fn read(
        mut body: Body,
        gate: &ReportGate,
        awaited: impl Future<Output = Result<bool, ApiError>>,
    ) -> Result<Self, ApiError> {
        let mut read = Self { bytes: Vec::new(), large: None };
        let mut awaited = Some(awaited);
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|_| ApiError::invalid("The body of the request did not arrive whole."))?;
            let data: Bytes = frame.into_data().unwrap_or_default();
            let length = read.bytes.len() + data.len();
            if length > SMALL
                && let Some(awaited) = awaited.take()
            {
                if !awaited.await? {
                    return Err(too_large());
                }
                read.large = gate.large.clone().acquire_owned().await.ok();
                // Growing by doubling would need three times as much for a moment.
                read.bytes.reserve_exact(BODY_LIMIT - read.bytes.len());
            }
            if length > BODY_LIMIT {
                return Err(too_large());
            }
            read.bytes.extend_from_slice(&data);
        }
        Ok(read)
    }

    /// Check how much memory would be needed for its objects and values.
    ///
    /// # Errors
    /// 413: too much. 400: it is not JSON.
    pub fn check_structure(&self) -> Result<(), ApiError> {
        bounded_json::check(&self.bytes)?;
        match json_structure::structure(&self.bytes) {
            0..=STRUCTURE_MAX => Ok(()),
            _ => Err(too_large()),
        }
    }

    /// Whether it is no larger than an unexpected one may be.
    pub fn is_small(&self) -> bool {
        self.large.is_none()
    }

    /// Everything but the ramdisk's logs, which are no part of what it found; Ironic does not keep them here either.
    ///
    /// # Errors
    /// 413: it is larger than an inventory of `node` may be. 400: it is not JSON.
    pub fn without_logs(&self, node: Uuid) -> Result<Value, ApiError> {
        let invalid = |error: serde_json::Error| bounded_json::invalid(&error);
        let mut members: BTreeMap<String, &RawValue> =
            serde_json::from_slice(&self.bytes).map_err(invalid)?;
        members.remove("logs");
        let bytes: usize = members.iter().map(|(name, value)| name.len() + value.get().len()).sum();
        if bytes > KEPT_MAX {
            let most = KEPT_MAX;
            return Err(StoreError::TooLarge { what: "The inventory", node, bytes, most }.into());
        }
        let mut kept = Map::new();
        for (name, value) in members {
            kept.insert(name, serde_json::from_str(value.get()).map_err(invalid)?);
        }
        Ok(Value::Object(kept))
    }
}

fn too_large() -> ApiError {
    ApiError::client(413, "The report is larger than is accepted.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Poll;

    #[tokio::test]
    async fn one_report_of_an_address_at_a_time() {
        let gate = ReportGate::default();
        let (first, second) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let turn = gate.turn(first).await;
        drop(gate.turn(second).await);
        let mut next = pin!(gate.turn(first));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(next.as_mut().poll(&mut context).is_pending());
        drop(turn);
        assert!(matches!(next.as_mut().poll(&mut context), Poll::Ready(_)));
        drop(gate.turn(second).await);
        assert!(gate.addresses.lock().unwrap().len() <= 2, "addresses are forgotten");
    }
}
