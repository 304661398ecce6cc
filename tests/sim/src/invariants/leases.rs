//! Which controller may act on a node. Sentences without a source are of issue 18, "Several controllers".

use crate::controller::Life;
use crate::ground_truth::{HeldBy, OpenCall, Target};
use crate::held;
use crate::host::Host;
use crate::machine::Machine;
use crate::wire::PATIENCE;
use crate::world::World;
use bmc::LONGEST_REQUEST;
use model::Timestamp;
use room::{Agent, Kind};
use std::sync::Arc;
use std::time::Duration;
use store::Lease;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// By how much the clock of a controller may differ from the store's.
const CLOCKS: Duration = Duration::from_secs(1);
/// "which begin within 15 s".
const TAKE_OVER: Duration = Duration::from_secs(15);
/// How often what is due is looked at.
const LOOK: Duration = Duration::from_secs(4);

/// A lease was given. One that has not expired is given to no other controller: an epoch fences no BMC.
pub fn taken(world: &World, host: &Host, lease: Lease, until: Timestamp) {
    let Some(machine) = world.machine(lease.node) else { return };
    let mut ground_truth = held(&world.ground_truth);
    let chronicle = &mut ground_truth.machines[machine.index];
    let epoch = lease.epoch;
    if chronicle.epoch.replace(epoch).is_some_and(|before| before >= epoch) {
        world.violated("a_lease_is_newer_than_all_before", format!("{} epoch {epoch}", machine.name));
    }
    let before = chronicle.lease.replace(HeldBy { host: host.index, epoch, until });
    // What a controller had begun is interrupted when another one has had the node, be it for a moment.
    if chronicle.held_last.replace(host.index).is_some_and(|last| last != host.index) {
        ground_truth.interruptions.push(world.now());
    }
    let Some(before) = before.filter(|before| before.host != host.index) else { return };
    ground_truth.takeovers += 1;
    if before.until.since(world.now()) > CLOCKS {
        let what = format!("{} took {}, held until {:?}", host.name, machine.name, before.until);
        world.violated("a_lease_is_not_taken_before_it_expires", what);
    }
}

/// A lease was renewed.
pub fn renewed(world: &World, lease: Lease, until: Timestamp) {
    let Some(machine) = world.machine(lease.node) else { return };
    let chronicle = &mut held(&world.ground_truth).machines[machine.index];
    if let Some(held) = chronicle.lease.as_mut().filter(|held| held.epoch == lease.epoch) {
        held.until = until;
    }
}

/// A lease was released.
pub fn released(world: &World, lease: Lease) {
    let Some(machine) = world.machine(lease.node) else { return };
    let chronicle = &mut held(&world.ground_truth).machines[machine.index];
    chronicle.lease.take_if(|held| held.epoch == lease.epoch);
}

/// A conductor stored something in addition to the row of a node. "Work is claimed by leases with an epoch that every write … carr[ies]".
pub fn stored_in_addition(world: &World, node: Uuid, lease: Option<Lease>) {
    let Some(machine) = world.machine(node) else { return };
    let newest = held(&world.ground_truth).machines[machine.index].epoch;
    let epoch = lease.map(|lease| lease.epoch);
    if epoch.is_none() || epoch != newest {
        let what = format!("{} under {epoch:?}, the newest is {newest:?}", machine.name);
        world.violated("what_comes_with_a_row_is_written_under_the_newest_lease", what);
    }
}

/// A call of a controller to a BMC or an agent, until its caller has the answer. If its caller dies or drops it, it may still have an
/// effect for a while.
pub struct InCall {
    world: Arc<World>,
    machine: usize,
    number: u64,
}

impl InCall {
    /// The caller has the answer.
    pub fn ended(self) {
        let machine = &mut held(&self.world.ground_truth).machines[self.machine];
        machine.calls.retain(|call| call.number != self.number);
    }
}

