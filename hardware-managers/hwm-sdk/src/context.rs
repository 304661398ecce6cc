//! What running work shares with the agent.

use crate::StepError;
use crate::protocol::{Artifact, Claim, Level};
use agent_protocol::progress::Progress;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The agent, as running work can report to it and ask it.
pub trait Host: Debug + Send + Sync {
    /// The progress has changed. Called often; must be quick.
    fn progress(&self, progress: &Progress);

    /// A line for the log.
    fn log(&self, level: Level, text: &str);

    /// Keep this for the case that the step is interrupted and started again.
    fn checkpoint(&self, data: &Value);

    /// Bytes of a disk that the manager claimed.
    ///
    /// # Errors
    /// When it is not granted, or cannot be read.
    fn read_device(&self, claim: &Claim, offset: u64, length: u32) -> Result<Vec<u8>, StepError>;

    /// A file that the controller has, by `sha256:` and its digest.
    ///
    /// # Errors
    /// When it is not there.
    fn fetch(&self, digest: &str) -> Result<Artifact, StepError>;
}

/// What a running step shares with the agent: progress out, cancellation in.
#[derive(Debug, Clone, Default)]
pub struct StepContext {
    progress: Arc<Mutex<Progress>>,
    cancelled: Arc<AtomicBool>,
    checkpoint: Option<Arc<Value>>,
    saved: Arc<Mutex<Option<Value>>>,
    host: Option<Arc<dyn Host>>,
}

impl StepContext {
    /// A fresh context with empty progress and without an agent.
    pub fn new() -> Self {
        Self::default()
    }

    /// A fresh context that reports to and asks `host`; `checkpoint` is what the step saved before it was
    /// interrupted.
    pub fn with_host(host: Arc<dyn Host>, checkpoint: Option<Value>) -> Self {
        Self { host: Some(host), checkpoint: checkpoint.map(Arc::new), ..Self::default() }
    }

    /// The same context, for a step that goes on from what it saved before it was interrupted.
    pub fn resuming(&self, checkpoint: Option<Value>) -> Self {
        Self { checkpoint: checkpoint.map(Arc::new), ..self.clone() }
    }

    /// Replace the progress that heartbeats and command status show.
    pub fn report(&self, progress: Progress) {
        self.update(|present| *present = progress);
    }

    /// Change the progress in place.
    pub fn update(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        change(&mut progress);
        if let Some(host) = &self.host {
            host.progress(&progress);
        }
    }

    /// The progress as it stands.
    pub fn progress(&self) -> Progress {
        self.progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Ask the step to stop at the next safe point.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
    }

    /// Whether the step has been asked to stop. Long work checks this at least once a second.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// A line for the log of the step. Dropped in a context without a host.
    pub fn log(&self, level: Level, text: &str) {
        if let Some(host) = &self.host {
            host.log(level, text);
        }
    }

    /// Keep this, at most 64 KiB as JSON, for the case that the step is interrupted and started again.
    pub fn save_checkpoint(&self, data: &Value) {
        *self.saved.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(data.clone());
        if let Some(host) = &self.host {
            host.checkpoint(data);
        }
    }

    /// What the step has saved last, for the caller to keep.
    pub fn saved(&self) -> Option<Value> {
        self.saved.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// What the step saved last before it was interrupted.
    pub fn checkpoint(&self) -> Option<&Value> {
        self.checkpoint.as_deref()
    }

    /// Bytes of a disk that the manager claimed, at most [`crate::protocol::READ_MAX`] of them; fewer at its end.
    ///
    /// # Errors
    /// When it is not granted, or cannot be read.
    pub fn read_device(&self, claim: &Claim, offset: u64, length: u32) -> Result<Vec<u8>, StepError> {
        self.host()?.read_device(claim, offset, length)
    }

    /// A file that the controller has, by `sha256:` and its digest.
    ///
    /// # Errors
    /// When it is not there.
    pub fn fetch(&self, digest: &str) -> Result<Artifact, StepError> {
        self.host()?.fetch(digest)
    }

    fn host(&self) -> Result<&Arc<dyn Host>, StepError> {
        let reason = || "there is no agent to ask for devices and files".to_owned();
        self.host.as_ref().ok_or_else(|| StepError::Failed { reason: reason(), report: Value::Null })
    }
}
