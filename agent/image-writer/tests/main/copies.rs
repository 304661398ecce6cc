//! An image at several controllers, the first of which dies: real HTTP servers as the controller has them, and a loop device.

use crate::disks::{Loop, MIB, image, old, request, request_for, sha256, with_tables_at_its_end};
use crate::mirror::{Behaviour, Mirror};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response, StatusCode, header};
use block::fake::FakeDisk;
use futures_util::{StreamExt, stream};
use http_server::{Clients, Limits, Places, Server, Timeouts, file};
use image_writer::source::RequestHeaders;
use image_writer::{Request, write};
use std::fs::File;
use std::io::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const SIZE: usize = 24 * MIB;
const DISK: usize = 32 * MIB;
const ETAG: &str = "\"image\"";
/// What the first controller sends before it dies.
const SENT: usize = 5 * MIB;

/// A controller with one file; dropped, it dies with all its connections.
struct Controller {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<HeaderMap>>>,
    runtime: Option<Runtime>,
}

impl Controller {
    /// `answer` is asked with the number of the request, from 0.
    fn start(answer: impl Fn(usize, &HeaderMap) -> Response<Body> + Send + Sync + 'static) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (asked, answer) = (Arc::<Mutex<Vec<HeaderMap>>>::default(), Arc::new(answer));
        let log = asked.clone();
        let router = Router::new().fallback(move |headers: HeaderMap| {
            let number = {
                let mut log = log.lock().expect("no panic");
                log.push(headers.clone());
                log.len() - 1
            };
            let response = answer(number, &headers);
            async move { response }
        });
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("bound");
        let places = Places::new("agents", Limits { total: 8, per_address: 8 });
        let clients = Clients { timeouts: Timeouts::default(), places, operators: None };
        let server = Server { listener: listener.into(), tls: None, router, clients };
        runtime.spawn(server.run(CancellationToken::new(), Duration::ZERO));
        Self { address, asked, runtime: Some(runtime) }
    }

    /// One that sends the beginning of a file, then says so, and sends nothing more.
    fn that_dies(bytes: Vec<u8>) -> (Self, Receiver<()>) {
        let (sent, hears) = channel();
        let dying = Self::start(move |_, _| {
            let parts: Vec<_> =
                bytes[..SENT].chunks(64 << 10).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
            let sent = sent.clone();
            let end = stream::once(async move {
                let _ = sent.send(());
                std::future::pending::<Result<Bytes, Error>>().await
            });
            let head = Response::builder().header(header::ETAG, ETAG).header(header::ACCEPT_RANGES, "bytes");
            let head = head.header(header::CONTENT_LENGTH, bytes.len());
            head.body(Body::from_stream(stream::iter(parts).chain(end))).expect("an answer")
        });
        (dying, hears)
    }

    /// One that has the file only when it is asked for the third time.
    fn that_has(path: &Path) -> Self {
        let path = path.to_owned();
        Self::start(move |number, headers| {
            if number < 2 {
                return status(StatusCode::SERVICE_UNAVAILABLE);
            }
            let file = File::open(&path).expect("the file");
            let length = file.metadata().expect("its length").len();
            file::answer(file, length, ETAG, headers).expect("an answer")
        })
    }

    fn url(&self) -> String {
        format!("http://{}/v1/anneal/images/x", self.address)
    }

    fn header(&self, name: &str) -> Vec<String> {
        let asked = self.asked.lock().expect("no panic");
        let text = |headers: &HeaderMap| headers.get(name)?.to_str().ok().map(str::to_owned);
        asked.iter().map(|headers| text(headers).unwrap_or_default()).collect()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

fn status(code: StatusCode) -> Response<Body> {
    Response::builder().status(code).body(Body::empty()).expect("an answer")
}

/// Of an image at these controllers, which may be away for a while.
fn request_at(first: &str, others: &[&str], sha256: &str) -> Request {
    let mut request = request_for(first, sha256);
    request.source.copies = others.iter().map(|url| url.parse().expect("a URL")).collect();
    request.source.limits.patience = Duration::from_secs(30);
    request.source.headers = RequestHeaders::of([("x-anneal-agent-token", "token")]).expect("a header");
    request
}

/// An image that a dying controller begins to send, and another one, which has `rest`, goes on with.
fn taken_over(
    raw: &[u8],
    rest: &[u8],
    disk: &Loop,
) -> (Result<image_writer::Record, image_writer::ImageError>, Controller) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), rest).expect("written");
    let ((first, sent), second) = (Controller::that_dies(raw.to_vec()), Controller::that_has(file.path()));
    let request = request_at(&first.url(), &[&second.url()], &sha256(raw));
    let dies = std::thread::spawn(move || {
        sent.recv().expect("asked");
        drop(first);
    });
    let written = write(&request, &disk.open(), &());
    dies.join().expect("no panic");
    (written, second)
}