/// A controller begins a call that no epoch fences. "No BMC call begun under [a lost lease]"; what changes something waits until no such call
/// of the controller before can be under way there.
pub fn begun(
    world: &Arc<World>,
    life: &Life,
    machine: &Machine,
    what: &str,
    changes: Option<Target>,
) -> InCall {
    let (host, now) = (life.host.index, Instant::now());
    let mut ground_truth = held(&world.ground_truth);
    ground_truth.next_call += 1;
    let number = ground_truth.next_call;
    let chronicle = &mut ground_truth.machines[machine.index];
    let holds = |held: &HeldBy| held.host == host && held.until > world.now();
    if !chronicle.lease.as_ref().is_some_and(holds) {
        let what = format!("{} {what} of {}, lease {:?}", life.host.name, machine.name, chronicle.lease);
        world.violated("no_call_without_the_lease", what);
    }
    chronicle.calls.retain(|call| call.ends_by > now);
    let other = chronicle.calls.iter().find(|call| call.host != host && call.changes == changes);
    if let Some(other) = other.filter(|_| changes.is_some()) {
        let left = other.ends_by - now;
        let what = format!("{} {what} of {}, {other:?} for {left:?}", life.host.name, machine.name);
        world.violated("a_change_waits_for_the_call_of_the_controller_before", what);
    }
    let ends_by = now + if changes == Some(Target::ForeignAgent) { PATIENCE } else { LONGEST_REQUEST };
    chronicle.calls.push(OpenCall { number, host, changes, ends_by });
    InCall { world: world.clone(), machine: machine.index, number }
}

/// An agent of ours accepted a command. "Every … command to our agents carr[ies an epoch that the] agent refuse[s] when it is old".
pub fn commanded(world: &World, machine: &Machine, agent: &Agent, epoch: Option<u64>) {
    if agent.kind != Kind::Anneal {
        return;
    }
    let commanded = &mut held(&world.ground_truth).machines[machine.index].commanded;
    let newest = commanded.take().filter(|(process, _)| *process == agent.certificate);
    let newest = newest.map_or(0, |(_, newest)| newest);
    match epoch {
        Some(epoch) if epoch >= newest => {}
        epoch => world.violated(
            "an_agent_accepts_no_command_of_an_old_epoch",
            format!("{} accepted {epoch:?} after {newest}", machine.name),
        ),
    }
    *commanded = Some((agent.certificate.clone(), epoch.unwrap_or_default().max(newest)));
}

/// A controller has died. "A controller that dies … loses its nodes to the others, which begin within 15 s": here those that it was
/// calling something for.
pub fn left_behind(world: &Arc<World>, host: usize) {
    let died = Instant::now();
    let ground_truth = held(&world.ground_truth);
    for machine in &world.machines {
        let chronicle = &ground_truth.machines[machine.index];
        let in_call = chronicle.calls.iter().any(|call| call.host == host && call.ends_by > died);
        let Some(lease) = chronicle.lease.filter(|lease| lease.host == host && in_call) else { continue };
        let (world, machine) = (world.clone(), machine.clone());
        tokio::spawn(async move {
            sleep(TAKE_OVER).await;
            let still = held(&world.ground_truth).machines[machine.index].lease == Some(lease);
            if still && world.someone_is_well(died) && world.hosts[host].running().is_none() {
                let what = format!("{} is still {}'s, which has died", machine.name, world.hosts[host].name);
                world.violated("a_node_of_a_dead_controller_is_taken_over_within_15_s", what);
            }
        });
    }
}

/// The same for the nodes that come due, whatever happened to their controller.
pub async fn watch_due(world: Arc<World>) {
    loop {
        sleep(LOOK).await;
        let since = Instant::now() - (TAKE_OVER + CLOCKS);
        if *held(&world.settled_since) > since || !world.someone_is_well(since) {
            continue;
        }
        let now = world.now();
        let late = |at: Timestamp| now.since(at) > TAKE_OVER + CLOCKS;
        for (chronicle, machine) in held(&world.ground_truth).machines.iter().zip(&world.machines) {
            let is_held = chronicle.lease.is_some_and(|lease| lease.until > now);
            let due = chronicle.row.as_ref().and_then(|row| row.next_wake_at).filter(|at| late(*at));
            if let Some(due) = due.filter(|_| !is_held) {
                let what = format!("{} is due since {due:?}, lease {:?}", machine.name, chronicle.lease);
                world.violated("a_due_node_is_driven_within_15_s", what);
            }
        }
    }
}

impl World {
    /// Whether nothing has been wrong with some controller since then.
    fn someone_is_well(&self, since: Instant) -> bool {
        self.hosts.iter().any(|host| host.running().is_some() && host.well_since() <= since)
    }
}
