//! What must hold, each with the sentence of issue 4 (or of the issues before it) that asks for it. A property looks
//! at one move: the world before it, what happened, the world after it.

use crate::basis;
use crate::moves::Next;
use crate::reasons;
use crate::scenario::{By, Scenario};
use crate::transition::Transition;
use crate::world::{Link, World, boot_of};
use conductor::decision::Action;
use model::boot::BootStart;
use model::fast_track::KeptRamdisk;
use model::provision::{Verb, transition};
use model::{Cursor, EventKind, Logs, PowerState, PowerTarget, ProvisionState, Run};

/// One move.
#[derive(Debug, Clone, Copy)]
pub struct Move<'a> {
    /// What is explored.
    pub scenario: &'a Scenario,
    /// The world before.
    pub before: &'a World,
    /// What happened, and the world after.
    pub next: &'a Next,
}

/// A property.
pub struct Property {
    /// Its name.
    pub name: &'static str,
    /// The sentence that asks for it.
    pub sentence: &'static str,
    /// `Err`: why the move breaks it.
    pub check: fn(&Move) -> Result<(), String>,
}

/// All properties of single moves.
pub const PROPERTIES: &[Property] = &[
    Property {
        name: "a_run_ends_well_only_when_every_step_ran",
        sentence: "no node becomes AVAILABLE by cleaning whose steps have not each a stored success",
        check: a_run_ends_well_only_when_every_step_ran,
    },
    Property {
        name: "a_deployment_that_awaits_a_hello_ends_well_only_after_it",
        sentence: "the controller waits for the instance's own hello and only then calls it done",
        check: a_deployment_that_awaits_a_hello_ends_well_only_after_it,
    },
    Property {
        name: "a_stored_success_is_true",
        sentence: "Anneal must never lose or invent progress; an agent that comes back with an empty memory is a \
                   reboot, not a success",
        check: a_stored_success_is_true,
    },
    Property {
        name: "a_stored_success_stays",
        sentence: "Anneal must never lose or invent progress",
        check: a_stored_success_stays,
    },
    Property {
        name: "no_step_is_skipped_or_reordered",
        sentence: "No step is skipped",
        check: no_step_is_skipped_or_reordered,
    },
    Property {
        name: "nothing_runs_twice_that_may_not",
        sentence: "none that is not idempotent runs twice",
        check: nothing_runs_twice_that_may_not,
    },
    Property {
        name: "a_node_that_left_its_run_is_left_alone",
        sentence: "after recovery the node is where it would have been or in a -fail state: nothing is begun there",
        check: a_node_that_left_its_run_is_left_alone,
    },
    Property {
        name: "an_aborted_run_leaves_no_step_running",
        sentence: "abort takes effect when the step has really stopped",
        check: an_aborted_run_leaves_no_step_running,
    },
    Property {
        name: "a_node_boots_from_what_it_did_before",
        sentence: "the apparent configuration of the system must not change",
        check: a_node_boots_from_what_it_did_before,
    },
    Property {
        name: "a_node_at_rest_has_no_run",
        sentence: "none lost, none stuck: a state in which nothing happens by itself has nothing under way",
        check: a_node_at_rest_has_no_run,
    },
    Property {
        name: "no_step_is_cut_off",
        sentence: "A failed or aborted node is not powered off (\"a power cycle could damage a node\")",
        check: no_step_is_cut_off,
    },
    Property {
        name: "an_agent_of_an_earlier_boot_is_never_the_present_one",
        sentence: "an agent of an earlier boot must not be taken for the new one; every heartbeat carries boot id",
        check: an_agent_of_an_earlier_boot_is_never_the_present_one,
    },
    Property {
        name: "no_boot_gets_a_token_before_the_one_with_a_token_was_switched_off",
        sentence: "no second token without an observed Off (or its stated stand-in)",
        check: no_boot_gets_a_token_before_the_one_with_a_token_was_switched_off,
    },
    Property {
        name: "a_deployment_begins_in_no_ramdisk_but_the_kept_one",
        sentence: "a node whose ramdisk still runs after cleaning is deployed without a reboot, keeps the boot's token",
        check: a_deployment_begins_in_no_ramdisk_but_the_kept_one,
    },
    Property {
        name: "no_token_without_the_nonce_of_the_boot",
        sentence: "a token goes only to who shows the nonce of the boot",
        check: no_token_without_the_nonce_of_the_boot,
    },
    Property {
        name: "intents_are_stored_before_effects",
        sentence: "The intent of an action is stored before the action is taken; the controller picks each command's id",
        check: intents_are_stored_before_effects,
    },
    Property {
        name: "a_failure_states_its_true_reason",
        sentence: "in a -fail state with the true reason",
        check: reasons::a_failure_states_its_true_reason,
    },
    Property {
        name: "what_does_no_harm_fails_no_run",
        sentence: "after recovery the node is where it would have been: a dead controller and lost, repeated, \
                   reordered or late messages alone fail no run",
        check: what_does_no_harm_fails_no_run,
    },
    Property {
        name: "a_run_is_looked_at_again",
        sentence: "none stuck: every row of a run names when the conductor looks at it again",
        check: a_run_is_looked_at_again,
    },
    Property {
        name: "available_after_an_erase_has_evidence_of_every_disk",
        sentence: "no AVAILABLE out of a cleaning with an erase step by a signing agent without evidence for every \
                   known disk",
        check: basis::available_after_an_erase_has_evidence_of_every_disk,
    },
    Property {
        name: "available_has_the_stored_basis_and_no_other",
        sentence: "Every way into AVAILABLE is one enum, stored on the node as its basis; no other basis than the \
                   stored one",
        check: basis::available_has_the_stored_basis_and_no_other,
    },
    Property {
        name: "every_transition_is_allowed_and_has_an_event",
        sentence: "one event for every transition, with its cause, stored with it",
        check: every_transition_is_allowed_and_has_an_event,
    },
];

