//! The same requests to a real Ironic with as few nodes, one side after the other: factors of one run. Ironic has SQLite and one
//! API worker, as its own installation for a laboratory (bifrost) has.

use super::fill::{self, Filled};
use super::http::{Client, request};
use super::load::{self, Load};
use super::measure::{PAGE, chosen, get, nodes_of};
use super::report::{Report, Row};
use super::serve::Serving;
use super::{Place, Shape};
use crate::controller::Controller;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use tokio::runtime::Runtime;

/// Clients that enrol the nodes of Ironic.
const ENROLLING: usize = 8;

/// A controller, and the nodes that it has.
struct Side {
    to: (SocketAddr, u32),
    nodes: Vec<String>,
}

/// Adds the rows that compare, with the few nodes of `small`.
pub fn compare(
    report: &mut Report,
    place: Place<'_>,
    peers: &Path,
    shape: &Shape,
    small: &Filled,
) -> Result<()> {
    let [own, other] = ["ours", "ironic"].map(|name| place.scratch.join(name));
    std::fs::create_dir_all(&other)?;
    let ironic = Controller::ironic(&Runtime::new()?, peers, &other)?;
    let mut theirs = Side { to: (ironic.address, ironic.group()), nodes: Vec::new() };
    enrol(&theirs, shape.few)?;
    theirs.nodes = all_nodes(&theirs)?;
    ensure!(theirs.nodes.len() == shape.few, "{} nodes of {} are enrolled", theirs.nodes.len(), shape.few);
    let controller = Serving::start(place, small, &own)?;
    controller.rested()?;
    let nodes = (0..small.count).map(|number| fill::uuid(number).to_string()).collect();
    let ours = Side { to: controller.to(), nodes };
    for what in ALL {
        let [here, there] = [&ours, &theirs].map(|side| what.load(side, shape));
        report.rows.push(what.row(&here?, &there?, &ironic.name));
    }
    controller.stop()
}

fn enrol(side: &Side, count: usize) -> Result<()> {
    let work = |first: usize| -> Result<()> {
        let mut client = Client::connect(side.to.0)?;
        for _ in (first..count).step_by(ENROLLING) {
            let (status, body) = client.send(&create())?;
            ensure!(status == 201, "{status}: {}", String::from_utf8_lossy(body));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let work = &work;
        let clients: Vec<_> = (0..ENROLLING).map(|first| scope.spawn(move || work(first))).collect();
        let ended = clients.into_iter().map(|client| client.join().ok().context("a client panicked")?);
        ended.collect()
    })
}

fn all_nodes(side: &Side) -> Result<Vec<String>> {
    let (mut client, mut all) = (Client::connect(side.to.0)?, Vec::new());
    loop {
        let marker = all.last().map(|last| format!("&marker={last}")).unwrap_or_default();
        let (status, body) = client.send(&get(&format!("/v1/nodes?limit={PAGE}{marker}")))?;
        ensure!(status == 200, "a list of nodes: {status}");
        let nodes = nodes_of(body)?;
        if nodes.is_empty() {
            return Ok(all);
        }
        all.extend(nodes);
    }
}

fn create() -> Vec<u8> {
    let body =
        json!({"driver": "fake-hardware", "resource_class": "baremetal", "extra": {"note": "x".repeat(500)}});
    request("POST", "/v1/nodes", Some(&body))
}

/// A request, and from how many connections at a time.
struct Asked {
    name: &'static str,
    clients: usize,
    status: u16,
    /// Of the client and the number of the request.
    make: fn(&[String], usize, usize) -> Vec<u8>,
}

const ALL: [Asked; 8] = [
    Asked {
        name: "page of 100 nodes",
        clients: 1,
        status: 200,
        make: |nodes, _, number| page(nodes, number, ""),
    },
    Asked {
        name: "… filtered",
        clients: 1,
        status: 200,
        make: |nodes, _, number| page(nodes, number, "&resource_class=baremetal&maintenance=false"),
    },
    Asked {
        name: "… detail",
        clients: 1,
        status: 200,
        make: |nodes, _, number| page(nodes, number, "&detail=true"),
    },
    Asked {
        name: "GET a node, 8 connections",
        clients: 8,
        status: 200,
        make: |nodes, client, number| {
            get(&format!("/v1/nodes/{}", nodes[chosen(client, number, nodes.len())]))
        },
    },
    Asked { name: "PATCH a node, 8 connections", clients: 8, status: 200, make: patch },
    Asked { name: "PATCH a node, one after another", clients: 1, status: 200, make: patch },
    Asked { name: "create a node, 16 connections", clients: 16, status: 201, make: |_, _, _| create() },
    Asked { name: "create a node, one after another", clients: 1, status: 201, make: |_, _, _| create() },
];

fn page(nodes: &[String], number: usize, query: &str) -> Vec<u8> {
    let marker = &nodes[chosen(0, number, nodes.len().saturating_sub(PAGE).max(1))];
    get(&format!("/v1/nodes?limit={PAGE}{query}&marker={marker}"))
}

/// No two clients change the same node, so that none finds it locked.
fn patch(nodes: &[String], client: usize, number: usize) -> Vec<u8> {
    let node = &nodes[(chosen(client, number, nodes.len() / 8) * 8 + client) % nodes.len()];
    let body = json!([{"op": "add", "path": "/extra/count", "value": format!("{client}-{number}")}]);
    request("PATCH", &format!("/v1/nodes/{node}"), Some(&body))
}

impl Asked {
    fn load(&self, side: &Side, shape: &Shape) -> Result<Load> {
        let make = |client, number| (self.make)(&side.nodes, client, number);
        load::run(side.to, self.clients, shape.span, self.status, make).context(self.name)
    }

    fn row(&self, here: &Load, there: &Load, peer: &str) -> Row {
        let of = format!("{peer}: {:.0}/s, p50 {:.2}, p99 {:.2} ms", there.per_s, there.p50_ms, there.p99_ms);
        Row::factor(&format!("against Ironic: {}", self.name), here.per_s / there.per_s, here).limit(of)
    }
}
