//! A step that an agent runs: how long it takes, how it ends, and what it really does to the machine.

use crate::ground_truth::{By, End};
use crate::held;
use crate::machine::Machine;
use crate::offers::{Offer, Offers, of_manager};
use crate::user::wanted_raid;
use crate::world::World;
use agent_protocol::inventory::Inventory;
use agent_protocol::progress::{DiskProgress, Phase, Progress};
use agent_protocol::record::{EraseReport, Outcome};
use agent_protocol::step::Step;
use agentd::steps::StepTable;
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepOutcome, Support};
use model::StepKind;
use room::{Agent, Begun, Kind};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// How often a running step moves its progress, and how often it looks whether it is cancelled.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_secs(5);

/// How a step is going to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Well,
    Fails,
    Hangs,
    Lies,
}

/// The hardware manager of a machine, for one look or one step.
struct Manager {
    offers: Arc<Offers>,
    kind: StepKind,
    agent_kind: Option<Kind>,
    version: String,
    ends: Mutex<Option<Result<StepOutcome, StepError>>>,
}

impl HardwareManager for Manager {
    fn name(&self) -> &str {
        "sim_hardware_manager"
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn evaluate(&self, _inventory: &Inventory) -> Support {
        Support::Mainline
    }

    fn steps(&self, _kind: hwm_sdk::StepKind, _inventory: &Inventory) -> Vec<Step> {
        self.offers.advertised(self.kind, self.agent_kind)
    }

    /// The step has already run in simulated time; this returns its result.
    fn run(&self, _call: &StepCall, _context: &StepContext) -> Result<StepOutcome, StepError> {
        let nothing = || Err(StepError::Failed { reason: "it did not run".to_owned(), report: Value::Null });
        held(&self.ends).take().unwrap_or_else(nothing)
    }
}

/// The real agent's step table over the offers of the machine; a step that runs in it ends with `ends`.
pub fn table(
    machine: &Machine,
    offers: &Arc<Offers>,
    kind: StepKind,
    ends: Option<Result<StepOutcome, StepError>>,
) -> StepTable {
    let manager = Manager {
        offers: offers.clone(),
        kind,
        agent_kind: machine.agent_kind,
        version: offers.version.to_string(),
        ends: Mutex::new(ends),
    };
    let managers: [Arc<dyn HardwareManager>; 1] = [Arc::new(manager)];
    StepTable::collect(&managers, &Arc::default(), of_manager(kind))
}

/// Begin a step.
pub fn begin(world: &Arc<World>, machine: &Arc<Machine>, agent: &Arc<Agent>, step: Begun<'_>) {
    let Begun { id, kind, params, context } = step;
    let offers = machine.state().offers.clone();
    let key = format!("{}_version", kind.as_str());
    let seen = params.get(&key).and_then(|versions| versions.get("sim_hardware_manager"));
    let stale = seen.is_some_and(|version| *version != json!(offers.version.to_string()));
    let name = params["step"]["step"].as_str().unwrap_or_default();
    let offer = offers.steps.iter().find(|offer| offer.name == name && offer.wire(kind).is_some());
    let offer = offer.filter(|_| !stale).cloned();
    let (id, params) = (id.to_owned(), params.clone());
    let (there, process) = (machine.clone(), agent.clone());
    let end = move |id: &str, context: &StepContext, offers: &Arc<Offers>, ends| {
        let table = table(&there, offers, kind, ends);
        let ending = table.execute(&params["step"], &params["node"], params.get(&key), context);
        process.finish(id, ending);
    };
    let Some(offer) = offer else {
        // Refused by the table itself: nothing runs.
        return end(&id, &context, &offers, None);
    };
    world.step_begins(machine, &id, &offer, By::Agent);
    let (world, machine, agent) = (world.clone(), machine.clone(), agent.clone());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = agent.died.cancelled() => {}
            ends = work(&world, &machine, &agent, &id, &context, &offer) => {
                end(&id, &context, &offers, Some(ends));
            }
        }
    });
}