/// Whether this is a state in which a run has failed.
pub fn is_failure(state: ProvisionState) -> bool {
    state.as_str().ends_with("failed")
}

impl Move<'_> {
    /// The run that ended in this move.
    fn ended_run(&self) -> Option<&Run> {
        let run = self.before.run()?;
        let after = self.next.world.node().run.as_ref().filter(|after| after.id == run.id)?;
        (!after.is_active()).then_some(after)
    }

    /// The run ended in failure or abort in this move.
    pub fn fails(&self) -> bool {
        self.ended_run().is_some() && is_failure(self.next.world.node().provision_state)
    }

    /// The action of this move.
    fn action(&self) -> Option<&Action> {
        self.next.action.as_ref()
    }

    /// The step ran to its end in the world. A reserved step names a state of power or time, whatever caused that state.
    fn ran(&self, step: usize) -> bool {
        let reserved = self.scenario.steps.get(step).is_some_and(|step| step.by == By::Engine);
        reserved || self.next.world.story.steps.get(step).is_some_and(|history| history.done)
    }

    fn label(&self, step: usize) -> &'static str {
        self.scenario.steps.get(step).map_or("?", |step| step.label)
    }
}

fn a_run_ends_well_only_when_every_step_ran(now: &Move) -> Result<(), String> {
    let world = &now.next.world;
    let state = world.node().provision_state;
    // An administrator's override claims no success.
    let overridden = now.next.transition == Transition::User(Verb::Override);
    let available =
        state == ProvisionState::Available && now.before.node().provision_state != state && !overridden;
    if now.ended_run().is_none_or(|_| is_failure(state)) && !available {
        return Ok(());
    }
    let run = world.node().run.as_ref();
    for (index, step) in now.scenario.steps.iter().enumerate() {
        if !run.is_some_and(|run| run.succeeded(index)) {
            return Err(format!("the node is {}, and {} has no stored success", state.as_str(), step.label));
        }
        if !now.ran(index) {
            return Err(format!("the node is {}, and {} did not run to its end", state.as_str(), step.label));
        }
    }
    Ok(())
}

fn a_deployment_that_awaits_a_hello_ends_well_only_after_it(now: &Move) -> Result<(), String> {
    let well = now.ended_run().filter(|_| !is_failure(now.next.world.node().provision_state));
    let heard = |run: &Run| run.hello.as_ref().is_some_and(|hello| hello.heard_at.is_some());
    match well {
        Some(run) if now.scenario.hello && !heard(run) => Err("no hello was heard".to_owned()),
        _ => Ok(()),
    }
}

fn a_stored_success_is_true(now: &Move) -> Result<(), String> {
    let (before, after) = (now.before.node().run.as_ref(), &now.next.world);
    let Some(run) = after.node().run.as_ref() else { return Ok(()) };
    for index in 0..now.scenario.steps.len() {
        let is_new = run.succeeded(index) && !before.is_some_and(|run| run.succeeded(index));
        if is_new && !now.ran(index) {
            return Err(format!(
                "the success of {} is stored, and it did not run to its end",
                now.label(index)
            ));
        }
    }
    Ok(())
}

