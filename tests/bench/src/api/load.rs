//! Clients at once, each on a thread of its own with a kept connection.

use super::http::Client;
use crate::cpu;
use anyhow::{Context, Result, ensure};
use rustls::ClientConfig;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What clients saw.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Load {
    /// Requests.
    pub count: usize,
    /// Requests a second, by all clients.
    pub per_s: f64,
    /// Time of an answer that half of them did not exceed.
    pub p50_ms: f64,
    /// The same of 99 in a hundred.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Processor time of the controller for each.
    pub server_us: f64,
    /// Processor time of this program, which is the client, for each.
    pub client_us: f64,
}

/// Sends requests for `span`: `make` gives the one of this number of this client. Every answer must have this status.
pub fn run(
    to: (SocketAddr, u32),
    clients: usize,
    span: Duration,
    status: u16,
    make: impl Fn(usize, usize) -> Vec<u8> + Sync,
) -> Result<Load> {
    let make = &make;
    timed(to, clients, span, |client| {
        let mut connection = Client::connect(to.0)?;
        Ok(move |number| sent(&mut connection, &make(client, number), status))
    })
}

/// The same with a fresh connection and a full handshake of TLS for each request, which are a part of its time.
pub fn run_afresh(
    to: (SocketAddr, u32),
    tls: &Arc<ClientConfig>,
    clients: usize,
    span: Duration,
    status: u16,
    make: impl Fn(usize, usize) -> Vec<u8> + Sync,
) -> Result<Load> {
    let make = &make;
    timed(to, clients, span, |client| {
        Ok(move |number| sent(&mut Client::connect_tls(to.0, tls)?, &make(client, number), status))
    })
}

/// Fresh connections whose handshake is made, and nothing else.
pub fn handshakes(
    to: (SocketAddr, u32),
    tls: &Arc<ClientConfig>,
    clients: usize,
    span: Duration,
) -> Result<Load> {
    timed(to, clients, span, |_| Ok(move |_| Client::connect_tls(to.0, tls).map(drop)))
}

fn sent(connection: &mut Client, request: &[u8], status: u16) -> Result<()> {
    let (answer, body) = connection.send(request)?;
    ensure!(answer == status, "{answer}: {}", String::from_utf8_lossy(body));
    Ok(())
}

/// What clients do again and again for `span`, each as `begin` makes it for its number. The work gets the number of the turn.
fn timed<W: FnMut(usize) -> Result<()>>(
    (_, process): (SocketAddr, u32),
    clients: usize,
    span: Duration,
    begin: impl Fn(usize) -> Result<W> + Sync,
) -> Result<Load> {
    let failed = AtomicBool::new(false);
    let used =
        || -> Result<[Duration; 2]> { Ok([cpu::of_group(process)?, cpu::of_process(std::process::id())?]) };
    let (before, begun) = (used()?, Instant::now());
    let client = |client: usize| -> Result<Vec<Duration>> {
        let mut work = begin(client)?;
        let mut times = Vec::new();
        while begun.elapsed() < span && !failed.load(Ordering::Relaxed) {
            let started = Instant::now();
            work(times.len())?;
            times.push(started.elapsed());
        }
        Ok(times)
    };
    let times: Result<Vec<Vec<Duration>>> = std::thread::scope(|scope| {
        let work = |number| {
            let times = client(number);
            failed.fetch_or(times.is_err(), Ordering::Relaxed);
            times
        };
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || work(number))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().ok().context("a client panicked")?);
        joined.collect()
    });
    let (took, after) = (begun.elapsed().as_secs_f64(), used()?);
    let mut times = times?.concat();
    times.sort_unstable();
    let count = times.len();
    let at = |share: usize| {
        let rank = (count * share).div_ceil(100).max(1);
        times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    let each =
        |index: usize| after[index].saturating_sub(before[index]).as_secs_f64() * 1e6 / count.max(1) as f64;
    Ok(Load {
        count,
        per_s: count as f64 / took,
        p50_ms: at(50),
        p99_ms: at(99),
        max_ms: at(100),
        server_us: each(0),
        client_us: each(1),
    })
}

impl Load {
    /// What the clients of several servers saw at the same time. Of their percentiles, the highest counts.
    pub fn of_all(loads: &[Self]) -> Self {
        let count: usize = loads.iter().map(|load| load.count).sum();
        let most = |of: fn(&Self) -> f64| loads.iter().map(of).fold(0.0, f64::max);
        let each = |of: fn(&Self) -> f64| {
            loads.iter().map(|load| of(load) * load.count as f64).sum::<f64>() / count.max(1) as f64
        };
        Self {
            count,
            per_s: loads.iter().map(|load| load.per_s).sum(),
            p50_ms: most(|load| load.p50_ms),
            p99_ms: most(|load| load.p99_ms),
            max_ms: most(|load| load.max_ms),
            server_us: each(|load| load.server_us),
            // Each of them measured this whole program.
            client_us: each(|load| load.client_us) / loads.len().max(1) as f64,
        }
    }
}
