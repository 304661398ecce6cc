//! The scenarios, each with a process of the manager of its own.

pub(crate) mod erase;
pub(crate) mod lifecycle;
pub(crate) mod machines;
pub(crate) mod malformed;
pub(crate) mod run;
pub(crate) mod steps;
pub(crate) mod versions;

use crate::session::Session;
use crate::{Plan, Report, Rule, Violation};
use anyhow::Result;
use hwm_sdk::protocol::{
    Code, Destructive, Detect, DetectParams, Detected, Empty, Hello, HelloAnswer, HelloParams, Init,
    RpcError, StepOffer, VERSION,
};
use hwm_sdk::{StepKind, Support};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Results so far.
pub(crate) struct Examination<'a> {
    pub(crate) plan: &'a Plan,
    report: Report,
    /// It supports the machine, and is initialised there.
    ready: bool,
    /// Its steps on the machine.
    offers: BTreeMap<StepKind, Vec<StepOffer>>,
    /// The last checkpoint of each step.
    checkpoints: BTreeMap<String, Value>,
}

/// A step to be run.
#[derive(Debug, Clone)]
pub(crate) struct Runnable {
    pub(crate) kind: StepKind,
    pub(crate) offer: StepOffer,
    pub(crate) args: Map<String, Value>,
    /// The plan says that it works here. Others may lack their hardware.
    planned: bool,
}

impl Runnable {
    /// Whether a step may fail this way because hardware or other parts of a real node are missing.
    pub(crate) fn excuses(&self, error: &RpcError) -> bool {
        !self.planned && [Code::Failed, Code::Argument, Code::Declined].iter().any(|code| error.is(*code))
    }
}

pub(crate) type ScenarioResult = Result<(), Violation>;

impl<'a> Examination<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            report: Report::default(),
            ready: false,
            offers: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
        }
    }

    /// Runs a scenario with a new process of the manager. False when a rule was broken in it.
    pub(crate) fn play(
        &mut self,
        scenario: impl FnOnce(&mut Session, &mut Self) -> ScenarioResult,
    ) -> Result<bool> {
        let mut session = Session::start(self.plan)?;
        session.incoming.disks.clone_from(&self.plan.inventory.disks);
        let played = scenario(&mut session, self);
        let seen = [
            (session.incoming.progressed, Rule::Progress),
            (session.incoming.checkpoint.is_some(), Rule::Checkpoint),
            (session.incoming.served, Rule::Services),
            (session.incoming.notified, Rule::Notifications),
            (true, Rule::Alive),
            (true, Rule::OnlyMessages),
            (true, Rule::LineLimit),
            (true, Rule::AnswersOnce),
        ];
        seen.iter().filter(|(seen, _)| *seen).for_each(|(_, rule)| self.report.keep(*rule));
        let kept = played.is_ok();
        if let Err(violation) = played {
            self.report.fail(violation, session.log());
        }
        Ok(kept)
    }

    pub(crate) fn report(self) -> Report {
        self.report
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.ready
    }

    /// Records the result of a rule: kept, or broken, with the observation.
    pub(crate) fn judge(&mut self, rule: Rule, broken: Option<String>) -> ScenarioResult {
        match broken {
            None => {
                self.report.keep(rule);
                Ok(())
            }
            Some(seen) => Err(Violation::new(rule, seen)),
        }
    }

    /// Steps that are run: each once, although it is in several lists.
    pub(crate) fn runs(&self) -> Vec<Runnable> {
        let mut runs: BTreeMap<(String, String), Runnable> = BTreeMap::new();
        for (kind, offers) in &self.offers {
            for offer in offers {
                let given = self.plan.runs.get(&offer.step).cloned();
                let planned = given.is_some();
                let needs_none = offer.argsinfo.values().all(|info| !info.required);
                let harmless = offer.destructive == Destructive::None && needs_none;
                if let Some(args) = given.or_else(|| harmless.then(Map::new)) {
                    let name = (offer.interface.clone(), offer.step.clone());
                    let run = Runnable { kind: *kind, offer: offer.clone(), args, planned };
                    runs.entry(name).or_insert(run);
                }
            }
        }
        runs.into_values().collect()
    }

    /// `hello`, as described.
    pub(crate) fn hello(&mut self, session: &mut Session) -> Result<HelloAnswer, Violation> {
        let params = HelloParams { protocol_versions: vec![VERSION], agent_version: "conformance".into() };
        let within = self.plan.deadlines.hello;
        let answer = session.call::<Hello>(&params, within, Rule::HelloDeadline, Rule::Hello)?;
        answer.map_err(|error| Violation::new(Rule::Hello, format!("hello was refused: {error}")))
    }

    /// `detect` on the machine of the plan, as described.
    pub(crate) fn detect(&mut self, session: &mut Session) -> Result<Detected, Violation> {
        let params = DetectParams { inventory: self.plan.inventory.clone() };
        let within = self.plan.deadlines.detect;
        let answer = session.call::<Detect>(&params, within, Rule::DetectDeadline, Rule::Detect)?;
        let detected =
            answer.map_err(|error| Violation::new(Rule::Detect, format!("detect was refused: {error}")))?;
        session.incoming.claims.clone_from(&detected.claims);
        Ok(detected)
    }

    /// `init`; false when the manager says that it cannot.
    pub(crate) fn init(&mut self, session: &mut Session) -> Result<bool, Violation> {
        let within = self.plan.deadlines.init;
        match session.call::<Init>(&Empty {}, within, Rule::InitDeadline, Rule::Init)? {
            Ok(_) => Ok(true),
            Err(error) if error.is(Code::Failed) => Ok(false),
            Err(error) => Err(Violation::new(Rule::Init, format!("init was refused: {error}"))),
        }
    }

    /// From the start to where steps can be run.
    pub(crate) fn get_ready(&mut self, session: &mut Session) -> ScenarioResult {
        self.hello(session)?;
        let detected = self.detect(session)?;
        if detected.support == Support::None {
            return Err(Violation::new(Rule::DetectRepeats, "it supported this machine a moment ago"));
        }
        match self.init(session)? {
            true => Ok(()),
            false => Err(Violation::new(Rule::Init, "it could be initialised a moment ago")),
        }
    }
}
