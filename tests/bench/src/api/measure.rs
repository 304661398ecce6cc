//! The rows of the table.

use super::fill::{self, CALLBACK, Filled, TOKEN};
use super::http::{Client, request};
use super::limits::{self, Writes};
use super::report::{Goal, Report, Row};
use super::serve::Serving;
use super::tls::{self, Identity};
use super::{Place, Shape};
use super::{lists, load, peer};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;

/// Nodes of one page.
pub(super) const PAGE: usize = 100;
/// How long memory is waited for.
const GIVEN_BACK: Duration = Duration::from_secs(15);
/// Agents that beat at once.
const BEATING: usize = 64;
/// Nodes that are read and changed again and again: they fit into the cache.
const HOT: usize = 1000;

/// Measures everything.
pub fn all(place: Place<'_>, shape: &Shape, small: &Filled, large: &Filled) -> Result<Report> {
    // First: it needs root, which is better said before all else is measured.
    let netns = tls::namespace()?;
    let mut report = Report::begin(shape)?;
    let directory = |name: &str| -> Result<std::path::PathBuf> {
        let directory = place.scratch.join(name);
        std::fs::create_dir_all(&directory)?;
        Ok(directory)
    };
    let empty = limits::empty_route(place.bench, place.scratch, 8, shape.span)?;
    report.note(format!("an empty route of the server, 8 connections: {:.0}/s", empty.per_s), &empty);
    let writes = limits::writes(place.scratch, shape.span)?;

    let controller = Serving::start(place, small, &directory("small")?)?;
    report.rows.push(Row::memory("memory with few nodes, at the start", controller.resident_mib()?, 30.0));
    listed(&controller, small, shape)?;
    report.rows.push(Row::memory("… after 8 clients listed them", controller.resident_mib()?, 30.0));
    controller.stop()?;

    let dir = directory("large")?;
    let first = Serving::start(place, large, &dir)?;
    let cold = first.start;
    first.stop()?;
    let controller = Serving::start_again(place, &dir)?;
    let start = controller.start.as_secs_f64() * 1000.0;
    report.rows.push(Row::time("start until it serves", start, Goal::Below(500.0)).limit(format!(
        "{:.0} ms with a copy of the database that had not been read",
        cold.as_secs_f64() * 1000.0
    )));
    report.rows.push(Row::memory("memory with all nodes, at the start", controller.resident_mib()?, 250.0));
    controller.rested()?;
    pages(&mut report, &controller, large, shape)?;
    listed(&controller, large, shape)?;
    report.rows.push(Row::memory("… after 8 clients listed them", controller.resident_mib()?, 250.0));
    reads(&mut report, &controller, shape, empty.per_s)?;
    scraped(&mut report, &controller, large, shape)?;
    changes(&mut report, &controller, shape, place.scratch, &writes)?;
    heartbeats(&mut report, &controller, large, shape, &writes)?;
    report.rows.push(Row::memory("memory at the end", controller.resident_mib()?, 250.0));
    controller.stop()?;
    report.rows.push(netns.run(|| fresh_heartbeats(place, large, shape, &dir))?);
    if let Some(peers) = place.peers {
        peer::compare(&mut report, place, peers, shape, small)?;
    }
    Ok(report)
}

pub(super) fn get(path: &str) -> Vec<u8> {
    request("GET", path, None)
}

/// A number between 0 and `most` that is as good as chosen at random.
pub(super) fn chosen(client: usize, number: usize, most: usize) -> usize {
    let mixed = fill::uuid(client * 1_000_003 + number).as_u64_pair().0;
    usize::try_from(mixed % u64::try_from(most.max(1)).unwrap_or(1)).unwrap_or_default()
}

/// The UUIDs in a page.
pub(super) fn nodes_of(body: &[u8]) -> Result<Vec<String>> {
    let page: Value = serde_json::from_slice(body)?;
    let nodes = page["nodes"].as_array().context("a list of nodes")?;
    Ok(nodes.iter().filter_map(|node| node["uuid"].as_str()).map(str::to_owned).collect())
}

/// Eight clients list everything.
fn listed(controller: &Serving, filled: &Filled, shape: &Shape) -> Result<()> {
    lists::once(controller, filled)?;
    // The allocator gives back what was free for ten seconds.
    std::thread::sleep((3 * shape.span).min(GIVEN_BACK));
    Ok(())
}

