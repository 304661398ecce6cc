//! The API on 127.0.0.1 over a store in memory, without a conductor: to try clients by hand.
//!
//! usage: memory [PORT]      then: `OS_AUTH_TYPE=none OS_ENDPOINT=http://127.0.0.1:PORT openstack baremetal …`

#[path = "../tests/common/drivers.rs"]
mod drivers;

use api::{App, LockWaits, Settings};
use std::sync::Arc;
use store::memory::MemoryStore;
use store::{Members, SystemClock};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(6385);
    let app = App {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemClock::default()),
        drivers: Arc::new(drivers::KeptDrivers::new()),
        bundles: None,
        images: Default::default(),
        certificate_key: None,
        lock_waits: LockWaits::default(),
        remarks: Default::default(),
        events: Default::default(),
        metrics: Default::default(),
        members: Members::alone("anneal"),
        settings: Settings { require_agent_tls: false, ..Settings::default() },
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, api::router(app)).await
}
