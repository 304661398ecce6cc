//! An external manager as the agent knows it: [`HardwareManager`] on the one side, one life of a process after the
//! other ([`Link`]) on the other.
//!
//! ```text
//!   new ─▶ starting: start, hello, detect, init, inventory ─▶ ready ─▶ its process ends ─▶ starting, after a pause
//!             ├─ not this machine ─▶ unsupported                                 └─ too often ─▶ failed
//!             └─ hung, or says that it cannot ─▶ failed
//! ```
//!
//! - A process that crashed or sent nonsense is started again, [`Limits::restarts`] times in the life of the agent.
//!   One that hung while it got ready is not: what hung once hangs again, and each try costs its deadline.
//! - Whatever happens to a process during a step fails that step. No step is run again here: the controller knows
//!   whether it may be.
//! - A manager that was ready and has failed keeps its name, version and steps: a step that silently disappears would
//!   be cleaning that was silently left out. Running one says why it fails.

use crate::accept;
use crate::grants;
use crate::limits::Limits;
use crate::link::{CallError, CallLimits, Link};
use crate::records::Records;
use crate::services::Services;
use crate::shared::Broken;
use crate::source::Source;
use agent_protocol::inventory::{Disk, Inventory, ManagerReport};
use agent_protocol::schema;
use agent_protocol::step::Step;
use hwm_sdk::protocol::{
    AskErase, AskEraseParams, Claim, Code, Detect, DetectParams, Detected, Empty, Erase, EraseCapabilities,
    EraseMethod, EraseParams, FD, FD_VARIABLE, Hello, HelloParams, Init, InventoryCall, InventoryPatch,
    Method, Priority, ProviderRecord, Quirk, Run, RunAnswer, RunParams, Shutdown, StepOffer, Steps,
    StepsParams, VERSION, run_deadline,
};
use hwm_sdk::{HardwareManager, StepCall, StepContext, StepError, StepKind, StepOutcome, Support};
use sandbox::Program;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Largest patch of the inventory, in bytes of JSON.
const PATCH: usize = 256 << 10;
/// Most wishes for priorities of one kind; more are passed over.
const PRIORITIES: usize = 256;
/// Most of a step's log that is in the report of its failure, and that is in the agent's log, where it must not drive
/// out everything else; the last of it, in bytes.
const LOG_SHOWN: usize = 16 << 10;

/// An external hardware manager.
#[derive(Debug)]
pub struct External {
    source: Source,
    version: String,
    limits: Limits,
    /// Steps of the agent itself, which it cannot take.
    own: BTreeSet<String>,
    /// Directory for what it fetches.
    fetched: Option<PathBuf>,
    records: Records,
    claims: Arc<Mutex<Vec<Claim>>>,
    life: Mutex<Life>,
    /// By kind, what it offered when it was asked last.
    offers: Mutex<HashMap<StepKind, Offers>>,
    /// By kind and step, what an interrupted run saved last.
    checkpoints: Mutex<HashMap<(StepKind, String), Value>>,
}

#[derive(Debug, Clone, Default)]
struct Offers {
    steps: Vec<StepOffer>,
    priorities: Vec<Priority>,
}

#[derive(Debug)]
struct Life {
    standing: Standing,
    /// What it said of this machine when it was ready last.
    detected: Option<Detected>,
    patch: InventoryPatch,
    starts: u32,
    not_before: Option<Instant>,
}

#[derive(Debug)]
enum Standing {
    /// Never started, or to be started again.
    New,
    Ready(Arc<Link>),
    Unsupported,
    Failed(String),
    /// By its manifest alone.
    Refused(String),
}

/// How one start ended when the process is not ready.
enum Unready {
    Unsupported,
    /// It says itself that it cannot; trying again would not help.
    Cannot(String),
    Broken(Broken),
}