fn pages(report: &mut Report, controller: &Serving, large: &Filled, shape: &Shape) -> Result<()> {
    let (limit_p50, limit_p99) = limits::page(large, 300)?;
    let limit = format!("a prepared statement {limit_p50:.2}, p99 {limit_p99:.2} ms");
    let marker = |number: usize| fill::uuid(chosen(0, number, large.count.saturating_sub(PAGE).max(1)));
    for (name, query, goal) in [
        ("page of 100 nodes", "", 5.0),
        ("… filtered (resource_class, maintenance)", "&resource_class=baremetal&maintenance=false", 5.0),
        ("… detail", "&detail=true", 15.0),
    ] {
        let path = |number| format!("/v1/nodes?limit={PAGE}{query}&marker={}", marker(number));
        let load = load::run(controller.to(), 1, shape.span, 200, |_, number| get(&path(number)))?;
        report.rows.push(Row::p99(name, &load, goal).limit(limit.clone()));
    }
    let first = nodes_at(controller, &format!("/v1/nodes?limit={PAGE}"))?;
    ensure!(first.len() == PAGE.min(large.count), "a page has {} nodes", first.len());
    Ok(())
}

fn nodes_at(controller: &Serving, path: &str) -> Result<Vec<String>> {
    let mut client = Client::connect(controller.address)?;
    let (status, body) = client.send(&get(path))?;
    ensure!(status == 200, "{path}: {status}");
    nodes_of(body)
}

fn reads(report: &mut Report, controller: &Serving, shape: &Shape, empty_per_s: f64) -> Result<()> {
    let of = |most: usize| {
        load::run(controller.to(), 8, shape.span, 200, move |client, number| {
            get(&format!("/v1/nodes/{}", fill::uuid(chosen(client, number, most))))
        })
    };
    let limit = format!("an empty route {empty_per_s:.0}/s");
    let hot = HOT.min(shape.nodes);
    report
        .rows
        .push(Row::rate("GET a node of 1,000, 8 connections", &of(hot)?, 30_000.0).limit(limit.clone()));
    report.rows.push(Row::rate("GET a node of all, 8 connections", &of(shape.nodes)?, 0.0).limit(limit));
    Ok(())
}

/// What Prometheus reads. It counts every node, and costs no query.
fn scraped(report: &mut Report, controller: &Serving, large: &Filled, shape: &Shape) -> Result<()> {
    let mut client = Client::connect(controller.address)?;
    let mut counted = 0;
    for _ in 0..600 {
        let (status, body) = client.send(&get("/metrics"))?;
        ensure!(status == 200, "/metrics: {status}");
        let text = String::from_utf8_lossy(body);
        let counts = text.lines().filter(|line| line.starts_with("anneal_nodes{"));
        counted = counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok()).sum();
        if counted == large.count {
            break;
        }
        // They are read in the background after the start.
        std::thread::sleep(Duration::from_millis(100));
    }
    ensure!(counted == large.count, "{counted} of {} nodes are counted", large.count);
    let load = load::run(controller.to(), 1, shape.span, 200, |_, _| get("/metrics"))?;
    report.rows.push(Row::p99("GET /metrics", &load, 50.0));
    Ok(())
}

fn changes(
    report: &mut Report,
    controller: &Serving,
    shape: &Shape,
    scratch: &std::path::Path,
    writes: &Writes,
) -> Result<()> {
    let hot = HOT.min(shape.nodes.saturating_sub(shape.agents)).max(1);
    let first = shape.nodes - hot;
    let patch = |client: usize, number: usize| {
        // No two clients change the same node, so that none has to begin again.
        let node = first + (chosen(client, number, hot.div_ceil(8)) * 8 + client) % hot;
        let body = json!([{"op": "add", "path": "/extra/count", "value": format!("{client}-{number}")}]);
        request("PATCH", &format!("/v1/nodes/{}", fill::uuid(node)), Some(&body))
    };
    let create = |_: usize, _: usize| {
        let body = json!({"driver": "fake-hardware", "resource_class": "baremetal", "extra": {"note": "x".repeat(500)}});
        request("POST", "/v1/nodes", Some(&body))
    };
    let before = count(controller)?;
    let mut created = 0;
    for (name, clients, status, goal) in [
        ("PATCH a node, 8 connections", 8, 200, 5000.0),
        ("PATCH a node, one after another", 1, 200, 0.0),
        ("create a node, 16 connections", 16, 201, 5000.0),
        ("create a node, one after another", 1, 201, 0.0),
    ] {
        let load = match status {
            200 => load::run(controller.to(), clients, shape.span, status, patch)?,
            _ => load::run(controller.to(), clients, shape.span, status, create)?,
        };
        created += if status == 201 { load.count } else { 0 };
        let row = if clients == 1 {
            // As it is at this time: disks have moods.
            let sync = limits::sync_ms(scratch)?;
            Row::p50(name, &load, 3.0 * sync + 0.3)
                .limit(format!("a sync {sync:.2} ms; a row {:.0}/s", writes.single_per_s))
        } else {
            Row::rate(name, &load, goal).limit(format!("64 rows a commit {:.0}/s", writes.group_per_s))
        };
        report.rows.push(row);
    }
    let after = count(controller)?;
    ensure!(after == before + created, "{before} nodes and {created} more are {after}");
    Ok(())
}

