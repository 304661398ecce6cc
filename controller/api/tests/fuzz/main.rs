//! Random requests by the thousand, wild ones, nearly right ones, and those that the OpenAPI document describes. Never a
//! 5xx or a panic; every answer is what the document says; every refusal has Ironic's body and changed nothing; no
//! secret is in any answer.
//!
//! `API_REQUESTS` (20,000) says how many, `API_SEED` (1) which. A failure names its world: `API_WORLD` runs it alone.

#[path = "../common/mod.rs"]
mod common;

mod aimed;
mod conform;
mod rng;
mod schema;
mod socket;
mod test_request;
mod words;
mod world;

use common::Answer;
use common::test_store::StoreKind;
use conform::Judge;
use futures_util::FutureExt;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rng::Rng;
use schema::Maker;
use serde_json::Value;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use test_request::TestRequest;
use world::{SECRET, World};

/// Requests that one world sees: enough that later ones meet what earlier ones made.
const PER_WORLD: u64 = 250;

/// One world of so many is kept in SQLite; the others in memory. `API_STORE` keeps all in another.
const SQLITE: u64 = 16;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

#[test]
fn no_request_breaks_the_api() {
    let (requests, seed) = (number("API_REQUESTS", 20_000), number("API_SEED", 1));
    let alone = std::env::var_os("API_WORLD").map(|_| number("API_WORLD", 0));
    let document = api::openapi::document();
    let worlds = alone.map_or(requests.div_ceil(PER_WORLD), |world| world + 1);
    let next = AtomicU64::new(alone.unwrap_or(0));
    let begun = Instant::now();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let work = || {
            let mut seen = Seen::default();
            loop {
                let world = next.fetch_add(1, Ordering::Relaxed);
                if world >= worlds || seen.faults.len() >= MOST_FAULTS {
                    return seen;
                }
                visit(&document, seed, world, &mut seen);
            }
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect()
    });
    let mut all: BTreeMap<u16, u64> = BTreeMap::new();
    let mut faults = Vec::new();
    for seen in seen {
        seen.statuses.into_iter().for_each(|(status, count)| *all.entry(status).or_default() += count);
        faults.extend(seen.faults);
    }
    let total: u64 = all.values().sum();
    let took = begun.elapsed().as_secs_f64();
    println!(
        "api: {total} requests in {took:.1} s ({:.0} a second), seed {seed}: {all:?}",
        total as f64 / took
    );
    assert!(faults.is_empty(), "seed {seed}:\n{}", faults.join("\n\n"));
    let fine: u64 = all.range(200..300).map(|(_, count)| count).sum();
    assert!(alone.is_some() || fine * 10 > total, "hardly a request succeeds: {all:?}");
}

/// What a worker has seen.
#[derive(Default)]
struct Seen {
    statuses: BTreeMap<u16, u64>,
    faults: Vec<String>,
}

/// Stops a worker; each world stops at its first.
const MOST_FAULTS: usize = 10;

fn visit(document: &Value, seed: u64, world: u64, seen: &mut Seen) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut rng = Rng::new(seed, world);
    let bytes: Vec<u8> = (0..4).flat_map(|_| rng.roll().to_le_bytes()).collect();
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let by_hand = prop_oneof![2 => aimed::aimed(), 1 => aimed::wild()];
    let mixed = if world.is_multiple_of(SQLITE) { StoreKind::Sqlite } else { StoreKind::Memory };
    let kept = StoreKind::asked().unwrap_or(mixed);
    let judge = Judge { document };
    let mut maker = Maker::new(document, World::names());
    runtime.block_on(async {
        let there = World::new(kept, usize::try_from(world).expect("64 bits")).await;
        let mut before = there.everything().await;
        for _ in 0..PER_WORLD {
            let (sent, request) = loop {
                let sent = if rng.percent(65) {
                    maker.sent(&mut rng)
                } else {
                    by_hand.new_tree(&mut runner).expect("a request").current()
                };
                if let Some(request) = sent.request() {
                    break (sent, request);
                }
            };
            let answer = AssertUnwindSafe(there.api.raw(request)).catch_unwind().await;
            let Ok(answer) = answer else {
                return seen.faults.push(format!("API_WORLD={world} ({kept:?}): a panic: {sent:?}"));
            };
            *seen.statuses.entry(answer.status).or_default() += 1;
            let after = there.everything().await;
            let same = before == after;
            if let Err(why) = judged(&judge, &sent, &answer, same) {
                let text: String = answer.text.chars().take(2000).collect();
                let status = answer.status;
                return seen
                    .faults
                    .push(format!("API_WORLD={world} ({kept:?}): {why}: {sent:?} -> {status} {text}"));
            }
            learn(&mut maker.names, &answer);
            before = after;
        }
    });
}

/// Why an answer must not be.
fn judged(judge: &Judge<'_>, sent: &TestRequest, answer: &Answer, same: bool) -> Result<(), String> {
    if answer.status >= 500 {
        return Err("a failure of the server".into());
    }
    for name in ["openstack-request-id", "x-openstack-request-id"] {
        if !answer.header(name).is_some_and(|id| id.starts_with("req-")) {
            return Err(format!("no {name}"));
        }
    }
    for (name, version) in [("minimum", "1.1"), ("maximum", "1.115")] {
        if answer.header(&format!("x-openstack-ironic-api-{name}-version")) != Some(version) {
            return Err(format!("no {name} version"));
        }
    }
    let in_headers =
        answer.headers.values().any(|value| String::from_utf8_lossy(value.as_bytes()).contains(SECRET));
    // An address is repeated in links, and whatever the client wrote into it.
    if (in_headers || answer.text.contains(SECRET)) && !sent.uri.contains(SECRET) {
        return Err("a secret".into());
    }
    if answer.status >= 400 {
        if !same {
            return Err("refused, but changed something".into());
        }
        return if sent.method == "HEAD" { Ok(()) } else { refusal(answer) };
    }
    if sent.reads() && !same {
        return Err("a reading request wrote".into());
    }
    match judge.path(&sent.uri) {
        Some(path) if sent.method != "HEAD" => judge.success(sent.method, &path, answer.status, &answer.text),
        Some(_) => Ok(()),
        None => Err("answered a path that is not in the document".into()),
    }
}

/// Ironic's body: JSON in JSON, in one of two forms.
fn refusal(answer: &Answer) -> Result<(), String> {
    if answer.header("content-type") != Some("application/json") {
        return Err("an error that is not JSON".into());
    }
    let inner = answer.body["error_message"].as_str().ok_or("no error_message")?;
    let inner: Value = serde_json::from_str(inner).map_err(|error| format!("error_message: {error}"))?;
    let keys = common::keys(&inner);
    match keys.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["debuginfo", "faultcode", "faultstring"] if inner["faultcode"] == "Client" => Ok(()),
        ["code", "description", "title"] if inner["code"] == answer.status => Ok(()),
        _ => Err("an error in neither of Ironic's forms".into()),
    }
}

/// What was made is asked for later.
fn learn(names: &mut Vec<String>, answer: &Answer) {
    const MOST: usize = 120;
    for key in ["uuid", "name"] {
        if let Some(name) = answer.body[key].as_str()
            && names.len() < MOST
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
            && !name.is_empty()
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
}