async fn work(
    world: &World,
    machine: &Machine,
    agent: &Agent,
    id: &str,
    context: &StepContext,
    offer: &Offer,
) -> Result<StepOutcome, StepError> {
    let faults = world.faults();
    let way = if world.rng.chance(faults.step_hangs) {
        Way::Hangs
    } else if world.rng.chance(faults.step_fails) {
        Way::Fails
    } else if offer.name.starts_with("erase") && world.rng.chance(faults.step_lies) {
        Way::Lies
    } else {
        Way::Well
    };
    let mut rest = world.rng.seconds(offer.takes.clone());
    let hang = (way == Way::Hangs).then(|| world.happened(machine, &format!("{} hangs", offer.label())));
    let whole = rest;
    while hang.is_some() || !rest.is_zero() {
        if offer.reports_progress && hang.is_none() {
            report_progress(agent, context, whole, rest);
        }
        let nap = match (hang.is_some(), offer.reports_progress, offer.abortable) {
            (true, _, _) => LOOK,
            (false, true, _) => rest.min(PROGRESS_INTERVAL),
            (false, false, true) => rest.min(LOOK),
            (false, false, false) => rest,
        };
        sleep(nap).await;
        rest = rest.saturating_sub(nap);
        if context.is_cancelled() && offer.abortable {
            held(&world.ground_truth).ended(machine.index, id, End::Cancelled, world.now());
            return Err(StepError::Cancelled { report: json!({"stopped": offer.name}) });
        }
    }
    let (end, ends) = match way {
        Way::Fails => {
            let reason =
                format!("the step broke {}", world.happened(machine, &format!("{} fails", offer.label())));
            (End::Failed, Err(StepError::Failed { reason, report: Value::Null }))
        }
        Way::Lies => {
            let text = format!("{} claims a success that its report does not show", offer.label());
            world.happened(machine, &text);
            machine.state().erase(1);
            (End::Lied, Ok(StepOutcome::Done(lie(world, machine, &offer.name))))
        }
        _ => (End::Succeeded, Ok(StepOutcome::Done(effect(machine, offer)))),
    };
    held(&world.ground_truth).ended(machine.index, id, end, world.now());
    ends
}

/// What a step that succeeds does to the machine, and its result.
fn effect(machine: &Machine, offer: &Offer) -> Value {
    match offer.name.as_str() {
        "erase_devices" => {
            machine.state().erase(0);
            json!(report(machine, &offer.name))
        }
        "erase_devices_metadata" => json!(report(machine, &offer.name)),
        "deploy" => {
            machine.state().deploy();
            Value::Null
        }
        "create_configuration" => wanted_raid(),
        name => json!(format!("{name} done")),
    }
}

/// The record of every disk that the step has treated.
fn report(machine: &Machine, step: &str) -> EraseReport {
    let of = |(number, disk): (usize, &crate::machine::Disk)| {
        room::erased(step, &format!("/dev/sd{number}"), &disk.serial, 1 << 40)
    };
    let disks = machine.state().disks.iter().enumerate().map(of).collect();
    EraseReport { disks, ..EraseReport::default() }
}

/// A report of an erase that left the first disk as it was. The controller must not believe it, whichever it is.
fn lie(world: &World, machine: &Machine, step: &str) -> Value {
    let mut report = report(machine, step);
    // ironic-python-agent signs nothing, so nothing but a contradiction shows what it left out.
    let lie = if machine.agent_kind == Some(Kind::Anneal) { world.rng.number(0..6) } else { 0 };
    let Some(first) = report.disks.first_mut() else { return Value::Null };
    let is_known = |row: &model::Node| row.disks.known.iter().any(|disk| disk.serial == first.serial);
    match lie {
        // A disk that the controller has never heard of is not missed.
        5 if held(&world.ground_truth).machines[machine.index].row.as_ref().is_some_and(is_known) => {
            report.disks.remove(0);
        }
        0 => {
            first.outcome = Outcome::Failed;
            first.reason = Some("the disk does not take it".to_owned());
        }
        1 => first.bytes_erased = 0,
        2 => {
            if let Some(seen) = &mut first.verification {
                seen.bytes_read = 0;
            }
        }
        3 | 5 => report.disks.clear(),
        _ => return Value::Null,
    }
    json!(report)
}

fn report_progress(agent: &Agent, context: &StepContext, whole: Duration, rest: Duration) {
    let first = context.progress().disks.is_empty();
    let disk = DiskProgress {
        device: "/dev/sda".to_owned(),
        serial: None,
        phase: Phase::Erasing,
        method: None,
        bytes_done: whole.saturating_sub(rest).as_secs(),
        bytes_total: whole.as_secs(),
        rate: 1,
        eta: Some(rest.as_secs()),
        stalled_since: None,
    };
    context.report(Progress { disks: vec![disk], ..Progress::default() });
    if first {
        agent.progressed.notify_one();
    }
}
