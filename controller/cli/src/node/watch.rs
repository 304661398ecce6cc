//! `anneal node watch`: bars on a terminal, one line per change elsewhere, one JSON object per change with
//! `-o json`.

use super::progress::{LogLine, disk_name, disk_pace, disk_phase, headline, log_lines, percent};
use super::selection::Filter;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, print};
use crate::view::NodeView;
use crate::wait::{PAUSE, Verdict, WaitTarget, judge};
use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::IsTerminal;

/// Which nodes, and until when.
#[derive(Debug, Args)]
pub struct Options {
    /// Names or UUIDs; all nodes when none is given.
    #[arg(conflicts_with = "where")]
    nodes: Vec<String>,
    #[command(flatten)]
    filter: Filter,
    /// End when nothing happens to any of them without a request; with code 4 if one of them failed.
    #[arg(long)]
    until_stable: bool,
    /// End when all of them are in this provision state, or with code 4 when one cannot get there by itself any more:
    /// available, "clean hold"
    #[arg(long, value_name = "STATE", conflicts_with = "until_stable")]
    until: Option<String>,
}

/// Follows the nodes until interrupted, or until they rest.
pub async fn run(client: &Client, format: Format, options: &Options) -> Result<(), Failure> {
    let mut screen = match format {
        Format::Json => Screen::Objects(HashMap::new()),
        Format::Table if std::io::stdout().is_terminal() => Screen::Bars(Box::new(Bars::new()?)),
        Format::Table => Screen::Lines(HashMap::new()),
    };
    let mut away = false;
    let mut before = Vec::new();
    let mut quiet = 1;
    loop {
        match look(client, options).await {
            Ok(bodies) => {
                away = false;
                for body in &bodies {
                    screen.update(body)?;
                }
                let nodes: Vec<_> = bodies.iter().map(NodeView::of).collect();
                if let Some(end) = options.end(&nodes) {
                    return end;
                }
                quiet = if bodies == before { (quiet + 1).min(LONGEST) } else { 1 };
                before = bodies;
            }
            // A controller that is restarted comes back; one that never answered is a mistake.
            Err(failure @ Failure::Unreachable { .. }) if screen.has_seen_any() => {
                if !std::mem::replace(&mut away, true) {
                    eprintln!("{failure}; still trying");
                }
            }
            Err(failure) => return Err(failure),
        }
        tokio::time::sleep(PAUSE * quiet).await;
    }
}

/// Where nothing changes it is looked at less often, down to once in so many pauses.
const LONGEST: u32 = 5;

impl Options {
    /// How the watch ends, if it does with the nodes as they are.
    fn end(&self, nodes: &[NodeView]) -> Option<Result<(), Failure>> {
        if self.until_stable {
            return nodes.iter().all(rests).then(|| ending(nodes));
        }
        let goal = WaitTarget::State(self.until.clone()?);
        let mut lost = Vec::new();
        for node in nodes {
            match judge(node, &goal) {
                Verdict::Waiting => return None,
                Verdict::Lost(why) => lost.push(why),
                Verdict::Reached => {}
            }
        }
        Some(if lost.is_empty() { Ok(()) } else { Err(Failure::Ended(lost.join("; "))) })
    }
}

async fn look(client: &Client, options: &Options) -> Result<Vec<Value>, Failure> {
    if options.nodes.is_empty() {
        return client.get_all(&["nodes", "detail"], &options.filter.query()?, "nodes").await;
    }
    let mut bodies = Vec::with_capacity(options.nodes.len());
    for node in &options.nodes {
        bodies.push(client.get(&["nodes", node], &[]).await?);
    }
    Ok(bodies)
}

fn rests(node: &NodeView) -> bool {
    (node.is_stable() || node.has_failed() || node.is_held()) && node.target_power_state.is_none()
}

fn ending(nodes: &[NodeView]) -> Result<(), Failure> {
    let failed: Vec<_> = nodes
        .iter()
        .filter(|node| node.has_failed())
        .map(|node| format!("{} is {:?}", node.label(), node.state()))
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::Ended(failed.join("; "))) }
}

