//! Webhooks at a real receiver over HTTP, which fails half of the time, redirects, or takes nothing.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use model::history::{EventKind, Severity};
use model::{DeadLetter, Event, Node, Timestamp};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use store::memory::MemoryStore;
use store::prelude::*;
use store::{Clock, EventCursor, SystemClock};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use webhooks::{Backoff, Dispatcher, HEADER, Webhook};

const SECRET: &[u8] = b"a secret of 16 or more";
const LIMIT: Duration = Duration::from_secs(60);

/// How the receiver answers to a request, given how many it has had before.
type Answer = dyn Fn(usize, &Value) -> Response + Send + Sync;

/// What a receiver was sent, in order, with what it answered.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<(Value, StatusCode)>>>);

impl Requests {
    fn all(&self) -> Vec<(Value, StatusCode)> {
        self.0.lock().unwrap().clone()
    }

    /// The texts of the events that were taken, as often as they came.
    fn taken(&self) -> Vec<String> {
        let all = self.all().into_iter().filter(|(_, status)| status.is_success());
        all.map(|(event, _)| event["text"].as_str().unwrap().to_owned()).collect()
    }

    async fn until(&self, what: &str, enough: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !enough(self) {
            assert!(begun.elapsed() < LIMIT, "{what}: {:?}", self.all());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Verifies the signature as the documentation says: HMAC-SHA256 over time, dot and body.
fn is_signed(headers: &HeaderMap, body: &[u8]) -> bool {
    let header = headers[HEADER].to_str().unwrap();
    let (time, hex) = header.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
    let signed = [time.as_bytes(), b".", body].concat();
    let tag: Vec<u8> =
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET);
    ring::hmac::verify(&key, &signed, &tag).is_ok()
}

/// A receiver; its URL.
async fn receiver(requests: Requests, answer: Box<Answer>) -> String {
    let answer: Arc<Answer> = answer.into();
    let take = move |uri: Uri, headers: HeaderMap, body: Bytes| {
        let (requests, answer) = (requests.clone(), answer.clone());
        async move {
            // A redirect that is followed loses the event: it is accepted here, and never counted as taken.
            if uri.path() != "/hook" {
                return StatusCode::OK.into_response();
            }
            assert!(is_signed(&headers, &body), "the signature is wrong");
            assert_eq!(headers["anneal-webhook"], "cmdb");
            let event: Value = serde_json::from_slice(&body).unwrap();
            let mut had = requests.0.lock().unwrap();
            let answer = answer(had.len(), &event);
            had.push((event, answer.status()));
            answer
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
    url
}

struct World {
    store: Arc<MemoryStore>,
    dir: TempDir,
    node: Node,
}

impl World {
    async fn new() -> Self {
        let store = Arc::new(MemoryStore::shared());
        let node = Node::enrolled(Uuid::new_v4(), "fake-hardware", Timestamp(0));
        let node = store.create_node(node, vec![]).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("secret"), [SECRET, b"\nanother line"].concat()).unwrap();
        Self { store, dir, node }
    }

    fn webhook(&self, url: &str) -> Webhook {
        Webhook {
            url: url.to_owned(),
            secret_file: self.dir.path().join("secret"),
            types: vec!["step".to_owned()],
            projects: Vec::new(),
            ca_file: "/dev/null".into(),
            pin: format!("sha256:{}", "ab".repeat(32)),
            max_tries: 16,
            timeout_s: 10,
        }
    }

    /// A controller of this name that delivers, with short pauses.
    fn deliver(&self, holder: &str, webhook: &Webhook, tries: u32) -> (JoinHandle<()>, CancellationToken) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let backoff =
            Backoff { first_pause: Duration::from_millis(1), longest_pause: Duration::from_millis(4), tries };
        let dispatcher = Dispatcher::new("cmdb", webhook.clone(), self.store.clone(), clock, holder).unwrap();
        let stop = CancellationToken::new();
        (tokio::spawn(dispatcher.with(backoff).run(stop.clone())), stop)
    }

    /// Wait until the store is like this.
    async fn until(&self, what: &str, is_so: impl AsyncFn(&MemoryStore) -> bool) {
        let begun = Instant::now();
        while !is_so(&self.store).await {
            assert!(begun.elapsed() < LIMIT, "not so: {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Write events of these numbers, and one before each that the webhook does not want.
    async fn write(&mut self, numbers: std::ops::Range<usize>) {
        for n in numbers {
            let event = |kind, text| Event::new(kind, Severity::Info, text, Timestamp(0));
            let events = vec![
                event(EventKind::Power, format!("not {n}")),
                event(EventKind::Step, format!("event {n}")),
            ];
            self.node = self.store.update_node(self.node.clone(), events, None).await.unwrap();
        }
    }
}

fn texts(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|n| format!("event {n}")).collect()
}

/// Everything that was taken, once, in the order in which it came first.
fn firsts(taken: &[String]) -> Vec<String> {
    let mut seen = Vec::new();
    for text in taken {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_fails_half_of_the_time_gets_all_in_order_over_a_change_of_the_controller() {
    const EVENTS: usize = 60;
    let mut world = World::new().await;
    // What was before the webhook is none of its business.
    world.write(0..1).await;
    let requests = Requests::default();
    // In no regular order: error, redirect, or a taken event whose answer is never sent.
    let answer = |count: usize, _: &Value| match (count * 7 + count / 3) % 6 {
        0 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        1 => (StatusCode::TEMPORARY_REDIRECT, [("location", "/elsewhere")]).into_response(),
        2 => StatusCode::TOO_MANY_REQUESTS.into_response(),
        _ => (StatusCode::OK, vec![b'x'; 1 << 20]).into_response(),
    };
    let url = receiver(requests.clone(), Box::new(answer)).await;
    let webhook = world.webhook(&url);
    let (first, stop_first) = world.deliver("a", &webhook, 50);
    let (second, stop_second) = world.deliver("b", &webhook, 50);
    world.until("it is taken", async |store| !store.deliveries().await.unwrap().is_empty()).await;
    world.write(1..EVENTS / 2).await;
    requests.until("some", |requests| requests.taken().len() > 10).await;
    // The one that delivers stops, and the other goes on; then it too, and the first comes back.
    stop_first.cancel();
    first.await.unwrap();
    world.write(EVENTS / 2..EVENTS).await;
    requests.until("all", |requests| firsts(&requests.taken()).len() >= EVENTS - 1).await;
    stop_second.cancel();
    second.await.unwrap();
    let taken = requests.taken();
    assert_eq!(firsts(&taken), texts(1..EVENTS), "in order");
    assert!(taken.len() < EVENTS + 2, "doubled only where a controller stopped: {taken:?}");
    assert_eq!(world.store.dead_letters("cmdb", false, 9).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_never_taken_becomes_a_dead_letter_and_is_tried_again_when_a_user_asks() {
    let mut world = World::new().await;
    let (requests, repaired) = (Requests::default(), Arc::new(Mutex::new(false)));
    let works = repaired.clone();
    let answer = move |_: usize, event: &Value| {
        let bad = event["text"] == "event 1" && !*works.lock().unwrap();
        (if bad { StatusCode::BAD_REQUEST } else { StatusCode::NO_CONTENT }).into_response()
    };
    let url = receiver(requests.clone(), Box::new(answer)).await;
    let (task, stop) = world.deliver("a", &world.webhook(&url), 3);
    world.until("it is taken", async |store| !store.deliveries().await.unwrap().is_empty()).await;
    world.write(0..3).await;
    requests.until("the others", |requests| requests.taken().len() >= 2).await;
    assert_eq!(requests.taken(), ["event 0", "event 2"]);
    let refused = requests.all().iter().filter(|(_, status)| *status == StatusCode::BAD_REQUEST).count();
    let letters = world.store.dead_letters("cmdb", false, 9).await.unwrap();
    assert_eq!((refused, letters.len(), letters[0].tries), (3, 1, 3));
    assert_eq!(letters[0].error, "it answered with status 400");
    assert!(!letters[0].error.contains(&url));

    *repaired.lock().unwrap() = true;
    world.store.put_dead_letter(DeadLetter { retry: true, ..letters[0].clone() }).await.unwrap();
    world.write(3..4).await;
    requests.until("the letter", |requests| requests.taken().len() >= 4).await;
    let mut taken = requests.taken();
    taken.sort();
    assert_eq!(taken, texts(0..4));
    world
        .until("no letter is left", async |store| {
            store.dead_letters("cmdb", false, 9).await.unwrap().is_empty()
        })
        .await;
    stop.cancel();
    task.await.unwrap();
}

/// Its events were deleted before it got them: it goes on with those that are kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_whose_events_are_gone_goes_on_with_the_oldest() {
    let mut world = World::new().await;
    let (now, until) = (Timestamp(0), Timestamp(0));
    let old = world.store.take_webhook("cmdb", "gone", now, until).await.unwrap().unwrap();
    assert_eq!(EventCursor::parse(&old.after), Some(EventCursor::at(0)));
    world.write(0..4).await;
    let kept = store::KeptEvents { age: Duration::MAX, number: 2 };
    world.store.prune_events(kept, Timestamp(1)).await.unwrap();
    let requests = Requests::default();
    let url = receiver(requests.clone(), Box::new(|_, _| StatusCode::OK.into_response())).await;
    let (task, stop) = world.deliver("a", &world.webhook(&url), 3);
    requests.until("the newest", |requests| !requests.taken().is_empty()).await;
    stop.cancel();
    task.await.unwrap();
    assert_eq!(requests.taken(), ["event 3"]);
}

#[test]
fn a_webhook_that_cannot_be_used_is_refused_without_its_url() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    let good = Webhook {
        url: "https://user:hunter2@cmdb.example/anneal".to_owned(),
        secret_file: secret,
        types: vec!["record".to_owned()],
        projects: Vec::new(),
        ca_file: std::path::PathBuf::new(),
        pin: format!("sha256:{}", "ab".repeat(32)),
        max_tries: 16,
        timeout_s: 10,
    };
    good.check().unwrap();
    let short = dir.path().join("short");
    std::fs::write(&short, "short").unwrap();
    for (wrong, part) in [
        (Webhook { url: "http://user:hunter2@192.0.2.1/x".to_owned(), ..good.clone() }, "https://"),
        (Webhook { url: "hunter2".to_owned(), ..good.clone() }, "url is no URL"),
        (Webhook { url: "ftp://hunter2@localhost/".to_owned(), ..good.clone() }, "https://"),
        (Webhook { types: vec!["weather".to_owned()], ..good.clone() }, "weather"),
        (Webhook { secret_file: short, ..good.clone() }, "16 characters"),
        (Webhook { secret_file: "/nonexistent".into(), ..good.clone() }, "secret_file: /nonexistent"),
        (Webhook { pin: "sha256:12".to_owned(), ..good.clone() }, "pin:"),
        (Webhook { pin: String::new(), ca_file: "/dev/null".into(), ..good.clone() }, "ca_file:"),
        (Webhook { max_tries: 0, ..good.clone() }, "max_tries"),
        (Webhook { timeout_s: 21, ..good.clone() }, "timeout_s"),
    ] {
        let said = wrong.check().unwrap_err();
        assert!(said.contains(part) && !said.contains("hunter2"), "{said}");
    }
    let loopback = Webhook { url: "http://[::1]:8000/".to_owned(), ..good.clone() };
    loopback.check().unwrap();
}
