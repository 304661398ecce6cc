//! A time server (SNTP, RFC 4330) on the nodes' network.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result};
use tokio::net::UdpSocket;
use tokio_util::task::AbortOnDropHandle;

/// Seconds from 1900 to 1970.
const EPOCH: u64 = 2_208_988_800;
/// Version 4, a server.
const ANSWER: u8 = 0x24;

/// Answers with the time of this machine. It ends when this is dropped.
#[derive(Debug)]
pub struct TimeServer {
    asked: Arc<AtomicU64>,
    _task: AbortOnDropHandle<()>,
}

impl TimeServer {
    /// Listens on port 123 of this address.
    ///
    /// # Errors
    /// When the port is taken.
    pub async fn start(address: IpAddr) -> Result<Self> {
        let socket = UdpSocket::bind((address, 123)).await.context("port 123")?;
        let asked = Arc::new(AtomicU64::new(0));
        let counted = asked.clone();
        let task = tokio::spawn(async move {
            let mut question = [0; 48];
            loop {
                let Ok((48, from)) = socket.recv_from(&mut question).await else { continue };
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = socket.send_to(&answer(&question), from).await;
            }
        });
        Ok(Self { asked, _task: AbortOnDropHandle::new(task) })
    }

    /// How often it was asked.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

fn answer(question: &[u8; 48]) -> [u8; 48] {
    let mut answer = [0; 48];
    (answer[0], answer[1]) = (ANSWER, 1);
    answer[24..32].copy_from_slice(&question[40..]);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The low 32 bits, as the protocol has them.
    answer[40..44].copy_from_slice(&(now.as_secs() + EPOCH).to_be_bytes()[4..]);
    answer
}
