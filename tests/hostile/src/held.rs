//! Connections that are held open: half a request, half a handshake, or nothing at all.

use crate::controller::Ports;
use anyhow::Result;
use bench::client::Route;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Before one that was closed is opened again.
const AGAIN: Duration = Duration::from_millis(500);

/// How many hostile connections are open.
#[derive(Debug, Default)]
pub struct Open(AtomicUsize);

/// One open connection, counted until it is dropped.
pub struct Opened(Arc<Open>);

impl Open {
    /// One more.
    pub fn one(self: &Arc<Self>) -> Opened {
        self.0.fetch_add(1, Ordering::Relaxed);
        Opened(self.clone())
    }

    /// How many there are now.
    pub fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How a held connection begins.
#[derive(Debug, Clone, Copy)]
struct Half {
    port: Port,
    tls: bool,
    bytes: &'static [u8],
}

#[derive(Debug, Clone, Copy)]
enum Port {
    Boot,
    Agents,
    Operators,
}

const HEAD: &[u8] = b"GET /v1/no";
const BODY: &[u8] =
    b"POST /v1/continue_inspection HTTP/1.1\r\nHost: c\r\nContent-Length: 4000\r\n\r\n{\"a\":\"";

/// In the proportions of the controller's default limits: 1024 boot, 2048 agents, 1024 operators.
const HALVES: [Half; 8] = [
    Half { port: Port::Boot, tls: false, bytes: HEAD },
    Half { port: Port::Operators, tls: false, bytes: HEAD },
    Half { port: Port::Agents, tls: false, bytes: b"" },
    Half { port: Port::Agents, tls: true, bytes: HEAD },
    Half { port: Port::Boot, tls: false, bytes: b"" },
    Half { port: Port::Operators, tls: false, bytes: BODY },
    Half { port: Port::Agents, tls: true, bytes: BODY },
    Half { port: Port::Agents, tls: false, bytes: b"\x16\x03\x01\x02\x00\x01" },
];

/// Holds connection `number` until it is dropped, and opens it again whenever the controller closes it.
pub async fn run(number: usize, ports: Ports, open: Arc<Open>) {
    let half = HALVES[number % HALVES.len()];
    let address = u8::try_from(number / HALVES.len() % 256).unwrap_or_default();
    let from = Ipv4Addr::new(127, 1, 0, address);
    let mut route = match half.port {
        Port::Boot => ports.to_boot(from),
        Port::Agents => ports.to_agents(from),
        Port::Operators => Route { to: ports.operators, from, tls: None, nonce: None },
    };
    route.tls = route.tls.filter(|_| half.tls);
    loop {
        // However it ends, it begins anew.
        let _ = hold(&route, half.bytes, &open).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn hold(route: &Route, bytes: &[u8], open: &Arc<Open>) -> Result<()> {
    let mut stream = route.connect().await?;
    let _opened = open.one();
    stream.write_all(bytes).await?;
    stream.flush().await?;
    tokio::io::copy(&mut (&mut stream).take(1 << 16), &mut tokio::io::sink()).await?;
    Ok(())
}