#[test]
fn an_image_goes_on_at_another_controller_where_the_one_that_died_ended() {
    let (raw, disk) = (image(SIZE), Loop::old(DISK, 512));
    let (written, second) = taken_over(&raw, &raw, &disk);
    let record = written.expect("written");
    assert_eq!((record.downloaded, record.read_back_sha256), (SIZE as u64, sha256(&raw)));
    assert!(disk.content()[MIB..SIZE - MIB] == raw[MIB..SIZE - MIB], "the device has the image");
    // Refused twice, since it had to fetch the image itself; never from the beginning.
    let ranges = second.header("range");
    assert_eq!(ranges.len(), 3, "{ranges:?}");
    let from = |range: &String| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok();
    assert!(
        ranges.iter().all(|range| from(range).is_some_and(|from| from > MIB && from <= SENT)),
        "{ranges:?}"
    );
    assert_eq!(second.header("x-anneal-agent-token"), ["token"; 3]);
    assert_eq!(second.header("if-range"), [ETAG; 3]);
}

/// Same name, same length, same entity tag, and one bit is another one.
#[test]
fn what_another_controller_sends_counts_only_with_the_digest_of_the_whole() {
    let (raw, disk) = (image(SIZE), Loop::old(DISK, 512));
    let mut wrong = raw.clone();
    wrong[SIZE - 2 * MIB] ^= 1;
    let error = taken_over(&raw, &wrong, &disk).0.expect_err("another image").to_string();
    assert!(error.contains("the sha256 of http://"), "{error}");
    assert!(disk.content()[..MIB].iter().all(|&byte| byte == 0), "it can be booted");
}

#[test]
fn a_controller_that_refuses_is_left_out_and_the_last_one_is_not() {
    let raw = image(8 * MIB);
    let refusing = |code: u16| {
        Mirror::new(raw.clone(), move |_, _| Behaviour { status: Some(code), ..Behaviour::default() })
    };
    let ([forbids, lacks], good) = ([403, 404].map(refusing), Mirror::good(raw.clone()));
    let url = |mirror: &Mirror| mirror.url("/x");
    let disk = || FakeDisk::new(old(16 * MIB), 512, vec![]);
    let all = request_at(&url(&forbids), &[&url(&lacks), &url(&good)], &sha256(&raw));
    write(&all, &disk(), &()).expect("written");
    assert_eq!([&forbids, &lacks, &good].map(|mirror| mirror.seen().len()), [1, 1, 1]);
    let none = request_at(&url(&forbids), &[&url(&lacks)], &sha256(&raw));
    let begun = Instant::now();
    let error = write(&none, &disk(), &()).expect_err("none has it").to_string();
    assert!(error.contains(&format!("{} answered 404", url(&lacks))), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(15), "no patience with a refusal");
}

/// Tables that are read ahead come from another controller, too.
#[test]
fn parts_of_an_image_are_asked_of_another_controller() {
    let (file, content) = with_tables_at_its_end(24 * MIB);
    // It has the whole, and dies before it is asked for a part.
    let first = Mirror::new(file.clone(), |_, seen| Behaviour {
        status: seen.range.is_some().then_some(500),
        ..Behaviour::default()
    });
    let second = Mirror::good(file.clone());
    let mut request = request(&first, &file);
    request.source.copies = vec![second.url("/image").parse().expect("a URL")];
    let disk = FakeDisk::new(old(32 * MIB), 512, vec![]);
    let record = write(&request, &disk, &()).expect("written");
    assert_eq!(record.read_back_sha256, sha256(&content));
    assert!(second.seen().iter().any(|seen| seen.range.is_some()), "{:?}", second.seen());
}
