//! `cargo xtask soak --part page`: how long the page needs to show 10,000 nodes, how late its bars are, and what open pages cost the
//! controller.

use anyhow::{Context, Result, ensure};
use bench::api::fill::filled;
use browser::controller::directory;
use browser::machine::{DISK, Machine, options};
use browser::open_pages;
use browser::{Browser, Controller, Login};
use clap::Parser;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Measure the page of a controller with many nodes, and fail when a goal of issue 20 is missed.
#[derive(Debug, Parser)]
struct Options {
    /// Directory with anneal-controller and anneal.
    #[arg(long, default_value = "target/release")]
    bin_dir: PathBuf,
    /// Where filled databases are kept.
    #[arg(long, default_value = "target/bench-api")]
    filled: PathBuf,
    /// How many nodes.
    #[arg(long, default_value_t = 10_000)]
    nodes: usize,
    /// How often; the median counts.
    #[arg(long, default_value_t = 5)]
    times: usize,
}

/// From the request of the page until its list and counts are seen.
const MOST: Duration = Duration::from_secs(2);
/// What of that scripts may take.
const MOST_SCRIPT: Duration = Duration::from_millis(300);
/// From an agent's report until the page shows it: "bars per disk, … at most 2 s old" (issue 20).
const OLDEST_BAR: Duration = Duration::from_secs(2);
/// In which the controller answers 99 of 100 views of the fleet.
const MOST_VIEW: Duration = Duration::from_millis(100);
/// How many views are asked for.
const VIEWS: usize = 300;
/// Pages that are open while nothing happens, for how long, …
const OPEN: (usize, Duration) = (200, Duration::from_secs(60));
/// … and what they may cost the controller: bytes, and a share of a processor.
const MOST_COST: (u64, f64) = (64 << 20, 0.05);
/// How many reports of an agent are followed.
const REPORTS: u64 = 20;
const MAC: &str = "52:54:00:be:00:02";

fn main() -> Result<()> {
    let wanted = Options::parse();
    let filled = filled(&wanted.filled, wanted.nodes, 100)?;
    let dir = directory()?;
    let state = dir.path().join("state");
    std::fs::create_dir_all(&state)?;
    for file in ["anneal.sqlite", "database.key"] {
        std::fs::copy(filled.directory.join(file), state.join(file))?;
    }
    // They run in directories of their own.
    let bin_dir = wanted.bin_dir.canonicalize().with_context(|| wanted.bin_dir.display().to_string())?;
    let programs = ["anneal-controller", "anneal"].map(|name| bin_dir.join(name));
    let controller = Controller::of(programs, Login::Open, dir)?;
    costs(&controller)?;
    let browser = Browser::start()?;
    let mut measured = Vec::new();
    for _ in 0..wanted.times {
        measured.push(view(&controller, &browser, wanted.nodes)?);
    }
    for (whole, script) in &measured {
        println!("page: {} ms, of them {} ms script", whole.as_millis(), script.as_millis());
    }
    let median = |mut times: Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().context("nothing was measured")
    };
    let whole = median(measured.iter().map(|one| one.0).collect())?;
    let script = median(measured.iter().map(|one| one.1).collect())?;
    println!(
        "page: {} nodes, median of {}: {} ms, of them {} ms script",
        wanted.nodes,
        wanted.times,
        whole.as_millis(),
        script.as_millis()
    );
    ensure!(
        whole < MOST,
        "MISSED: {} ms until it is seen, not below {}",
        whole.as_millis(),
        MOST.as_millis()
    );
    ensure!(
        script <= MOST_SCRIPT,
        "MISSED: {} ms of script, not at most {}",
        script.as_millis(),
        MOST_SCRIPT.as_millis()
    );
    let oldest = oldest_bar(&controller, &browser)?;
    println!("page: a bar is at most {} ms old, of {REPORTS} reports", oldest.as_millis());
    ensure!(
        oldest <= OLDEST_BAR,
        "MISSED: a bar {} ms old, not at most {}",
        oldest.as_millis(),
        OLDEST_BAR.as_millis()
    );
    Ok(())
}

