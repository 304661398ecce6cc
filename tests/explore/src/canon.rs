//! When two worlds are the same: a fingerprint of everything that decides what may follow or breaks a property.
//!
//! Times count from now, boots and processes from the present ones, runs from the present run. Texts for people are
//! left out, and so is all that only repeats what the scenario says. Every field of a row is named here, so that a new
//! one has to be judged.

use crate::scenario::{SILENCE, TICK};
use crate::world::{
    Agent, Applying, Command, Held, Machine, Runs, Stand, State, Storing, Story, Task, World,
};
use conductor::decision::{Action, Change, Outcome, Snapshot};
use conductor::stages::BOOT_DEVICE_NEW;
use model::agent::{AgentState, SecondAgent};
use model::boot::{Boot, BootStart};
use model::fast_track::KeptRamdisk;
use model::{Basis, Contact, Cursor, Node, Run, StepResult, Timestamp, Wait};
use room::Power;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// The fingerprint of a world.
pub fn fingerprint(world: &World) -> u64 {
    let World { stored, conductor, machine, link, held, story } = world;
    let mut canon = Canon { hasher: DefaultHasher::new(), world };
    canon.rows(stored);
    canon.stand(conductor);
    canon.machine(machine);
    canon.put(link);
    canon.held(held.as_ref());
    canon.story(story);
    canon.hasher.finish()
}

/// [`SILENCE`].
const SILENCE_TICKS: i64 = SILENCE as i64;

struct Canon<'a> {
    hasher: DefaultHasher,
    world: &'a World,
}

/// Before a reset: whether this controller set the boot device that the reset needs, and for how many ticks that may count.
fn boot_device_age(rows: &Snapshot, now: Timestamp) -> Option<(bool, u128)> {
    let run = rows.node.run.as_ref().filter(|run| run.boot_start == BootStart::ResetAccepted)?;
    let set_at = rows.node.reset_at.filter(|_| run.cursor == Cursor::PowerOn)?;
    let ticks = now.since(set_at).as_micros() / TICK.as_micros();
    Some((set_at >= rows.listening_since, ticks.min(BOOT_DEVICE_NEW.as_micros() / TICK.as_micros() + 1)))
}

