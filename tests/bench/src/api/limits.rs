//! What a program reaches that does nothing else: an empty route of the same HTTP server, a prepared statement on the same
//! database, a group commit of rows as large, a sync of the same disk, a handshake.

use super::fill::{self, Filled};
use super::load::{self, Load};
use super::tls::{Identity, provider};
use anyhow::{Context, Result};
use axum::Router;
use axum::routing::get;
use contract::process::{Daemon, free_port};
use http_server::{Clients, Limits, Places, Server, Timeouts};
use rusqlite::{Connection, OpenFlags};
use rustls::{ServerConfig, ServerConnection, Stream};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Connections of the server with the empty route.
const PLACES: usize = 1000;
/// Rows of one group commit: as many as there are connections.
const GROUP: usize = 64;
/// Bytes of a row, about those of a node.
const ROW: usize = 2048;
/// Median of this many.
const SYNCS: usize = 200;

/// Serves an empty route on a port of loopback until it is killed: what `bench api` runs as its child.
///
/// # Errors
/// When the port cannot be opened.
pub fn serve_nothing(port: u16) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?.into();
        let places = Places::new("bench", Limits { total: PLACES, per_address: PLACES });
        let clients = Clients { timeouts: Timeouts::default(), places, operators: None };
        let router = Router::new().route("/", get(|| async {}));
        let server = Server { listener, tls: None, router, clients };
        server.run(CancellationToken::new(), Duration::ZERO).await;
        Ok(())
    })
}

/// Requests of an empty route of the server, by so many clients.
pub fn empty_route(bench: &Path, scratch: &Path, clients: usize, span: Duration) -> Result<Load> {
    let port = free_port()?;
    let mut command = Command::new(bench);
    command.args(["api-serve-nothing", &port.to_string()]);
    let mut process = Daemon::start(&command, &scratch.join("empty-route.log"))?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    contract::process::wait_until("the empty route is served", Duration::from_secs(30), || {
        process.ensure_running()?;
        Ok(std::net::TcpStream::connect(address).is_ok())
    })?;
    let request = super::http::request("GET", "/", None);
    load::run((address, process.id()), clients, span, 200, |_, _| request.clone())
}

/// Completes handshakes on a port of loopback and does nothing else, until it is killed: what `bench api` runs as its child.
///
/// # Errors
/// When the port cannot be opened, or the certificate cannot be read.
pub fn serve_handshakes(port: u16, certificate: &Path, key: &Path) -> Result<()> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let config = builder.with_no_client_auth().with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    let (config, listener) = (Arc::new(config), std::net::TcpListener::bind(("127.0.0.1", port))?);
    // More than processors: one waits for its client to close.
    let threads = 4 * std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let serve = || -> Result<()> {
            loop {
                let (stream, _) = listener.accept()?;
                if let Err(error) = handshake(&config, stream) {
                    eprintln!("a handshake: {error:#}");
                }
            }
        };
        let serving: Vec<_> = (0..threads).map(|_| scope.spawn(serve)).collect();
        serving.into_iter().try_for_each(|thread| thread.join().ok().context("a thread panicked")?)
    })
}

/// One handshake, until the client closes.
fn handshake(config: &Arc<ServerConfig>, mut stream: std::net::TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = ServerConnection::new(config.clone())?;
    match Stream::new(&mut connection, &mut stream).read(&mut [0]) {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => Err(error.into()),
        _ => Ok(()),
    }
}

/// Handshakes of rustls without anything after them, by so many clients.
pub fn handshakes(
    bench: &Path,
    scratch: &Path,
    identity: &Identity,
    clients: usize,
    span: Duration,
) -> Result<Load> {
    let port = free_port()?;
    let mut command = Command::new(bench);
    command.args(["api-serve-handshakes", &port.to_string()]).arg(&identity.certificate).arg(&identity.key);
    let mut process = Daemon::start(&command, &scratch.join("handshakes.log"))?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    contract::process::wait_until("handshakes are made", Duration::from_secs(30), || {
        process.ensure_running()?;
        Ok(super::http::Client::connect_tls(address, &identity.client).is_ok())
    })?;
    load::handshakes((address, process.id()), &identity.client, clients, span)
}

/// Milliseconds that a prepared statement takes to read the documents of a page of 100 from all over the database: median, 99 %.
pub fn page(filled: &Filled, rounds: usize) -> Result<(f64, f64)> {
    let file = filled.directory.join("anneal.sqlite");
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut select = database
        .prepare("SELECT doc FROM node WHERE created_at >= ?1 ORDER BY created_at, uuid LIMIT 100")?;
    let mut times = Vec::new();
    for round in 0..rounds.max(1) {
        let from = i64::try_from(round * filled.count.saturating_sub(100) / rounds.max(1))?;
        let begun = Instant::now();
        let docs = select.query_map([from], |row| row.get::<_, String>(0))?;
        let bytes: usize = docs.map(|doc| doc.map(|doc| doc.len())).sum::<rusqlite::Result<usize>>()?;
        anyhow::ensure!(bytes > 0, "an empty page");
        times.push(begun.elapsed());
    }
    Ok((rank(&mut times, 50), rank(&mut times, 99)))
}

/// What writes cost a program that does nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Writes {
    /// Median milliseconds of a write of 8 KiB that is made durable, in a file that does not grow.
    pub sync_ms: f64,
    /// Rows a second, each in a transaction of its own.
    pub single_per_s: f64,
    /// Rows a second, [`GROUP`] in a transaction.
    pub group_per_s: f64,
}

/// Measures them below `dir`, for `span` each.
pub fn writes(dir: &Path, span: Duration) -> Result<Writes> {
    let database = Connection::open(dir.join("limits.sqlite"))?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch("CREATE TABLE document (id TEXT PRIMARY KEY, doc TEXT)")?;
    let doc = "x".repeat(ROW);
    let rows_per_s = |group: usize| -> Result<f64> {
        let (begun, mut count) = (Instant::now(), 0);
        while begun.elapsed() < span {
            database.execute_batch("BEGIN IMMEDIATE")?;
            let mut put = database.prepare_cached("INSERT OR REPLACE INTO document VALUES (?1, ?2)")?;
            for _ in 0..group {
                put.execute([&fill::uuid(count % 10_000).to_string(), &doc])?;
                count += 1;
            }
            database.execute_batch("COMMIT")?;
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    };
    Ok(Writes { sync_ms: sync_ms(dir)?, single_per_s: rows_per_s(1)?, group_per_s: rows_per_s(GROUP)? })
}

/// Median milliseconds of 8 KiB that are written over what a file has, and made durable.
pub fn sync_ms(dir: &Path) -> Result<f64> {
    let path = dir.join("sync");
    let file = std::fs::File::create(&path).with_context(|| path.display().to_string())?;
    let place = |number: usize| u64::try_from(number * 8192);
    for number in 0..SYNCS {
        file.write_all_at(&[0; 8192], place(number)?)?;
    }
    file.sync_all()?;
    let mut times = Vec::new();
    for number in 0..SYNCS {
        let begun = Instant::now();
        file.write_all_at(&[0x5a; 8192], place(number)?)?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    std::fs::remove_file(&path)?;
    Ok(rank(&mut times, 50))
}

fn rank(times: &mut [Duration], share: usize) -> f64 {
    times.sort_unstable();
    let rank = (times.len() * share).div_ceil(100).max(1);
    times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}
