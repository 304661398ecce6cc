//! The API on 127.0.0.1 over a store in memory, without a conductor: to try clients by hand.
//!
//! usage: memory [PORT]      then: `OS_AUTH_TYPE=none OS_ENDPOINT=http://127.0.0.1:PORT openstack baremetal …`

#[path = "../tests/common/drivers.rs"]
mod drivers;

use api::{App, Settings};
use std::sync::Arc;
use store::memory::MemoryStore;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(6385);
    let (store, drivers) = (Arc::new(MemoryStore::new()), Arc::new(drivers::KeptDrivers::new()));
    let settings = Settings { require_agent_tls: false, ..Settings::default() };
    let app = App { settings, ..App::alone("anneal", store, drivers) };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, api::router(app)).await
}