impl External {
    /// A manager that is not started yet. `own` are the steps of the agent itself.
    pub fn new(source: Source, own: BTreeSet<String>, fetched: Option<PathBuf>, limits: Limits) -> Self {
        let standing = accept::refusal(&source.manifest).map_or(Standing::New, Standing::Refused);
        let manager = Self {
            version: source.version(),
            source,
            limits,
            own,
            fetched,
            records: Records::default(),
            claims: Arc::default(),
            life: Mutex::new(Life {
                standing,
                detected: None,
                patch: InventoryPatch::default(),
                starts: 0,
                not_before: None,
            }),
            offers: Mutex::default(),
            checkpoints: Mutex::default(),
        };
        if let Standing::Refused(why) = &manager.life().standing {
            manager.note(&format!("it is not started: {why}"));
        }
        manager
    }

    /// Never start it, for this reason.
    pub(super) fn refuse(&self, why: &str) {
        self.note(&format!("it is not started: {why}"));
        self.life().standing = Standing::Refused(why.to_owned());
    }

    /// What operators see of it.
    pub fn report(&self) -> ManagerReport {
        let life = self.life();
        let state = match &life.standing {
            Standing::New => "starting",
            Standing::Ready(_) => "ready",
            Standing::Unsupported => "unsupported",
            Standing::Failed(_) => "failed",
            Standing::Refused(_) => "refused",
        };
        let patch = serde_json::to_value(&life.patch).ok().and_then(|patch| patch.as_object().cloned());
        ManagerReport {
            name: self.name().to_owned(),
            version: self.version.clone(),
            vendor: self.source.manifest.vendor.clone(),
            state: state.to_owned(),
            records: self.records.all(),
            patch: patch.unwrap_or_default(),
        }
    }

    /// Let it end by itself, or end it.
    pub(super) fn shut_down(&self) {
        let standing =
            std::mem::replace(&mut self.life().standing, Standing::Failed("the agent ends".into()));
        if let Standing::Ready(link) = standing {
            // Whatever it answers, it is ended.
            let _ = link.call::<Shutdown>(&Empty {}, &self.call_limits(self.limits.grace));
        }
    }

    fn note(&self, what: &str) {
        self.records.note(self.name(), what);
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call_limits(&self, deadline: Duration) -> CallLimits<'static> {
        CallLimits { deadline, context: None, abortable: false, grace: self.limits.grace }
    }