fn a_stored_success_stays(now: &Move) -> Result<(), String> {
    let (before, after) = (now.before, &now.next.world);
    let (Some(old), Some(new)) = (&before.node().run, &after.node().run) else { return Ok(()) };
    // The specification wants a cleaning whose hardware managers changed to begin anew.
    if old.id != new.id || before.story.round != after.story.round {
        return Ok(());
    }
    match (0..now.scenario.steps.len()).find(|index| old.succeeded(*index) && !new.succeeded(*index)) {
        None => Ok(()),
        Some(index) => Err(format!("the stored success of {} is gone", now.label(index))),
    }
}

fn no_step_is_skipped_or_reordered(now: &Move) -> Result<(), String> {
    let world = &now.next.world;
    let plan = world.node().run.as_ref().and_then(|run| run.plan.as_ref());
    if let Some(plan) = plan {
        let planned: Vec<String> = plan.iter().map(|step| step.label()).collect();
        if !planned.iter().eq(now.scenario.steps.iter().map(|step| step.label)) {
            return Err(format!("the plan is {}", planned.join(", ")));
        }
    }
    let Some(began) = now.next.began.as_ref().filter(|began| !began.late) else { return Ok(()) };
    let run = now.before.node().run.as_ref();
    for earlier in 0..began.step {
        if !now.ran(earlier) || !run.is_some_and(|run| run.succeeded(earlier)) {
            return Err(format!("{} begins before {} has ended", now.label(began.step), now.label(earlier)));
        }
    }
    if run.is_some_and(|run| run.succeeded(began.step)) {
        return Err(format!("{} begins again after its success was stored", now.label(began.step)));
    }
    Ok(())
}

fn nothing_runs_twice_that_may_not(now: &Move) -> Result<(), String> {
    for (step, history) in now.scenario.steps.iter().zip(&now.next.world.story.steps) {
        if history.begun > 1 && !step.idempotent {
            return Err(format!("{} has begun twice and does not say that it may", step.label));
        }
    }
    Ok(())
}

fn a_node_that_left_its_run_is_left_alone(now: &Move) -> Result<(), String> {
    let Some(action) = now.action() else { return Ok(()) };
    if matches!(action, Action::CollectLogs(_)) {
        let logs = now.before.node().run.as_ref().and_then(|run| run.logs.as_ref());
        let wanted = logs == Some(&Logs::Wanted);
        return if wanted { Ok(()) } else { Err(format!("logs are asked for that are {logs:?}")) };
    }
    let reads =
        matches!(action, Action::ReadPower | Action::ReadState | Action::ReadBootDevice | Action::VerifyBmc);
    let changes = !(reads || matches!(action, Action::AskCommand { .. }));
    let Some(run) = now.before.run() else {
        let state = now.before.node().provision_state.as_str();
        return if changes && !is_idle_power_off(now) {
            Err(format!("{action:?} is done to a node that is {state}"))
        } else {
            Ok(())
        };
    };
    // A stored command is sent even if the run is aborted: only a command that the agent knows can be cancelled, and
    // the agent then also knows the id of a copy that the network delays.
    let ends = run.abort || run.hung.is_some() || run.results.iter().any(|result| result.error.is_some());
    let forward = match action {
        Action::RunStep { polling, .. } => !polling,
        Action::SetPower(_) | Action::SetBootDevice | Action::InsertMedium | Action::AskSteps(_) => true,
        _ => false,
    };
    if ends && forward {
        return Err(format!("{action:?} is done for a run that is being aborted or fails"));
    }
    Ok(())
}

/// The node is powered off because its kept ramdisk is not needed any more, and that is stored.
fn is_idle_power_off(now: &Move) -> bool {
    let is_intended = matches!(now.before.kept_ramdisk(), Some(KeptRamdisk::PoweringOff(_)));
    let off = now.action() == Some(&Action::SetPower(PowerTarget::Off));
    off && is_intended && now.before.keeps_ramdisk()
}

fn an_aborted_run_leaves_no_step_running(now: &Move) -> Result<(), String> {
    let by_request =
        now.next.world.node().last_error.as_deref().is_some_and(|text| text.contains("By request"));
    // ironic-python-agent cannot cancel a step, and the run's error says so.
    if !now.fails() || !by_request || now.scenario.ipa {
        return Ok(());
    }
    let of = (now.before.story.run, now.before.story.round);
    let running = now.before.agent().and_then(|agent| agent.running()).filter(|command| command.of == of);
    match running {
        Some(command) => Err(format!("the run is aborted while {} runs", now.label(command.step))),
        None => Ok(()),
    }
}

fn a_node_boots_from_what_it_did_before(now: &Move) -> Result<(), String> {
    let world = &now.next.world;
    if now.ended_run().is_some() && !is_failure(world.node().provision_state) && world.machine.boot_forgotten
    {
        return Err("the run ends well, and what the node boots from every time is not set again".to_owned());
    }
    Ok(())
}