impl Canon<'_> {
    fn put(&mut self, value: impl Hash) {
        value.hash(&mut self.hasher);
    }

    /// Ticks since a time, or until it.
    fn time(&mut self, at: Option<Timestamp>) {
        let tick = i64::try_from(TICK.as_micros()).unwrap_or(1);
        self.put(at.map(|at| (at.0 - self.world.now().0).div_euclid(tick)));
    }

    /// A time at which something is due: that it was is all that counts.
    fn due(&mut self, at: Option<Timestamp>) {
        let tick = i64::try_from(TICK.as_micros()).unwrap_or(1);
        self.put(at.map(|at| (at.0 - self.world.now().0 + tick - 1).div_euclid(tick).max(0)));
    }

    /// A name with a number in it, counted from `now`: `boot-3`.
    fn numbered(&mut self, name: &str, now: u32) {
        let number = name.rsplit('-').next().and_then(|number| number.parse::<u32>().ok());
        self.put(number.map(|number| i64::from(number) - i64::from(now)));
    }

    /// A command's id, with its run counted from the present one.
    fn command_id(&mut self, id: &str) {
        // A UUID that is a count: its last group.
        let Some((run, rest)) = id.split_at_checked(36) else {
            // An ironic-python-agent's: its count and its process.
            self.put(id.split('-').next());
            return self.numbered(id, self.world.machine.processes);
        };
        let run = run.rsplit('-').next().and_then(|group| u32::from_str_radix(group, 16).ok());
        self.put(run.map(|run| self.world.story.run.wrapping_sub(run)));
        self.put(rest);
    }

    /// A token, as the boot that it was given to.
    fn token(&mut self, token: Option<&String>) {
        let boot = token.and_then(|token| crate::world::boot_of(token));
        self.put(boot.map(|boot| i64::from(boot) - i64::from(self.world.machine.power.boot)));
        self.put(
            token.is_some_and(|token| {
                self.world.agent().and_then(|agent| agent.token.as_ref()) == Some(token)
            }),
        );
        self.put(token.is_some() && token == self.world.stored.contact.token.as_ref());
    }

    fn rows(&mut self, rows: &Snapshot) {
        // The abilities are the scenario's; nothing is inspected.
        let Snapshot {
            node,
            contact,
            abilities: _,
            catalogue,
            inventory: _,
            rules: _,
            listening_since,
            now: _,
        } = rows;
        self.node(node);
        self.put(boot_device_age(rows, self.world.now()));
        self.contact(contact);
        self.put(catalogue.is_some());
        // It counts while an agent is awaited, and only as long as a silence may last.
        let tick = i64::try_from(TICK.as_micros()).unwrap_or(1);
        let patience = i64::try_from(SILENCE).unwrap_or(0);
        self.put(self.awaits().then(|| ((self.world.now().0 - listening_since.0) / tick).min(patience)));
    }

    fn awaits(&self) -> bool {
        if self.world.kept_ramdisk().is_some() {
            return true;
        }
        let cursor = self.world.run().map(|run| &run.cursor);
        matches!(
            cursor,
            Some(
                Cursor::Issued { .. } | Cursor::Pause { .. } | Cursor::AwaitHello { .. } | Cursor::AwaitAgent
            )
        )
    }

    fn node(&mut self, node: &Node) {
        let Node {
            uuid: _,
            name: _,
            version: _,
            driver: _,
            driver_info: _,
            properties: _,
            instance_info: _,
            instance_uuid: _,
            extra: _,
            resource_class: _,
            interfaces: _,
            other: _,
            provision_state,
            target_provision_state,
            provision_updated_at: _,
            power_state,
            health: _,
            target_power_state,
            // See rows.
            reset_at: _,
            medium_inserted,
            // It decides which agent gets a token, which the scenario says.
            tpm: _,
            last_error,
            maintenance,
            maintenance_reason: _,
            fault,
            automated_clean: _,
            retired: _,
            retired_reason: _,
            protected: _,
            protected_reason: _,
            clean_step: _,
            deploy_step: _,
            service_step: _,
            traits: _,
            inspection_started_at: _,
            inspection_finished_at: _,
            driver_internal_info: _,
            disks,
            root_disk: _,
            // Certificates alone.
            deployed_at: _,
            basis,
            run,
            wait,
            next_wake_at,
            created_at: _,
            updated_at: _,
        } = node;
        self.put((power_state.is_none(), medium_inserted));
        self.put((provision_state, target_provision_state, last_error.is_some(), maintenance, fault));
        self.put((disks.known.len(), basis.as_ref().map(Basis::as_str)));
        self.put(target_power_state.map(|target| target.as_str()));
        self.put(run.is_some());
        run.iter().for_each(|run| self.run(run));
        self.put(wait.is_some());
        if let Some(Wait { reason, since: _, deadline }) = wait {
            self.put(reason);
            self.due(*deadline);
        }
        self.due(*next_wake_at);
    }

    fn run(&mut self, run: &Run) {
        let Run {
            id,
            kind,
            started_at: _,
            request_id: _,
            sender: _,
            requested,
            templates: _,
            disable_ramdisk: _,
            booted,
            boot_before,
            boot_start,
            off_unobserved,
            plan,
            index,
            cursor,
            hardware_manager_version,
            results,
            abort,
            hung,
            checkpoint: _,
            interruptions,
            fruitless,
            reached,
            replans,
            attempts,
            logs,
            hello,
            ramdisk_kept,
        } = run;
        self.put(u128::from(self.world.story.run).wrapping_sub(id.as_u128()));
        self.put((
            kind,
            requested.len(),
            booted,
            (boot_before.is_some(), boot_start, off_unobserved),
            index,
            abort,
            hung.is_some(),
            interruptions,
            fruitless,
            reached,
            replans,
            attempts,
        ));
        self.put(logs.as_ref().map(std::mem::discriminant));
        // The nonce is one of its kind in every run.
        self.put(hello.as_ref().map(|hello| (hello.limit_s, hello.heard_at.is_some())));
        self.put(ramdisk_kept.as_ref().map(std::mem::discriminant));
        if let Some(KeptRamdisk::Since(at) | KeptRamdisk::PoweringOff(at)) = ramdisk_kept {
            self.time(Some(*at));
        }
        self.put(plan.is_some());
        for planned in plan.iter().flatten() {
            self.put((&planned.step.interface, &planned.step.step));
        }
        self.cursor(cursor);
        let version = hardware_manager_version.get("generic").and_then(|version| version.as_str());
        self.put(version.is_some());
        self.put(version == Some(self.world.machine.managers.to_string().as_str()));
        for StepResult { index, command_id: _, at: _, result: _, error, certificate, finding } in results {
            self.put((index, error.is_some(), certificate.is_some(), finding));
        }
    }

    fn cursor(&mut self, cursor: &Cursor) {
        self.put(std::mem::discriminant(cursor));
        match cursor {
            Cursor::Issued { command_id, at, boot_id, process_id, accepted } => {
                self.command_id(command_id);
                self.time(Some(*at));
                self.put(boot_id.is_some());
                self.numbered(boot_id.as_deref().unwrap_or_default(), self.world.machine.power.boot);
                self.numbered(process_id.as_deref().unwrap_or_default(), self.world.machine.processes);
                self.put(accepted);
            }
            Cursor::OutOfBand { command_id, at, polling } => {
                self.command_id(command_id);
                self.time(Some(*at));
                self.put(polling);
            }
            Cursor::AwaitHello { command_id, since } => {
                self.command_id(command_id);
                self.time(Some(*since));
            }
            Cursor::Pause { since, until } => {
                self.time(Some(*since));
                self.due(*until);
            }
            _ => {}
        }
    }

    fn contact(&mut self, contact: &Contact) {
        let Contact {
            boot,
            // It decides which agent gets a token, and what a certificate names.
            proof: _,
            token,
            token_at,
            token_to: _,
            lookup_boot_id: _,
            callback_url,
            verify_ca: _,
            agent_version: _,
            last_heartbeat_at,
            agent: _,
            progress_at,
            rival,
            unsigned,
        } = contact;
        self.put(boot.is_some());
        self.put(unsigned.is_some());
        if let Some(Boot { nonce, start, fetched_from, medium_read_by, medium: _, macs: _, shown }) = boot {
            self.put((start, fetched_from.is_some(), medium_read_by.is_some(), *shown));
            self.put(self.world.agent().is_some_and(|agent| agent.nonce == *nonce));
        }
        self.token(token.as_ref());
        self.put(callback_url.is_some());
        // Before the first heartbeat it counts how long ago the token was given, after it only when it was heard.
        self.time(token_at.filter(|_| callback_url.is_none()));
        let since = self.listens_since();
        self.time(since.map(|since| last_heartbeat_at.map_or(since, |at| at.max(since))));
        self.time(since.map(|since| progress_at.map_or(since, |at| at.max(since))));
        self.put(contact.anneal().is_some());
        contact.anneal().iter().for_each(|state| self.agent_state(state));
        self.put(rival.is_some());
        if let Some(SecondAgent { at, boot_id, repeated, address: _, fetched }) = rival {
            self.put((*repeated, *fetched));
            self.time(Some(*at));
            self.numbered(boot_id.as_deref().unwrap_or_default(), self.world.machine.power.boot);
        }
    }

    /// Since when it counts whether the agent is heard: while a step is with it, one waits for a heartbeat, or its ramdisk is
    /// kept running.
    fn listens_since(&self) -> Option<Timestamp> {
        if let Some(KeptRamdisk::Since(since)) = self.world.kept_ramdisk() {
            // Heartbeats from before then count as well.
            return Some(Timestamp(since.0.saturating_sub(crate::world::micros(SILENCE_TICKS))));
        }
        match &self.world.run()?.cursor {
            Cursor::Issued { at, .. } => Some(*at),
            Cursor::Pause { since, .. } => Some(*since),
            _ => None,
        }
    }

    fn agent_state(&mut self, state: &AgentState) {
        // Either every agent of a scenario signs, with one key, or none does.
        let AgentState { boot_id, process_id, evidence_key: _, running, ended, progress } = state;
        self.numbered(boot_id, self.world.machine.power.boot);
        self.numbered(process_id, self.world.machine.processes);
        self.put((running.is_some(), ended.len()));
        running.iter().chain(ended).for_each(|id| self.command_id(id));
        let progress = progress.as_ref().filter(|_| self.listens_since().is_some());
        self.time(progress.and_then(|progress| progress.as_i64()).map(Timestamp));
    }

    fn stand(&mut self, stand: &Stand) {
        self.put(std::mem::discriminant(stand));
        match stand {
            Stand::Idle => {}
            Stand::Begun(action) => self.action(action),
            Stand::Done(applying) => self.applying(applying),
            Stand::Storing(storing) => {
                let Storing { change, seen, applying, then } = &**storing;
                let Change { node, events: _, forget_agent, next_boot, catalogues, inspected: _, evidence } =
                    change;
                self.node(node);
                self.put((forget_agent, next_boot.is_some(), catalogues.len(), evidence.is_some()));
                self.seen(seen);
                self.put((applying.is_some(), then.is_some()));
                applying.iter().for_each(|applying| self.applying(applying));
                then.iter().for_each(|action| self.action(action));
            }
        }
    }

    /// What an action was decided on, where it is no longer what is stored.
    fn seen(&mut self, seen: &Snapshot) {
        let is_stale = seen.node.version != self.world.node().version;
        self.put(is_stale);
        if is_stale {
            self.node(&seen.node);
        }
        let has_news = seen.contact != self.world.stored.contact;
        self.put(has_news);
        if has_news {
            self.contact(&seen.contact);
        }
    }

    fn applying(&mut self, applying: &Applying) {
        let Applying { seen, action, outcome } = applying;
        self.seen(seen);
        self.action(action);
        self.put(std::mem::discriminant(outcome));
        match outcome {
            Outcome::Power(state) | Outcome::State(state, _) => self.put(state.as_str()),
            Outcome::Command(status) => {
                self.command_id(&status.id);
                self.put(std::mem::discriminant(&status.command_status));
                self.put(status.command_error.as_ref().map(|error| &error.kind));
                let result = status.command_result.as_ref();
                self.put(result.is_some_and(|result| !result.is_null()));
                // The report of an erase: how many disks, and whether it is signed.
                let disks = result.and_then(|result| result["clean_result"]["disks"].as_array());
                let signed = result.is_some_and(|result| result.get("anneal_evidence").is_some());
                self.put((disks.map(Vec::len), signed));
            }
            Outcome::Failed(error) => self.put((&error.text, error.retryable)),
            Outcome::Steps(steps) => {
                let reported =
                    steps.values().next().and_then(|steps| steps.hardware_manager_version.get("generic"));
                self.put(reported == Some(&self.world.machine.managers.to_string()));
            }
            _ => {}
        }
    }

    fn action(&mut self, action: &Action) {
        self.put(std::mem::discriminant(action));
        match action {
            Action::SetPower(target) => self.put(target.as_str()),
            Action::RunStep { command_id, polling, .. } => {
                self.command_id(command_id);
                self.put(polling);
            }
            Action::SendStep { command_id, .. }
            | Action::AskCommand { command_id }
            | Action::CancelCommand { command_id } => self.command_id(command_id),
            _ => {}
        }
    }

    fn machine(&mut self, machine: &Machine) {
        // Counts are what other numbers are counted from.
        let Machine {
            power: Power { on, boot: _, runs },
            outage,
            processes: _,
            network_boot,
            boot_forgotten,
            managers: _,
            tokens: _,
            task,
        } = machine;
        self.put((on, outage, network_boot, boot_forgotten, std::mem::discriminant(runs)));
        if let Runs::Agent(Agent { process: _, nonce: _, token, commands }) = runs {
            self.token(token.as_ref());
            self.put(commands.len());
            for Command { id, step, of, state } in commands {
                self.command_id(id);
                self.put((step, *of == (self.world.story.run, self.world.story.round)));
                let results = self.world.run().map(|run| run.results.as_slice()).unwrap_or_default();
                self.put(results.iter().any(|result| result.command_id == *id));
                self.put(std::mem::discriminant(state));
                if let State::Unproven(lack) = state {
                    self.put(lack);
                }
                if let State::Running { hung, cancelled } = state {
                    self.time(*hung);
                    self.put(cancelled);
                }
            }
        }
        if let Some(Task { step, of, ended_well }) = task {
            self.put((step, *of == (self.world.story.run, self.world.story.round), ended_well));
        }
    }

    fn held(&mut self, held: Option<&Held>) {
        match held {
            None => self.put(0_u8),
            Some(Held::Beat(late)) => {
                let (token, beat) = &**late;
                self.put(1_u8);
                self.token(Some(token));
                self.time(Some(beat.at));
                beat.agent.anneal().iter().for_each(|state| self.agent_state(state));
            }
            Some(Held::Command(late)) => {
                let (id, step, token) = &**late;
                self.put(2_u8);
                self.command_id(id);
                self.put(step);
                self.token(token.as_ref());
            }
        }
    }

    fn story(&mut self, story: &Story) {
        let Story {
            run: _,
            round,
            steps,
            abort,
            harmed,
            died_in_step,
            hung,
            flips,
            off_boot,
            reset_boot,
            token_boot,
            heard_at,
            answers,
            faults: _,
        } = story;
        let tick = i64::try_from(TICK.as_micros()).unwrap_or(1);
        let patience = i64::try_from(SILENCE).unwrap_or(0);
        self.put(self.listens_since().map(|_| ((self.world.now().0 - heard_at.0) / tick).min(patience)));
        self.put(self.listens_since().map(|_| answers));
        self.put((round, steps, abort, harmed, died_in_step, hung, flips));
        let token = self.world.stored.contact.token.as_deref().and_then(crate::world::boot_of);
        let boot = self.world.machine.power.boot;
        self.put((boot > *off_boot, token.map(|boot| boot > *off_boot)));
        self.put((*token_boot > *off_boot, *token_boot == boot));
        let ended = (*off_boot).max(*reset_boot);
        self.put((boot > ended, token.map(|boot| boot > ended), *token_boot > *reset_boot));
    }
}
