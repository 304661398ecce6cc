//! One simulated agent: its clean steps, and a journal of when each came and ended.

use agent_protocol::progress::Progress;
use agent_protocol::step::Step;
use axum::http::StatusCode;
use model::StepKind;
use room::{Begun, Call, Ending, Kind, StepContext, Work, advertised, held, step_result};
use serde_json::{Map, Value};
use std::sync::Mutex;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// An agent in one boot of its machine.
pub struct Agent {
    /// MAC address of its machine.
    pub mac: String,
    /// Its ids, its token and its commands.
    pub process: room::Agent,
    steps: Vec<Step>,
    /// What its step `erase_devices` reports.
    report: Value,
    /// The step whose command is being answered, with its result.
    begun: Mutex<Option<(String, Value)>>,
    /// A step that has begun ends when [`Agent::release`] is called, and not at once.
    is_held: bool,
    /// The context of such a step.
    context: Mutex<Option<StepContext>>,
    journal: Mutex<Vec<Mark>>,
    /// Every step has ended.
    pub finished: CancellationToken,
}

/// One step as the agent saw it.
#[derive(Debug, Clone)]
pub struct Mark {
    /// `interface.step`.
    pub step: String,
    /// When its command had arrived whole.
    pub received: Instant,
    /// When it had ended, and the heartbeat that reports it was due.
    pub ended: Instant,
}

impl Agent {
    /// The agent of machine `number`, with `steps` clean steps that are run in the order of their numbers.
    pub fn new(number: usize, steps: usize) -> Self {
        let [high, low] = u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes();
        let mac = format!("52:54:00:be:{high:02x}:{low:02x}");
        let name = |index: usize| format!("instant_{index:03}");
        Self::of(mac, (0..steps).map(|index| step(&name(index), steps - index)).collect())
    }

    /// The agent of the machine with this MAC address, with these clean steps.
    pub fn of(mac: String, steps: Vec<Step>) -> Self {
        let id = || Uuid::new_v4().to_string();
        Self {
            mac,
            process: room::Agent::new(Kind::Anneal, id(), id()),
            steps,
            report: Value::Null,
            begun: Mutex::default(),
            is_held: false,
            context: Mutex::default(),
            journal: Mutex::default(),
            finished: CancellationToken::new(),
        }
    }

    /// The same agent, whose step `erase_devices` returns this report.
    pub fn reporting(mut self, report: Value) -> Self {
        self.report = report;
        self
    }

    /// The same agent, whose steps go on until they are released.
    pub fn held(mut self) -> Self {
        self.is_held = true;
        self
    }

    /// Reports how far the step that goes on is. False: no step goes on.
    pub fn report(&self, progress: Progress) -> bool {
        let context = held(&self.context);
        context.iter().for_each(|context| context.report(progress.clone()));
        self.process.progressed.notify_one();
        context.is_some()
    }

    /// Ends the step that goes on. False: no step goes on.
    pub fn release(&self) -> bool {
        *held(&self.context) = None;
        self.end()
    }

    /// The same agent as an ironic-python-agent, which signs nothing.
    pub fn unsigned(mut self) -> Self {
        let id = || Uuid::new_v4().to_string();
        self.process = room::Agent::new(Kind::Ipa, id(), id());
        self
    }

    /// Answer a call. A step that is not held has ended before its answer, RUNNING, is on its way.
    pub fn answer(&self, call: &Call) -> (StatusCode, Vec<u8>) {
        let answer = self.process.answer(self, call);
        if !self.is_held {
            self.end();
        }
        answer
    }

    /// Ends the step that has begun, if one has.
    fn end(&self) -> bool {
        let Some((id, result)) = held(&self.begun).take() else { return false };
        let mut journal = held(&self.journal);
        journal.iter_mut().last().into_iter().for_each(|mark| mark.ended = Instant::now());
        self.process.finish(&id, Ending::done(Some(result)));
        if journal.len() >= self.steps.len() {
            self.finished.cancel();
        }
        true
    }

    /// The steps that were run, in order.
    pub fn journal(&self) -> Vec<Mark> {
        held(&self.journal).clone()
    }

    /// The steps as they are to be run, in order.
    pub fn expected(&self) -> Vec<String> {
        self.steps.iter().map(|step| format!("{}.{}", step.interface, step.step)).collect()
    }
}

impl Work for Agent {
    fn steps(&self, kind: StepKind) -> Value {
        let steps = if kind == StepKind::Clean { self.steps.as_slice() } else { &[] };
        advertised(kind, "bench", "1", steps)
    }

    fn begin(&self, step: Begun<'_>) {
        let now = Instant::now();
        let label = format!("{}.{}", step.field("interface"), step.field("step"));
        held(&self.journal).push(Mark { step: label, received: now, ended: now });
        let report = if step.field("step") == "erase_devices" { &self.report } else { &Value::Null };
        let result = step_result(step.kind, &step.params["step"], report);
        *held(&self.context) = self.is_held.then_some(step.context);
        *held(&self.begun) = Some((step.id.to_owned(), result));
    }

    fn rescue(&self, _params: &Map<String, Value>) -> Ending {
        Ending::failed("RescueError", "Rescue failed", "this agent only cleans")
    }
}

/// A clean step of the interface `deploy`.
pub fn step(name: &str, priority: usize) -> Step {
    Step {
        step: name.to_owned(),
        priority: priority.into(),
        interface: "deploy".to_owned(),
        reboot_requested: false,
        abortable: true,
        argsinfo: None,
        args: None,
        other: Map::new(),
    }
}