/// Where the changes go.
enum Screen {
    /// A terminal.
    Bars(Box<Bars>),
    /// A log: the last lines of each node, so that only changes are printed.
    Lines(HashMap<String, Vec<LogLine>>),
    /// A program: the last body of each node.
    Objects(HashMap<String, Value>),
}

impl Screen {
    fn has_seen_any(&self) -> bool {
        match self {
            Self::Bars(bars) => !bars.nodes.is_empty(),
            Self::Lines(printed) => !printed.is_empty(),
            Self::Objects(printed) => !printed.is_empty(),
        }
    }

    fn update(&mut self, body: &Value) -> Result<(), Failure> {
        let node = NodeView::of(body);
        match self {
            Self::Bars(bars) => bars.update(&node),
            Self::Lines(printed) => {
                let lines = log_lines(&node);
                let before = printed.insert(node.uuid.clone(), lines.clone()).unwrap_or_default();
                let news = |line: &&LogLine| before.iter().all(|old| old.key != line.key);
                for line in lines.iter().filter(news) {
                    print(&line.text)?;
                }
            }
            Self::Objects(printed) => {
                if printed.get(&node.uuid) != Some(body) {
                    print(&body.to_string())?;
                    printed.insert(node.uuid.clone(), body.clone());
                }
            }
        }
        Ok(())
    }
}

/// A line for every node and a bar for every disk that is worked on.
struct Bars {
    screen: MultiProgress,
    headline: ProgressStyle,
    disk: ProgressStyle,
    nodes: BTreeMap<String, NodeBars>,
}

struct NodeBars {
    headline: ProgressBar,
    disks: BTreeMap<String, ProgressBar>,
}

impl Bars {
    fn new() -> Result<Self, Failure> {
        let style = |template: &str| {
            ProgressStyle::with_template(template).map_err(|error| Failure::Usage(error.to_string()))
        };
        Ok(Self {
            screen: MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::stdout()),
            headline: style("{msg}")?,
            disk: style("    {prefix:28!} [{bar:24}] {percent:>3}%  {msg}")?.progress_chars("=> "),
            nodes: BTreeMap::new(),
        })
    }

    fn update(&mut self, node: &NodeView) {
        let Self { screen, headline: headline_style, disk: disk_style, nodes } = self;
        let bars = nodes.entry(node.uuid.clone()).or_insert_with(|| NodeBars {
            headline: screen.add(ProgressBar::new(0).with_style(headline_style.clone())),
            disks: BTreeMap::new(),
        });
        bars.headline.set_message(headline(node));
        let disks = node.driver_internal_info.anneal.progress.as_ref().map_or(&[][..], |p| &p.disks);
        bars.disks.retain(|device, bar| {
            let kept = disks.iter().any(|disk| disk.device == *device);
            if !kept {
                bar.finish_and_clear();
            }
            kept
        });
        for disk in disks {
            let above = bars.disks.values().next_back().unwrap_or(&bars.headline);
            let made = (!bars.disks.contains_key(&disk.device))
                .then(|| screen.insert_after(above, ProgressBar::new(100).with_style(disk_style.clone())));
            if let Some(bar) = made {
                bars.disks.insert(disk.device.clone(), bar);
            }
            if let Some(bar) = bars.disks.get(&disk.device) {
                bar.set_prefix(disk_name(disk));
                bar.set_position(percent(disk));
                let pace = disk_pace(disk);
                let gap = if pace.is_empty() { "" } else { ", " };
                bar.set_message(format!("{}{gap}{pace}", disk_phase(disk)));
            }
        }
        // All bars change at once, once a second: without this the limit on redraws drops all but the first.
        bars.headline.force_draw();
        bars.disks.values().for_each(ProgressBar::force_draw);
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        for bars in self.nodes.values() {
            bars.headline.abandon();
            bars.disks.values().for_each(ProgressBar::abandon);
        }
    }
}