    fn run_limits<'a>(
        &self,
        estimate: Option<u64>,
        abortable: bool,
        context: &'a StepContext,
    ) -> CallLimits<'a> {
        CallLimits {
            deadline: run_deadline(estimate),
            context: Some(context),
            abortable,
            grace: self.limits.grace,
        }
    }

    /// Its running process, started if it has to be; or why there is none.
    fn link(&self, inventory: &Inventory) -> Result<Arc<Link>, String> {
        let mut life = self.life();
        loop {
            match &life.standing {
                Standing::Unsupported => return Err("it does not support this machine".into()),
                Standing::Failed(why) | Standing::Refused(why) => return Err(why.clone()),
                Standing::Ready(link) => match link.broken() {
                    None => return Ok(link.clone()),
                    Some(broken) => self.broke(&mut life, &broken),
                },
                Standing::New => {
                    if let Some(wait) = life.not_before.take() {
                        std::thread::sleep(wait.saturating_duration_since(Instant::now()));
                    }
                    life.starts += 1;
                    match self.start(inventory) {
                        Ok((link, detected, patch)) => {
                            (life.detected, life.patch) = (Some(detected), patch);
                            life.standing = Standing::Ready(Arc::new(link));
                        }
                        Err(Unready::Unsupported) => life.standing = Standing::Unsupported,
                        Err(Unready::Cannot(why)) => {
                            self.note(&why);
                            life.standing = Standing::Failed(why);
                        }
                        Err(Unready::Broken(broken)) if broken.hung => {
                            self.note(&broken.reason);
                            life.standing = Standing::Failed(broken.reason);
                        }
                        Err(Unready::Broken(broken)) => self.broke(&mut life, &broken),
                    }
                }
            }
        }
    }

    /// Its process is no more: again later, or never.
    fn broke(&self, life: &mut Life, broken: &Broken) {
        self.note(&broken.reason);
        if life.starts > self.limits.restarts {
            let why = format!("it has failed {} times, the last time: {}", life.starts, broken.reason);
            self.note(&why);
            life.standing = Standing::Failed(why);
            return;
        }
        let doublings = life.starts.saturating_sub(1).min(16);
        life.not_before = Some(Instant::now() + self.limits.backoff * 2_u32.pow(doublings));
        life.standing = Standing::New;
    }

    /// One start: until it is ready.
    fn start(&self, inventory: &Inventory) -> Result<(Link, Detected, InventoryPatch), Unready> {
        let manifest = &self.source.manifest;
        let program = Program {
            name: manifest.name.clone(),
            root: self.source.root.clone(),
            argv: manifest.entry.clone(),
            environment: vec![(FD_VARIABLE.to_owned(), FD.to_string())],
        };
        let services = Services {
            manager: manifest.name.clone(),
            granted: grants::disks(manifest, &inventory.disks).into_iter().cloned().collect(),
            claims: self.claims.clone(),
            artifacts: self.source.artifacts.clone(),
            fetched: self.fetched.clone(),
        };
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let granted = grants::grants(manifest, &inventory.disks, self.fetched.clone());
        let begun = Instant::now();
        let (link, notes) =
            Link::start(&manifest.name, program, granted, services).map_err(Unready::Broken)?;
        notes.iter().for_each(|note| tracing::info!(manager = self.name(), note, "confinement"));
        let cannot = |what: &str, error| match error {
            CallError::Rpc(error) => Unready::Cannot(format!("{what}: {error}")),
            CallError::Broken(broken) => Unready::Broken(broken),
        };
        let greeting = HelloParams {
            protocol_versions: vec![VERSION],
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let left = self.limits.hello.saturating_sub(begun.elapsed());
        let said =
            link.call::<Hello>(&greeting, &self.call_limits(left)).map_err(|error| cannot("hello", error))?;
        accept::hello(&said, manifest).map_err(Unready::Cannot)?;
        let bare = Inventory { anneal: None, ..inventory.clone() };
        let detected = link
            .call::<Detect>(&DetectParams { inventory: bare }, &self.call_limits(self.limits.detect))
            .map_err(|error| cannot("detect", error))?;
        if detected.support == Support::None {
            // Whatever it answers, it is ended.
            let _ = link.call::<Shutdown>(&Empty {}, &self.call_limits(self.limits.grace));
            return Err(Unready::Unsupported);
        }
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&detected.claims);
        link.call::<Init>(&Empty {}, &self.call_limits(self.limits.init))
            .map_err(|error| cannot("init", error))?;
        let patch = match link.call::<InventoryCall>(&Empty {}, &self.call_limits(self.limits.inventory)) {
            Ok(answer) => self.bounded(answer.patch),
            Err(CallError::Rpc(error)) => {
                self.note(&format!("inventory: {error}"));
                InventoryPatch::default()
            }
            Err(CallError::Broken(broken)) => return Err(Unready::Broken(broken)),
        };
        tracing::info!(manager = self.name(), version = self.version, "hardware manager is ready");
        Ok((link, detected, patch))
    }

    fn bounded(&self, patch: InventoryPatch) -> InventoryPatch {
        if serde_json::to_vec(&patch).is_ok_and(|json| json.len() <= PATCH) {
            return patch;
        }
        self.note(&format!("its part of the inventory was left out: it is larger than {PATCH} bytes"));
        InventoryPatch::default()
    }

    /// What it offers; what it offered last when it cannot be asked.
    fn offers(&self, kind: StepKind, inventory: &Inventory) -> Offers {
        while let Ok(link) = self.link(inventory) {
            let answer = match link.call::<Steps>(&StepsParams { kind }, &self.call_limits(self.limits.steps))
            {
                Ok(answer) => answer,
                Err(CallError::Rpc(error)) => {
                    self.note(&format!("steps: {error}"));
                    break;
                }
                // The link sees that it is broken when it is asked for next, at most as often as it may start.
                Err(CallError::Broken(_)) => continue,
            };
            let mut answer = answer;
            answer.priorities.truncate(PRIORITIES);
            let (steps, dropped) = accept::steps(answer.steps, &self.own);
            dropped.iter().for_each(|what| self.note(what));
            let offers = Offers { steps, priorities: answer.priorities };
            self.all_offers().insert(kind, offers.clone());
            return offers;
        }
        self.all_offers().get(&kind).cloned().unwrap_or_default()
    }

    fn all_offers(&self) -> MutexGuard<'_, HashMap<StepKind, Offers>> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_offered(
        &self,
        call: &StepCall,
        offer: &StepOffer,
        context: &StepContext,
    ) -> Result<StepOutcome, StepError> {
        let failed = |reason: String, report| StepError::Failed { reason, report };
        let who = format!("hardware manager {}@{}", self.name(), &self.source.digest[..12]);
        let link = self
            .link(&call.inventory)
            .map_err(|why| failed(format!("{who} cannot run {}: {why}", offer.step), Value::Null))?;
        let key = (call.kind, offer.step.clone());
        // Of an earlier process of the manager, or of an earlier boot of the machine.
        let checkpoint = self.checkpoints().remove(&key).or_else(|| context.checkpoint().cloned());
        let params = RunParams {
            kind: call.kind,
            interface: offer.interface.clone(),
            step: offer.step.clone(),
            args: call.args.clone(),
            node: call.node.clone(),
            checkpoint: checkpoint.filter(|_| offer.idempotent),
        };
        let call_limits = self.run_limits(offer.estimated_duration_s, offer.abortable, context);
        // Earlier output belongs to no step.
        self.log(&link.take_log(), "before its step");
        let answer = link.call::<Run>(&params, &call_limits);
        if answer.is_err()
            && let Some(saved) = link.take_checkpoint()
        {
            self.checkpoints().insert(key, saved);
        }
        let log = link.take_log();
        self.log(&log, &offer.step);
        match answer {
            Ok(answer) => {
                self.judged(offer, answer).map_err(|reason| failed(reason, with_log(Value::Null, &log)))
            }
            Err(CallError::Rpc(error)) => Err(match error.into_step_error(self.name(), &offer.step) {
                StepError::Failed { reason, report } => failed(reason, with_log(report, &log)),
                other => other,
            }),
            Err(CallError::Broken(broken)) => {
                self.note(&format!("step {}: {}", offer.step, broken.reason));
                Err(failed(
                    format!("{who} failed in {}: {}", offer.step, broken.reason),
                    with_log(Value::Null, &log),
                ))
            }
        }
    }

    /// Whether the result is what the manager said that it would be.
    fn judged(&self, offer: &StepOffer, answer: RunAnswer) -> Result<StepOutcome, String> {
        if let Some(expected) = &offer.result_schema {
            schema::check("result", expected, &answer.result).map_err(|problem| {
                let what = format!(
                    "the result of {}.{} is not as it declared: {problem}",
                    offer.interface, offer.step
                );
                self.note(&what);
                what
            })?;
        }
        Ok(if answer.reboot_requested {
            StepOutcome::RebootRequested(answer.result)
        } else {
            StepOutcome::Done(answer.result)
        })
    }

    fn log(&self, text: &str, what: &str) {
        if !text.is_empty() {
            tracing::info!(manager = self.name(), step = what, output = shown(text), "hardware manager");
        }
    }

    fn checkpoints(&self) -> MutexGuard<'_, HashMap<(StepKind, String), Value>> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its running process, if it is ready: nothing is started for a question about a disk.
    fn running(&self) -> Option<Arc<Link>> {
        match &self.life().standing {
            Standing::Ready(link) if link.broken().is_none() => Some(link.clone()),
            _ => None,
        }
    }

    /// Whether it may be asked to erase this disk: granted and claimed.
    fn cares_for(&self, disk: &Disk) -> bool {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.iter().any(|claim| claim.covers_disk(disk))
            && !grants::disks(&self.source.manifest, std::slice::from_ref(disk)).is_empty()
    }

    fn methods(&self, disk: &Disk) -> Result<(Arc<Link>, EraseCapabilities), String> {
        let link = self.running().filter(|_| self.cares_for(disk)).ok_or("it does not care for this disk")?;
        let params = AskEraseParams { disk: disk.clone() };
        match link.call::<AskErase>(&params, &self.call_limits(self.limits.erase_capabilities)) {
            Ok(answer) => Ok((link, answer)),
            Err(CallError::Rpc(error)) => Err(format!("{}: {error}", AskErase::NAME)),
            Err(CallError::Broken(broken)) => Err(broken.reason),
        }
    }
}

