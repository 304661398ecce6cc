//! The agent's calls, each on a thread of its own, so that each can be cancelled and a panic ends only its own call.

use super::peer::{CallHost, Peer};
use crate::protocol::{
    AskErase, Cancel, Cancelled, Code, Detect, Detected, Empty, Erase, EraseAnswer, Hello, HelloAnswer, Init,
    InventoryCall, Message, Method, Notification, PatchAnswer, RpcError, Run, RunAnswer, RunParams, Shutdown,
    StepOffer, Steps, StepsAnswer, VERSION, decode,
};
use crate::{HardwareManager, StepCall, StepContext, StepError, StepOutcome, checked_arguments};
use agent_protocol::inventory::Inventory;
use serde_json::Value;
use serde_json::value::RawValue;
use std::any::Any;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The calls in progress.
pub(super) struct Calls {
    manager: Arc<dyn HardwareManager>,
    peer: Arc<Peer>,
    inventory: Mutex<Arc<Inventory>>,
    running: Mutex<HashMap<u64, StepContext>>,
}

impl Calls {
    pub(super) fn new(manager: Arc<dyn HardwareManager>, peer: Arc<Peer>) -> Self {
        Self { manager, peer, inventory: Mutex::default(), running: Mutex::default() }
    }

    /// The agent calls. Breaks when it was the last call.
    pub(super) fn called(
        self: &Arc<Self>,
        id: u64,
        method: String,
        params: Box<RawValue>,
    ) -> ControlFlow<()> {
        if method == Shutdown::NAME {
            self.peer.send(&Message::answer::<Shutdown>(id, &Empty {}));
            return ControlFlow::Break(());
        }
        // Known before the thread is: a cancel may be the next line.
        let host = Arc::new(CallHost::new(self.peer.clone(), id));
        let checkpoint = match method.as_str() {
            Run::NAME => decode::<RunParams>(&method, &params).ok().and_then(|run| run.checkpoint),
            _ => None,
        };
        let context = StepContext::with_host(host.clone(), checkpoint);
        lock(&self.running).insert(id, context.clone());
        let calls = self.clone();
        let work = move || {
            let answer = catch_unwind(AssertUnwindSafe(|| calls.answer(id, &method, &params, &context)));
            let message = answer.unwrap_or_else(|panic| Err(panicked(&calls, &method, panic.as_ref())));
            host.flush();
            lock(&calls.running).remove(&id);
            calls.peer.send(&message.unwrap_or_else(|error| Message::Error { id: Some(id), error }));
        };
        if let Err(error) = std::thread::Builder::new().name("call".into()).spawn(work) {
            lock(&self.running).remove(&id);
            let error = RpcError::new(Code::Internal, format!("no thread for the call: {error}"));
            self.peer.send(&Message::Error { id: Some(id), error });
        }
        ControlFlow::Continue(())
    }

    /// A notification of the agent.
    pub(super) fn notified(&self, method: &str, params: &RawValue) {
        if method == Cancel::NAME
            && let Ok(Cancelled { id }) = decode(method, params)
            && let Some(context) = lock(&self.running).get(&id)
        {
            context.cancel();
        }
    }

    fn answer(
        &self,
        id: u64,
        method: &str,
        params: &RawValue,
        context: &StepContext,
    ) -> Result<Message, RpcError> {
        let manager = &self.manager;
        match method {
            Hello::NAME => {
                let hello: <Hello as Method>::Params = decode(method, params)?;
                if !hello.protocol_versions.contains(&VERSION) {
                    return Err(RpcError::version(&hello.protocol_versions));
                }
                let answer = HelloAnswer {
                    protocol_version: VERSION,
                    name: manager.name().to_owned(),
                    version: manager.version().to_owned(),
                    vendor: manager.vendor().to_owned(),
                };
                Ok(Message::answer::<Hello>(id, &answer))
            }
            Detect::NAME => {
                let detect: <Detect as Method>::Params = decode(method, params)?;
                let inventory = Arc::new(detect.inventory);
                *lock(&self.inventory) = inventory.clone();
                let answer = Detected {
                    support: manager.evaluate(&inventory),
                    claims: manager.claims(&inventory),
                    quirks: manager.quirks(&inventory),
                };
                Ok(Message::answer::<Detect>(id, &answer))
            }
            Init::NAME => {
                manager.init(context)?;
                Ok(Message::answer::<Init>(id, &Empty {}))
            }
            InventoryCall::NAME => {
                let patch = manager.inventory(context)?;
                Ok(Message::answer::<InventoryCall>(id, &PatchAnswer { patch }))
            }
            Steps::NAME => {
                let asked: <Steps as Method>::Params = decode(method, params)?;
                let inventory = self.inventory();
                let steps = manager.steps(asked.kind, &inventory).into_iter().map(StepOffer::from);
                let priorities = manager.priorities(asked.kind, &inventory);
                Ok(Message::answer::<Steps>(id, &StepsAnswer { steps: steps.collect(), priorities }))
            }
            Run::NAME => Ok(Message::answer::<Run>(id, &self.run(decode(method, params)?, context)?)),
            AskErase::NAME => {
                let asked: <AskErase as Method>::Params = decode(method, params)?;
                Ok(Message::answer::<AskErase>(id, &manager.erase_capabilities(&asked.disk)))
            }
            Erase::NAME => {
                let record = manager.erase(&decode(method, params)?, context)?;
                Ok(Message::answer::<Erase>(id, &EraseAnswer { record }))
            }
            unknown => Err(RpcError::new(Code::Method, format!("no such method: {unknown}"))),
        }
    }

    fn run(&self, run: RunParams, context: &StepContext) -> Result<RunAnswer, StepError> {
        let inventory = self.inventory();
        let offered = self.manager.steps(run.kind, &inventory);
        let is_it =
            |step: &&agent_protocol::step::Step| step.step == run.step && step.interface == run.interface;
        let unknown = || StepError::Unknown { manager: self.manager.name().into(), step: run.step.clone() };
        let mut step = offered.iter().find(is_it).ok_or_else(unknown)?.clone();
        let args = checked_arguments(Some(&Value::Object(run.args)), step.argsinfo.as_ref())?;
        step.argsinfo = None;
        step.args = Some(args.clone());
        let call = StepCall { kind: run.kind, step, args, node: run.node, inventory };
        Ok(match self.manager.run(&call, context)? {
            StepOutcome::Done(result) => RunAnswer { result, reboot_requested: false },
            StepOutcome::RebootRequested(result) => RunAnswer { result, reboot_requested: true },
        })
    }

    fn inventory(&self) -> Arc<Inventory> {
        lock(&self.inventory).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panicked(calls: &Calls, method: &str, panic: &(dyn Any + Send)) -> RpcError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    let name = calls.manager.name();
    RpcError::new(Code::Internal, format!("hardware manager {name} panicked in {method}: {text}"))
}
