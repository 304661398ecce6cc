//! The messages of a manager so far, and whether the next one is allowed.

use crate::{Rule, Violation};
use agent_protocol::progress::{Phase, Progress};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hwm_sdk::protocol::{
    Checkpoint, CheckpointSaved, Claim, ClaimKind, Code, DeviceData, Fetch, FetchParams, Init, Log, Logged,
    Message, Method, Notification, ProgressReport, Progressed, READ_MAX, ReadDevice, ReadDeviceParams,
    RpcError, Run, decode,
};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};

/// Most bytes of a checkpoint.
const CHECKPOINT_MAX: usize = 64 << 10;
/// Bytes of every simulated disk; all are zero.
const DISK_SIZE: u64 = 1 << 30;

/// The result of a call, or the manager's error.
pub(crate) type Answer<T> = Result<T, RpcError>;

/// The messages of one session.
#[derive(Default)]
pub(crate) struct Incoming {
    open: HashMap<u64, Open>,
    answers: HashMap<u64, Answer<Box<RawValue>>>,
    refusals_expected: u32,
    refusal: Option<RpcError>,
    initialised: bool,
    signs: bool,
    /// The last checkpoint, with the id of the call that saved it.
    pub(crate) checkpoint: Option<(u64, Value)>,
    /// The manager sent a notification.
    pub(crate) notified: bool,
    /// The manager reported progress.
    pub(crate) progressed: bool,
    /// The manager sent a request to the agent.
    pub(crate) served: bool,
    /// Devices that were claimed in `detect`.
    pub(crate) claims: Vec<Claim>,
    /// Disks of the machine.
    pub(crate) disks: Vec<agent_protocol::inventory::Disk>,
}

/// A call that is not answered yet.
struct Open {
    method: String,
    percent: Option<u8>,
    disks: BTreeMap<String, (Phase, u64)>,
}

impl Incoming {
    pub(crate) fn called(&mut self, id: u64, method: &str) {
        self.initialised |= method == Init::NAME;
        self.signs = false;
        self.open.insert(id, Open { method: method.to_owned(), percent: None, disks: BTreeMap::new() });
    }

    pub(crate) fn take_answer(&mut self, id: u64) -> Option<Answer<Box<RawValue>>> {
        self.answers.remove(&id)
    }

    pub(crate) fn is_answered(&self, id: u64) -> bool {
        self.answers.contains_key(&id)
    }

    pub(crate) fn expect_refusal(&mut self) {
        self.refusals_expected += 1;
    }

    pub(crate) fn take_refusal(&mut self) -> Option<RpcError> {
        self.refusal.take()
    }

    /// Whether the manager sent anything but an answer since the last call.
    pub(crate) fn has_sign(&self) -> bool {
        self.signs
    }