/// The report of a failed step, with the last of what its manager wrote.
fn with_log(report: Value, log: &str) -> Value {
    if log.is_empty() { report } else { json!({ "report": report, "log": shown(log) }) }
}

/// The last of a log.
fn shown(log: &str) -> &str {
    let mut from = log.len().saturating_sub(LOG_SHOWN);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    &log[from..]
}

impl HardwareManager for External {
    fn name(&self) -> &str {
        &self.source.manifest.name
    }

    /// `VERSION@DIGEST12`.
    fn version(&self) -> &str {
        &self.version
    }

    fn vendor(&self) -> &str {
        &self.source.manifest.vendor
    }

    fn evaluate(&self, inventory: &Inventory) -> Support {
        // Why not is in its records; a manager that was ready once keeps its place.
        let _ = self.link(inventory);
        self.life().detected.as_ref().map_or(Support::None, |detected| detected.support)
    }

    fn claims(&self, _inventory: &Inventory) -> Vec<Claim> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn quirks(&self, _inventory: &Inventory) -> Vec<Quirk> {
        self.life().detected.as_ref().map(|detected| detected.quirks.clone()).unwrap_or_default()
    }

    fn steps(&self, kind: StepKind, inventory: &Inventory) -> Vec<Step> {
        self.offers(kind, inventory).steps.into_iter().map(Step::from).collect()
    }

