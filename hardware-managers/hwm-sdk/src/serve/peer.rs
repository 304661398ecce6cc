//! The agent as the manager sees it: messages to it, and questions it answers.

use crate::protocol::{
    Artifact, Checkpoint, CheckpointSaved, Claim, Fetch, FetchParams, Level, Log, Logged, Message, Method,
    ProgressReport, Progressed, ReadDevice, ReadDeviceParams, RpcError, decode,
};
use crate::{Host, StepError};
use agent_protocol::progress::Progress;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::io::Write;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shortest time between two progress notifications; progress in between is sent later, or replaced by newer progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

type Reply = Result<Box<RawValue>, RpcError>;

/// The agent.
pub(super) struct Peer {
    output: Mutex<Box<dyn Write + Send>>,
    asked: Mutex<Asked>,
}

/// Questions to the agent that it has not answered.
#[derive(Default)]
struct Asked {
    last: u64,
    open: HashMap<u64, Sender<Reply>>,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Peer {
    pub(super) fn new(output: impl Write + Send + 'static) -> Self {
        Self { output: Mutex::new(Box::new(output)), asked: Mutex::default() }
    }

    /// Sends a message. An answer that is too long for a line becomes an error; anything else is left out.
    pub(super) fn send(&self, message: &Message) {
        let line = message.line().or_else(|too_long| match message {
            Message::Answer { id, .. } => {
                let error = RpcError::new(crate::protocol::Code::Internal, format!("the answer: {too_long}"));
                Message::Error { id: Some(*id), error }.line()
            }
            _ => Err(too_long),
        });
        // An agent that is gone is noticed by the reader.
        let _ = line.map(|line| lock(&self.output).write_all(&line));
    }

    /// Asks, and waits for the answer.
    fn ask<M: Method>(&self, params: &M::Params) -> Result<M::Answer, RpcError> {
        let (sender, answer) = channel();
        let id = {
            let mut asked = lock(&self.asked);
            asked.last += 1;
            let id = asked.last;
            asked.open.insert(id, sender);
            id
        };
        self.send(&Message::request::<M>(id, params));
        let gone = || RpcError::new(crate::protocol::Code::Unavailable, "the agent is gone");
        let raw = answer.recv().unwrap_or_else(|_| Err(gone()))?;
        decode(M::NAME, &raw)
    }

    /// The agent answered.
    pub(super) fn answered(&self, id: u64, reply: Reply) {
        if let Some(sender) = lock(&self.asked).open.remove(&id) {
            let _ = sender.send(reply);
        }
    }
}

impl Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Peer")
    }
}

/// The agent on behalf of one call.
#[derive(Debug)]
pub(super) struct CallHost {
    peer: Arc<Peer>,
    id: u64,
    progress: Mutex<PacedProgress>,
}

#[derive(Debug, Default)]
struct PacedProgress {
    at: Option<Instant>,
    waiting: Option<Progress>,
}

impl CallHost {
    pub(super) fn new(peer: Arc<Peer>, id: u64) -> Self {
        Self { peer, id, progress: Mutex::default() }
    }

    /// Sends the progress that was held back.
    pub(super) fn flush(&self) {
        if let Some(progress) = lock(&self.progress).waiting.take() {
            self.send(progress);
        }
    }

    fn send(&self, progress: Progress) {
        let report = ProgressReport { id: self.id, progress };
        self.peer.send(&Message::notification::<Progressed>(&report));
    }
}

fn failed(what: &str, error: RpcError) -> StepError {
    StepError::Failed { reason: format!("{what}: {error}"), report: Value::Null }
}

impl Host for CallHost {
    fn progress(&self, progress: &Progress) {
        let mut paced = lock(&self.progress);
        if paced.at.is_some_and(|at| at.elapsed() < PROGRESS_INTERVAL) {
            paced.waiting = Some(progress.clone());
            return;
        }
        *paced = PacedProgress { at: Some(Instant::now()), waiting: None };
        self.send(progress.clone());
    }

    fn log(&self, level: Level, text: &str) {
        self.peer.send(&Message::notification::<Log>(&Logged { level, text: text.to_owned() }));
    }

    fn checkpoint(&self, data: &Value) {
        let saved = CheckpointSaved { id: self.id, data: data.clone() };
        self.peer.send(&Message::notification::<Checkpoint>(&saved));
    }

    fn read_device(&self, claim: &Claim, offset: u64, length: u32) -> Result<Vec<u8>, StepError> {
        let what = claim.id.clone().unwrap_or_else(|| "a device".to_owned());
        let params = ReadDeviceParams { claim: claim.clone(), offset, length };
        let read = self.peer.ask::<ReadDevice>(&params).map_err(|error| failed(&what, error))?;
        STANDARD.decode(read.data).map_err(|error| {
            failed(&what, RpcError::new(crate::protocol::Code::Params, format!("not Base64: {error}")))
        })
    }

    fn fetch(&self, digest: &str) -> Result<Artifact, StepError> {
        let params = FetchParams { digest: digest.to_owned() };
        self.peer.ask::<Fetch>(&params).map_err(|error| failed(digest, error))
    }
}
