//! One life of a manager's process: calls out, answers in, and everything that it may send without being asked.
//!
//! ```text
//!   caller ──call──▶ socket ──▶ process                 a thread a process: starts it, reads it, kills it
//!     ▲                            │ socket, output        ├─ answer ──▶ the waiting caller
//!     └── answer, or why it broke ─┴──▶ [`reader`] ────────┼─ progress ─▶ the context of its call
//!                                                          ├─ log, output ─▶ kept, bounded
//!                                                          └─ read_device, fetch ─▶ services ─▶ answer
//! ```
//!
//! Whatever is against PROTOCOL.md breaks the link: the process is killed with all it started, and every call that
//! waits ends with the reason. Nothing here trusts a length, a rate or an id of the manager's.

use crate::reader::read_all;
use crate::services::Services;
use crate::shared::{Broken, Shared, seconds};
use hwm_sdk::StepContext;
use hwm_sdk::protocol::{Cancel, Cancelled, Message, Method, RpcError, decode};
use sandbox::{Grants, Program};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::{Arc, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a waiting caller looks whether it is cancelled.
const LOOK: Duration = Duration::from_millis(100);

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CallError {
    /// The manager says so.
    Rpc(RpcError),
    /// The link broke.
    Broken(Broken),
}

/// How long a call may take, and what goes with it.
pub(super) struct CallLimits<'a> {
    /// From now.
    pub(super) deadline: Duration,
    /// Progress goes there, and a cancel comes from there, if there is one.
    pub(super) context: Option<&'a StepContext>,
    /// Whether a cancel is sent to it, and killed when it does not stop within `grace`.
    pub(super) abortable: bool,
    /// From a cancel to the answer.
    pub(super) grace: Duration,
}

/// A running manager.
#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// Start the program. The notes say what of it is not bounded.
    pub(super) fn start(
        name: &str,
        program: Program,
        grants: Grants,
        services: Services,
    ) -> Result<(Self, Vec<String>), Broken> {
        let (started, hear) = mpsc::channel();
        let thread_name = name.to_owned();
        // The sandbox kills a program whose starting thread has ended, so this thread lives as long as it.
        let life = move || {
            let (confined, notes) = match sandbox::start(&program, &grants) {
                Ok(running) => running,
                Err(error) => return drop(started.send(Err(error.to_string()))),
            };
            match Shared::new(&thread_name, &confined.socket) {
                Ok(shared) => {
                    let shared = Arc::new(shared);
                    if started.send(Ok((shared.clone(), notes))).is_ok() {
                        read_all(confined, &shared, &services);
                    }
                }
                Err(error) => drop(started.send(Err(format!("its socket: {error}")))),
            }
        };
        let thread = std::thread::Builder::new().name(name.chars().take(15).collect()).spawn(life);
        let thread = thread.map_err(|error| Broken::new(format!("no thread for it: {error}")))?;
        match hear.recv() {
            Ok(Ok((shared, notes))) => Ok((Self { shared, thread: Some(thread) }, notes)),
            Ok(Err(reason)) => Err(Broken::new(reason)),
            Err(_) => Err(Broken::new("the thread that should have started it broke")),
        }
    }

    /// Why it is no more, if it is not.
    pub(super) fn broken(&self) -> Option<Broken> {
        self.shared.lock().broken.clone()
    }

    /// Ask and wait. A manager that does not answer in time, or does not stop when it is cancelled, is killed.
    pub(super) fn call<M: Method>(
        &self,
        params: &M::Params,
        call_limits: &CallLimits,
    ) -> Result<M::Answer, CallError> {
        let id = self.shared.register(call_limits.context).map_err(CallError::Broken)?;
        let line = Message::request::<M>(id, params).line();
        let line = line.map_err(|error| {
            self.shared.lock().calls.remove(&id);
            let message = format!("the parameters of {}: {error}", M::NAME);
            CallError::Rpc(RpcError::new(hwm_sdk::protocol::Code::Params, message))
        })?;
        self.shared.write(&line);
        let answer = self.await_answer(id, M::NAME, call_limits)?;
        decode(M::NAME, &answer).map_err(|error| {
            let broken = Broken::new(format!("its answer is not one: {}", error.message));
            self.shared.break_off(broken.clone());
            CallError::Broken(broken)
        })
    }

    fn await_answer(
        &self,
        id: u64,
        what: &str,
        call_limits: &CallLimits,
    ) -> Result<Box<RawValue>, CallError> {
        let begun = Instant::now();
        let mut cancelled: Option<Instant> = None;
        let mut state = self.shared.lock();
        loop {
            if let Some(answer) = state.calls.get_mut(&id).and_then(|call| call.answer.take()) {
                state.calls.remove(&id);
                return answer.map_err(CallError::Rpc);
            }
            if let Some(broken) = &state.broken {
                return Err(CallError::Broken(broken.clone()));
            }
            let late = match cancelled {
                Some(at) if at.elapsed() >= call_limits.grace => {
                    Some(format!("{what} did not stop within {} of its cancel", seconds(call_limits.grace)))
                }
                _ if begun.elapsed() >= call_limits.deadline => {
                    Some(format!("{what} was not answered within {}", seconds(call_limits.deadline)))
                }
                _ => None,
            };
            if let Some(reason) = late {
                drop(state);
                let broken = Broken { reason, hung: true };
                self.shared.break_off(broken.clone());
                return Err(CallError::Broken(broken));
            }
            let wanted = call_limits.abortable && call_limits.context.is_some_and(StepContext::is_cancelled);
            if wanted && cancelled.is_none() {
                cancelled = Some(Instant::now());
                drop(state);
                self.shared.notify::<Cancel>(&Cancelled { id });
                state = self.shared.lock();
                continue;
            }
            let left = call_limits.deadline.saturating_sub(begun.elapsed()).min(LOOK);
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What it wrote and logged since the last time.
    pub(super) fn take_log(&self) -> String {
        self.shared.lock().log.take()
    }

    /// What a call saved last.
    pub(super) fn take_checkpoint(&self) -> Option<Value> {
        self.shared.lock().checkpoint.take().map(|(_, data)| data)
    }

    /// End it now, for this reason, and wait until it is gone.
    pub(super) fn end(&mut self, reason: &str) {
        self.shared.break_off(Broken::new(reason));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(manager = self.shared.name, "the thread of a hardware manager panicked");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end("the agent has ended it");
    }
}