    /// As reported with the steps, which the agent asks for first.
    fn priorities(&self, kind: StepKind, _inventory: &Inventory) -> Vec<Priority> {
        self.all_offers().get(&kind).map(|offers| offers.priorities.clone()).unwrap_or_default()
    }

    fn run(&self, call: &StepCall, context: &StepContext) -> Result<StepOutcome, StepError> {
        let offers = self.all_offers().get(&call.kind).cloned().unwrap_or_default();
        let Some(offer) = offers.steps.iter().find(|offer| offer.step == call.step.step) else {
            return Err(StepError::Unknown { manager: self.name().into(), step: call.step.step.clone() });
        };
        self.run_offered(call, offer, context)
    }

    fn erase_capabilities(&self, disk: &Disk) -> EraseCapabilities {
        self.methods(disk).map(|(_, answer)| answer).unwrap_or_default()
    }

    fn erase(&self, erase: &EraseParams, context: &StepContext) -> Result<ProviderRecord, StepError> {
        let declined = |reason| StepError::Declined { reason };
        let (link, capabilities) = self.methods(&erase.disk).map_err(declined)?;
        let known = |method: &EraseMethod| method.method == erase.method;
        let Some(method) = capabilities.methods.unwrap_or_default().into_iter().find(known) else {
            return Err(declined(format!("it has no method {:?} for {}", erase.method, erase.disk.name)));
        };
        let call_limits = self.run_limits(method.estimated_duration_s, method.abortable, context);
        match link.call::<Erase>(erase, &call_limits) {
            Ok(answer) => Ok(answer.record),
            // It has no such method, after all: nothing was written.
            Err(CallError::Rpc(error)) if error.is(Code::Method) => Err(declined(error.to_string())),
            Err(CallError::Rpc(error)) => Err(error.into_step_error(self.name(), "erase")),
            Err(CallError::Broken(broken)) => {
                self.note(&format!("erase of {}: {}", erase.disk.name, broken.reason));
                Err(StepError::Failed { reason: broken.reason, report: Value::Null })
            }
        }
    }
}
