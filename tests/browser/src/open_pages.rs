//! What pages cost the controller, without a browser: what a view asks for, and streams that stay open while nothing happens.

use crate::Controller;
use anyhow::{Context, Result, ensure};
use bench::client::{Route, send_at};
use bench::cpu;
use hostile::memory::resident;
use hyper::Method;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};
use tokio::net::TcpSocket;

/// The version of the API that is asked for.
const VERSION: &str = "1.95";
/// What a view of the fleet asks for (`controller/ui/assets/pages/fleet.js`).
const VIEW: [&str; 2] = [
    "/v1/anneal/fleet",
    "/v1/anneal/nodes?limit=100&sort_key=name&fields=uuid,name,provision_state,target_provision_state,power_state,\
     maintenance,owner,resource_class,conductor,provision_updated_at,created_at",
];
/// Pages of one machine, fewer than one address may have connections.
const OF_ONE_ADDRESS: usize = 100;
/// How long the first event of a stream may take.
const FIRST_EVENT: Duration = Duration::from_secs(30);

/// The time that 99 of 100 views take at most, each asking for all that it needs over new connections.
///
/// # Errors
/// When an answer is no success.
pub fn views(controller: &Controller, count: usize) -> Result<Duration> {
    let route = Route::plain(controller.address);
    let mut times = Vec::new();
    for _ in 0..count {
        let begun = Instant::now();
        for path in VIEW {
            let asked = send_at(&route, VERSION, Method::GET, path, Vec::new());
            let (status, body) = controller.runtime.block_on(asked)?;
            ensure!(status == 200, "{path}: {status} {}", String::from_utf8_lossy(&body));
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times.get((times.len() * 99).div_ceil(100).max(1) - 1).copied().context("no view")
}

/// What open pages cost.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Resident bytes more than without them.
    pub memory: u64,
    /// Processor time for each second, without them and with them.
    pub processor: [f64; 2],
}

/// Opens so many pages, half of them of the fleet and half of this node, and looks for this time at what they cost.
///
/// # Errors
/// When a stream is refused, or ends.
pub fn open(controller: &Controller, node: &str, pages: usize, time: Duration) -> Result<Cost> {
    let pid = controller.pid()?;
    let without = processor(pid, time)?;
    let before = resident(pid)?;
    let of_node = format!("/v1/anneal/nodes/{node}/progress");
    let mut streams = (0..pages)
        .map(|page| {
            let path = if page % 2 == 0 { "/v1/anneal/fleet" } else { &of_node };
            stream(controller, page / OF_ONE_ADDRESS, path).with_context(|| format!("page {page}: {path}"))
        })
        .collect::<Result<Vec<_>>>()?;
    let with = processor(pid, time)?;
    let memory = resident(pid)?.saturating_sub(before);
    for stream in &mut streams {
        stream.set_nonblocking(true)?;
        let mut rest = [0; 4096];
        // Comments that keep a stream alive, or nothing yet: only its end is a fault.
        ensure!(!matches!(stream.read(&mut rest), Ok(0)), "a stream has ended");
    }
    Ok(Cost { memory, processor: [without, with] })
}

/// Processor time for each second, over this time.
fn processor(pid: u32, time: Duration) -> Result<f64> {
    let (begun, before) = (Instant::now(), cpu::of_process(pid)?);
    std::thread::sleep(time);
    let spent = cpu::of_process(pid)?.saturating_sub(before);
    Ok(spent.as_secs_f64() / begun.elapsed().as_secs_f64())
}

/// A stream of events whose first one has come, from one of a few addresses of this machine.
fn stream(controller: &Controller, address: usize, path: &str) -> Result<TcpStream> {
    let from = Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(address)?);
    let connected = controller.runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        socket.connect(controller.address).await?.into_std()
    });
    let mut stream = connected?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(FIRST_EVENT))?;
    let host = controller.address;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\naccept: text/event-stream\r\n\r\n")?;
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    while !read.windows(6).any(|part| part == b"event:") {
        let count = stream.read(&mut buffer)?;
        ensure!(count > 0, "it ends: {}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&buffer[..count]);
        ensure!(read.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&read));
    }
    Ok(stream)
}