/// How many nodes there are.
fn count(controller: &Serving) -> Result<usize> {
    let (mut client, mut count, mut last) = (Client::connect(controller.address)?, 0, None);
    loop {
        let marker = last.map(|last: String| format!("&marker={last}")).unwrap_or_default();
        let (status, body) = client.send(&get(&format!("/v1/nodes?limit=1000&fields=uuid{marker}")))?;
        ensure!(status == 200, "a list of nodes: {status}");
        let nodes = nodes_of(body)?;
        count += nodes.len();
        last = nodes.last().cloned();
        if nodes.len() < 1000 {
            return Ok(count);
        }
    }
}

/// The heartbeat of the agent whose turn it is, so that none beats twice at a time.
fn beat(large: &Filled, client: usize, number: usize) -> Vec<u8> {
    let node = (number * BEATING + client) % large.agents.max(1);
    let body = json!({"callback_url": CALLBACK, "agent_token": TOKEN, "agent_version": "13.0.0", "agent_status": "start"});
    request("POST", &format!("/v1/heartbeat/{}", large.agent(node)), Some(&body))
}

/// As agents send them: each on a connection of its own.
fn fresh_heartbeats(place: Place<'_>, large: &Filled, shape: &Shape, dir: &std::path::Path) -> Result<Row> {
    let identity = Identity::make(dir)?;
    let controller = Serving::start_with_tls(place, dir, &identity)?;
    controller.rested()?;
    let beat = |client, number| beat(large, client, number);
    let load = load::run_afresh(controller.to(), &identity.client, BEATING, shape.span, 202, beat)?;
    controller.stop()?;
    let bare = limits::handshakes(place.bench, place.scratch, &identity, BEATING, shape.span)?;
    let limit =
        format!("bare rustls handshakes {:.0}/s: {:.2} of these", bare.per_s, load.per_s / bare.per_s);
    Ok(Row::rate("… with a fresh TLS connection each", &load, 0.0).limit(limit))
}

fn heartbeats(
    report: &mut Report,
    controller: &Serving,
    large: &Filled,
    shape: &Shape,
    writes: &Writes,
) -> Result<()> {
    let heard = |node: usize| -> Result<Value> {
        let mut client = Client::connect(controller.address)?;
        let (_, body) = client.send(&get(&format!("/v1/nodes/{}", large.agent(node))))?;
        Ok(serde_json::from_slice::<Value>(body)?["driver_internal_info"]["agent_last_heartbeat"].clone())
    };
    let before = heard(0)?;
    let beat = |client, number| beat(large, client, number);
    let load = load::run(controller.to(), BEATING, shape.span, 202, beat)?;
    ensure!(heard(0)? != before, "no heartbeat was stored");
    let limit = format!("64 rows a commit {:.0}/s", writes.group_per_s);
    report.rows.push(Row::rate("heartbeats, 64 kept connections", &load, 20_000.0).limit(limit));
    let wrong = request(
        "POST",
        &format!("/v1/heartbeat/{}", large.agent(0)),
        Some(&json!({"callback_url": CALLBACK, "agent_token": "wrong", "agent_version": "13.0.0"})),
    );
    let (status, _) =
        Client::connect(controller.address)?.send(&wrong).map(|(status, body)| (status, body.len()))?;
    ensure!(status == 400, "a heartbeat with a wrong token: {status}");
    Ok(())
}