fn a_node_at_rest_has_no_run(now: &Move) -> Result<(), String> {
    let world = &now.next.world;
    let state = world.node().provision_state;
    match world.run() {
        Some(run) if state.is_stable() || is_failure(state) => {
            Err(format!("the node is {}, and its run stands at {:?}", state.as_str(), run.cursor))
        }
        _ => Ok(()),
    }
}

fn no_step_is_cut_off(now: &Move) -> Result<(), String> {
    let Some(Action::SetPower(target)) = now.action() else { return Ok(()) };
    let cuts = target.resulting_state() == PowerState::Off || *target == PowerTarget::Reboot;
    let of = (now.before.story.run, now.before.story.round);
    let running = now.before.agent().and_then(|agent| agent.running());
    match running.filter(|command| cuts && command.of == of) {
        Some(command) => Err(format!("power is taken from {} while it runs", now.label(command.step))),
        None => Ok(()),
    }
}

fn no_boot_gets_a_token_before_the_one_with_a_token_was_switched_off(now: &Move) -> Result<(), String> {
    let (before, after) = (&now.before.story, &now.next.world.story);
    if before.token_boot == after.token_boot || before.off_boot >= before.token_boot {
        return Ok(());
    }
    // What stands for an observed power-off: a reset that the BMC accepted, and a fetch of the boot script since.
    let boot = now.before.stored.contact.boot.as_ref();
    let fetched =
        boot.is_some_and(|boot| boot.start == BootStart::ResetAccepted && boot.fetched_from.is_some());
    if now.scenario.never_off && fetched && before.reset_boot >= before.token_boot {
        return Ok(());
    }
    Err(format!(
        "boot {} got a token, and the controller has neither switched boot {} off, nor reset it and given out a boot script \
         since",
        after.token_boot, before.token_boot
    ))
}

/// The agent that reports its steps to a run which has not booted the node is the one that the cleaning booted, with its token.
fn a_deployment_begins_in_no_ramdisk_but_the_kept_one(now: &Move) -> Result<(), String> {
    let (before, after) = (now.before, &now.next.world);
    let learns = |world: &World| world.run().is_some_and(|run| run.cursor == Cursor::LearnSteps);
    if !learns(before) || before.kept_ramdisk().is_none() {
        return Ok(());
    }
    let goes_on = after.run().is_some_and(|run| run.cursor == Cursor::NextStep);
    let (of_cleaning, heard) =
        (before.story.token_boot, before.stored.contact.token.as_deref().and_then(boot_of));
    if goes_on && (!now.scenario.fast_track || heard != Some(of_cleaning)) {
        return Err(format!("the agent of boot {heard:?} is used, and boot {of_cleaning} has the token"));
    }
    Ok(())
}

fn no_token_without_the_nonce_of_the_boot(now: &Move) -> Result<(), String> {
    let (before, after) = (&now.before.stored.contact, &now.next.world);
    let contact = &after.stored.contact;
    if contact.token.is_none() || contact.token == before.token {
        return Ok(());
    }
    let nonce = contact.boot.as_ref().map(|boot| &boot.nonce);
    let is_agent = after.agent().is_some_and(|agent| Some(&agent.nonce) == nonce);
    if is_agent && contact.token.as_deref().and_then(boot_of) == Some(after.machine.power.boot) {
        return Ok(());
    }
    Err("a token went to someone who has not the boot script of this boot".into())
}