/// What views and open pages cost the controller.
fn costs(controller: &Controller) -> Result<()> {
    let view = open_pages::views(controller, VIEWS)?;
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!("page: a view is answered in {:.1} ms, p99 of {VIEWS}", ms(view));
    let node = controller.enrol("idle", &[])?;
    let (pages, time) = OPEN;
    let cost = open_pages::open(controller, &node, pages, time)?;
    controller.does(&["node", "delete", "idle"])?;
    let mib = cost.memory as f64 / f64::from(1 << 20);
    let percent = cost.processor.map(|share| share * 100.0);
    println!(
        "page: {pages} open pages, {mib:.1} MiB more; in {} s without a change {:.2} % of a core, without pages {:.2} %",
        time.as_secs(),
        percent[1],
        percent[0]
    );
    ensure!(view < MOST_VIEW, "MISSED: a view in {:.1} ms, not below {}", ms(view), MOST_VIEW.as_millis());
    ensure!(cost.memory < MOST_COST.0, "MISSED: {mib:.1} MiB for {pages} pages, not below 64");
    let more = cost.processor[1] - cost.processor[0];
    ensure!(more < MOST_COST.1, "MISSED: {:.2} % of a core for {pages} pages, not below 5", more * 100.0);
    Ok(())
}

/// The longest time from an agent's report of its progress until the page of its node shows it.
fn oldest_bar(controller: &Controller, browser: &Browser) -> Result<Duration> {
    let uuid = controller.enrol("bar", &options(MAC))?;
    controller.does(&["node", "manage", "bar", "--wait"])?;
    let machine = Machine::start(controller, MAC, &["erase_devices"]);
    let page = browser.page()?;
    page.open(&controller.url(&format!("nodes/{uuid}")))?;
    controller.does(&["node", "provide", "bar"])?;
    machine.erases(0)?;
    page.reads("deploy.erase_devices")?;
    let mut oldest = Duration::ZERO;
    for report in 1..=REPORTS {
        let begun = Instant::now();
        machine.erases(DISK / REPORTS * report)?;
        let percent = 100 / REPORTS * report;
        page.until(&format!("document.querySelector('progress')?.value === {percent}"), "the bar")?;
        oldest = oldest.max(begun.elapsed());
    }
    machine.ends_step()?;
    controller.reaches("bar", "available")?;
    Ok(oldest)
}

/// One view by a browser that has never seen the page: how long until the counts and a page of nodes are there, and how long scripts
/// ran. A step through the list ends it.
fn view(controller: &Controller, browser: &Browser, nodes: usize) -> Result<(Duration, Duration)> {
    let page = browser.page()?;
    page.call("Performance.enable", json!({}))?;
    let begun = Instant::now();
    page.open(&controller.url("nodes"))?;
    let count =
        format!("document.querySelector('.headline .sum')?.innerText.replace(/\\D/g, '') === '{nodes}'");
    let rows = "document.querySelectorAll('main tbody tr').length === 100";
    page.until(&format!("{count} && {rows}"), "all counts and a hundred nodes")?;
    let whole = begun.elapsed();
    let script = script(&page.call("Performance.getMetrics", json!({}))?)?;
    let first = page.eval("document.querySelector('main tbody th').innerText")?;
    page.click("Next page")?;
    page.until(&format!("document.querySelector('main tbody th').innerText !== {first}"), "the second page")?;
    page.is_clean()?;
    Ok((whole, script))
}

fn script(metrics: &Value) -> Result<Duration> {
    let all = metrics["metrics"].as_array().context("metrics")?;
    let one = all.iter().find(|one| one["name"] == "ScriptDuration").context("ScriptDuration")?;
    Ok(Duration::from_secs_f64(one["value"].as_f64().context("seconds")?))
}