    /// Judges a line of the manager. Returns the reply of the agent, if there is one.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<Option<Message>, Violation> {
        let message = Message::read(line).map_err(|malformed| {
            let start: String = String::from_utf8_lossy(line).chars().take(80).collect();
            Violation::new(Rule::OnlyMessages, format!("{malformed}: {start:?}"))
        })?;
        match message {
            Message::Answer { id, result } => self.answered(id, Ok(result)).map(|()| None),
            Message::Error { id: Some(id), error } => self.answered(id, Err(error)).map(|()| None),
            Message::Error { id: None, error } => {
                let seen = || format!("an error without an id, and no line was unreadable: {error}");
                self.refusals_expected = self
                    .refusals_expected
                    .checked_sub(1)
                    .ok_or_else(|| Violation::new(Rule::AnswersOnce, seen()))?;
                self.refusal = Some(error);
                Ok(None)
            }
            Message::Notification { method, params } => {
                self.signs = true;
                self.notified = true;
                self.notification(&method, &params).map(|()| None)
            }
            Message::Request { id, method, params } => {
                self.signs = true;
                self.served = true;
                self.asked(id, &method, &params).map(Some)
            }
        }
    }

    fn answered(&mut self, id: u64, answer: Answer<Box<RawValue>>) -> Result<(), Violation> {
        if self.open.remove(&id).is_none() {
            let seen = format!("an answer to {id}, which no unanswered call has");
            return Err(Violation::new(Rule::AnswersOnce, seen));
        }
        self.answers.insert(id, answer);
        Ok(())
    }

    fn notification(&mut self, method: &str, params: &RawValue) -> Result<(), Violation> {
        let bad = |error: RpcError| Violation::new(Rule::Notifications, error.message);
        match method {
            Progressed::NAME => {
                let report: ProgressReport = decode(method, params).map_err(bad)?;
                self.progressed = true;
                let Some(open) = self.open.get_mut(&report.id) else {
                    let seen = format!("progress of {}, which no unanswered call has", report.id);
                    return Err(Violation::new(Rule::Progress, seen));
                };
                open.progressed(&report.progress).map_err(|seen| Violation::new(Rule::Progress, seen))
            }
            Log::NAME => decode::<Logged>(method, params).map(drop).map_err(bad),
            Checkpoint::NAME => {
                let saved: CheckpointSaved = decode(method, params).map_err(bad)?;
                let wrong = |seen: String| Err(Violation::new(Rule::Checkpoint, seen));
                if self.open.get(&saved.id).is_none_or(|open| open.method != Run::NAME) {
                    return wrong(format!("a checkpoint of {}, which no unanswered run has", saved.id));
                }
                let size = saved.data.to_string().len();
                if size > CHECKPOINT_MAX {
                    return wrong(format!("a checkpoint of {size} bytes"));
                }
                self.checkpoint = Some((saved.id, saved.data));
                Ok(())
            }
            // A later version's.
            _ => Ok(()),
        }
    }

    /// A host service, with simulated disks and no artifacts.
    fn asked(&mut self, id: u64, method: &str, params: &RawValue) -> Result<Message, Violation> {
        let bad = |error: RpcError| Violation::new(Rule::Services, error.message);
        let wrong = |seen: String| Err(Violation::new(Rule::Services, seen));
        if !self.initialised {
            return wrong(format!("{method} was asked before init"));
        }
        match method {
            ReadDevice::NAME => {
                let read: ReadDeviceParams = decode(method, params).map_err(bad)?;
                let Some(name) = read.claim.id.clone().filter(|_| read.claim.kind == ClaimKind::Block) else {
                    return wrong(format!("read_device of a claim that names no disk: {:?}", read.claim));
                };
                let disk = self.disks.iter().find(|disk| disk.name == name);
                let claimed = |disk: &_| self.claims.iter().any(|claim: &Claim| claim.covers_disk(disk));
                if !disk.is_some_and(claimed) {
                    return wrong(format!("read_device of {name}, which was not claimed"));
                }
                if !(1..=READ_MAX).contains(&read.length) {
                    return wrong(format!("read_device of {} bytes", read.length));
                }
                let there = DISK_SIZE.saturating_sub(read.offset).min(read.length.into());
                let data = STANDARD.encode(vec![0; usize::try_from(there).unwrap_or_default()]);
                Ok(Message::answer::<ReadDevice>(id, &DeviceData { data }))
            }
            Fetch::NAME => {
                let fetch: FetchParams = decode(method, params).map_err(bad)?;
                let hex = fetch.digest.strip_prefix("sha256:").unwrap_or_default();
                if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    return wrong(format!("fetch of {:?}, which is no digest", fetch.digest));
                }
                let error =
                    RpcError::new(Code::Unavailable, format!("there is no artifact {}", fetch.digest));
                Ok(Message::Error { id: Some(id), error })
            }
            unknown => wrong(format!("the agent has no method {unknown}")),
        }
    }
}

impl Open {
    fn progressed(&mut self, progress: &Progress) -> Result<(), String> {
        if let Some(percent) = progress.percent {
            if percent > 100 {
                return Err(format!("{percent} percent"));
            }
            if self.percent.is_some_and(|before| percent < before) {
                return Err(format!("{percent} percent after {}", self.percent.unwrap_or_default()));
            }
            self.percent = Some(percent);
        }
        for disk in &progress.disks {
            let rank = |phase: Phase| match phase {
                Phase::Pending => 0,
                Phase::Sampling => 1,
                Phase::Erasing | Phase::Writing => 2,
                Phase::Verifying => 3,
                Phase::Done => 4,
            };
            let now = (disk.phase, disk.bytes_done);
            if let Some(before) = self.disks.insert(disk.device.clone(), now)
                && (rank(now.0), now.1) < (rank(before.0), if now.0 == before.0 { before.1 } else { 0 })
            {
                return Err(format!("{}: {now:?} after {before:?}", disk.device));
            }
        }
        Ok(())
    }
}