fn an_agent_of_an_earlier_boot_is_never_the_present_one(now: &Move) -> Result<(), String> {
    let (before, after) = (now.before, &now.next.world);
    let contact = &after.stored.contact;
    if let (Some(token), Some(state)) = (&contact.token, contact.anneal()) {
        let given_to = boot_of(token).map(|boot| format!("boot-{boot}"));
        if given_to.as_deref() != Some(state.boot_id.as_str()) {
            return Err(format!("a heartbeat of {} was taken with the token of {given_to:?}", state.boot_id));
        }
    }
    // What the conductor takes for the ramdisk of this run must have been booted after it last switched the node off.
    let heard = before.stored.contact.token.as_deref().and_then(boot_of);
    let ended = before.story.off_boot.max(before.story.reset_boot);
    let is_old = heard.is_none_or(|boot| boot <= ended);
    let awaited = |world: &World| world.run().is_some_and(|run| run.cursor == Cursor::AwaitAgent);
    let boots_again = after.run().is_some_and(|run| run.cursor == Cursor::PowerOff);
    let taken =
        awaited(before) && !awaited(after) && after.run().is_some() && !boots_again && !after.story.abort;
    let issued = after.run().is_some_and(|run| {
        matches!(&run.cursor, Cursor::Issued { accepted: false, .. })
            && before.run().is_some_and(|run| run.cursor == Cursor::NextStep)
    });
    let without_agent = now.next.began.as_ref().is_some_and(|began| {
        now.scenario.steps.get(began.step).is_some_and(|step| step.ramdisk && step.by != By::Agent)
    });
    if is_old && (taken || issued || without_agent) {
        let text = "an agent of before the run, or of before the node was switched off, is taken for the present one";
        return Err(text.into());
    }
    // A command is written down for one boot, and runs in no other.
    if let (Some(began), Some(run)) = (&now.next.began, before.run())
        && let Cursor::Issued { command_id, boot_id: Some(boot_id), .. } = &run.cursor
        && began.command_id == *command_id
        && *boot_id != format!("boot-{}", after.machine.power.boot)
    {
        return Err(format!("a command for {boot_id} begins in boot-{}", after.machine.power.boot));
    }
    Ok(())
}

fn intents_are_stored_before_effects(now: &Move) -> Result<(), String> {
    let stored = now.before.run().map(|run| &run.cursor);
    if let Some(began) = now.next.began.as_ref().filter(|began| !began.late) {
        let intended = match stored {
            Some(Cursor::Issued { command_id, .. }) => now.scenario.ipa || *command_id == began.command_id,
            Some(Cursor::OutOfBand { command_id, polling: false, .. }) => *command_id == began.command_id,
            _ => false,
        };
        let by_agent = now.scenario.steps.get(began.step).is_some_and(|step| step.by == By::Agent);
        if !intended || by_agent != matches!(stored, Some(Cursor::Issued { .. })) {
            return Err(format!("{} begins, and what is stored is {stored:?}", now.label(began.step)));
        }
    }
    let intended = match now.action() {
        Some(Action::SetPower(target)) => match stored {
            // A node that is never powered off is reset instead, by an intent that says so.
            Some(Cursor::PowerOn | Cursor::TearDown) if now.scenario.never_off => {
                let begins = now.before.run().map(|run| run.boot_start) == Some(BootStart::ResetAccepted);
                *target == PowerTarget::Reboot && begins
            }
            Some(Cursor::PowerOff | Cursor::TearDown) => *target == PowerTarget::Off,
            // An instance that went off before its hello is powered on again.
            Some(Cursor::PowerOn | Cursor::Restart | Cursor::AwaitHello { .. }) => *target == PowerTarget::On,
            Some(Cursor::Reboot) => *target == PowerTarget::Reboot,
            Some(Cursor::OutOfBand { polling, .. }) => !polling,
            _ => is_idle_power_off(now),
        },
        Some(Action::SetBootDevice | Action::InsertMedium) => stored == Some(&Cursor::SetBootDevice),
        Some(Action::RestoreBootDevice(_)) => stored == Some(&Cursor::RestoreBootDevice),
        _ => true,
    };
    if intended { Ok(()) } else { Err(format!("{:?}, and what is stored is {stored:?}", now.action())) }
}

fn what_does_no_harm_fails_no_run(now: &Move) -> Result<(), String> {
    if !now.fails() || now.next.world.story.harmed || now.before.link == Link::Down {
        return Ok(());
    }
    Err(format!("last_error: {}", now.next.world.node().last_error.as_deref().unwrap_or("none")))
}

fn a_run_is_looked_at_again(now: &Move) -> Result<(), String> {
    let world = &now.next.world;
    let Some(run) = world.run().filter(|run| run.cursor != Cursor::Hold) else { return Ok(()) };
    match world.node().next_wake_at {
        Some(_) => Ok(()),
        None => Err(format!("a run at {:?} sleeps without a deadline", run.cursor)),
    }
}

fn every_transition_is_allowed_and_has_an_event(now: &Move) -> Result<(), String> {
    let (from, to) = (now.before.node().provision_state, now.next.world.node().provision_state);
    if from == to {
        return Ok(());
    }
    if !Verb::ALL.iter().any(|verb| transition(from, *verb) == Ok(to)) {
        return Err(format!("{} -> {} is not in the table", from.as_str(), to.as_str()));
    }
    let names_it = |text: &str| text.contains(&format!("-> {}", to.as_str()));
    let events = &now.next.events;
    if !events.iter().any(|event| event.kind == EventKind::Transition && names_it(&event.text)) {
        return Err(format!("{} -> {} is stored without an event", from.as_str(), to.as_str()));
    }
    Ok(())
}
