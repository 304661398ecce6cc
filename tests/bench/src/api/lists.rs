//! Clients that list all nodes: that each sees every node once, and what memory the controller needs for it in the long run.

use super::fill::Filled;
use super::http::Client;
use super::measure::{get, nodes_of};
use super::report::{Report, Row};
use super::serve::Serving;
use super::{Place, Shape, fill};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Clients at once; every other one asks for details.
const CLIENTS: usize = 8;
/// Nodes of one page.
const PAGE: usize = 1000;
/// Between two looks at the memory.
const LOOK: Duration = Duration::from_millis(200);
/// How long the controller rests at the end: the allocator gives back what was free for ten seconds.
const REST: Duration = Duration::from_secs(15);

/// Eight clients list the nodes of both databases for so long, each at a controller of its own. Other work on the machine makes
/// the lists fewer, not the memory less.
///
/// # Errors
/// When a list does not show every node once.
pub fn for_long(place: Place<'_>, shape: &Shape, span: Duration) -> Result<Report> {
    let few = fill::filled(place.filled, shape.few, shape.agents.min(shape.few))?;
    let all = fill::filled(place.filled, shape.nodes, shape.agents)?;
    let mut report = Report::begin(shape)?;
    report.span_s = span.as_secs_f64();
    let sides = [("few", few, 30.0), ("all", all, 250.0)];
    let measured = std::thread::scope(|scope| {
        let sides = sides.map(|side| scope.spawn(move || lasting(place, side, span)));
        let ended = sides.map(|side| side.join().ok().context("a thread panicked")?);
        ended.into_iter().collect::<Result<Vec<_>>>()
    })?;
    report.rows.extend(measured.into_iter().flatten());
    Ok(report)
}

/// The rows of one controller.
fn lasting(place: Place<'_>, side: (&str, Filled, f64), span: Duration) -> Result<Vec<Row>> {
    let (name, filled, goal) = side;
    let dir = place.scratch.join(name);
    std::fs::create_dir_all(&dir)?;
    let controller = Serving::start(place, &filled, &dir)?;
    controller.rested()?;
    let row = |when: &str, mib: f64| Row::memory(&format!("memory with {name} nodes, {when}"), mib, goal);
    let before = controller.resident_mib()?;
    let begun = Instant::now();
    let (lists, most) = std::thread::scope(|scope| {
        let (controller, filled) = (&controller, &filled);
        let lister = |number: usize| {
            move || -> Result<usize> {
                let mut lists = 0;
                while begun.elapsed() < span {
                    list(controller, filled, number.is_multiple_of(2))?;
                    lists += 1;
                }
                Ok(lists)
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(lister(number))).collect();
        let mut most: f64 = 0.0;
        while clients.iter().any(|client| !client.is_finished()) {
            most = most.max(controller.resident_mib()?);
            std::thread::sleep(LOOK);
        }
        let ended = clients.into_iter().map(|client| client.join().ok().context("a client panicked")?);
        Ok::<_, anyhow::Error>((ended.sum::<Result<usize>>()?, most))
    })?;
    std::thread::sleep(REST.min(span));
    let after = row("afterwards", controller.resident_mib()?);
    controller.stop()?;
    let lists = format!("{lists} lists of all nodes");
    Ok(vec![row("before the lists", before), row("at most", most).limit(lists), after])
}

/// Eight clients list everything once.
///
/// # Errors
/// When one does not see every node once.
pub(super) fn once(controller: &Serving, filled: &Filled) -> Result<()> {
    std::thread::scope(|scope| {
        let lister = |number: usize| move || list(controller, filled, number.is_multiple_of(2));
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(lister(number))).collect();
        clients.into_iter().try_for_each(|client| client.join().ok().context("a client panicked")?)
    })
}

/// Lists everything, page by page.
fn list(controller: &Serving, filled: &Filled, detail: bool) -> Result<()> {
    let (mut seen, mut last) = (BTreeSet::new(), None);
    loop {
        let marker = last.map(|last: String| format!("&marker={last}")).unwrap_or_default();
        let path = format!("/v1/nodes?limit={PAGE}&detail={detail}{marker}");
        // Where other work leaves little time for the lists, a kept connection would be closed between two pages.
        let mut client = Client::connect(controller.address)?;
        let (status, body) = client.send(&get(&path))?;
        ensure!(status == 200, "{path}: {status}");
        let nodes = nodes_of(body)?;
        let is_last = nodes.len() < PAGE;
        last = nodes.last().cloned();
        seen.extend(nodes);
        if is_last || last.is_none() {
            break;
        }
    }
    ensure!(seen.len() == filled.count, "{} of {} nodes are listed", seen.len(), filled.count);
    Ok(())
}
