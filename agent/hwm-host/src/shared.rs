//! What a caller and the thread of a manager's process share: the calls that wait, and the socket.

use hwm_sdk::StepContext;
use hwm_sdk::protocol::{Message, Notification, RpcError};
use sandbox::OutputBuffer;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Output and log lines kept between two [`Link::take_log`]s, in bytes.
pub(super) const LOG_KEPT: usize = 256 << 10;
/// A manager that does not read its socket for so long is broken.
const WRITING: Duration = Duration::from_secs(5);

/// Why a link is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    /// For operators.
    pub(super) reason: String,
    /// It did not answer in time, and would not the next time.
    pub(super) hung: bool,
}

impl Broken {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hung: false }
    }
}

/// A call that waits.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) context: Option<StepContext>,
    pub(super) answer: Option<Result<Box<RawValue>, RpcError>>,
}

/// What caller and thread share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    writer: Mutex<UnixStream>,
}

#[derive(Debug)]
pub(super) struct State {
    next: u64,
    pub(super) calls: HashMap<u64, Pending>,
    pub(super) log: OutputBuffer,
    /// Call and what it saved last.
    pub(super) checkpoint: Option<(u64, Value)>,
    pub(super) broken: Option<Broken>,
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

impl Shared {
    pub(super) fn new(name: &str, socket: &UnixStream) -> std::io::Result<Self> {
        let writer = socket.try_clone()?;
        writer.set_write_timeout(Some(WRITING))?;
        let state = State {
            next: 1,
            calls: HashMap::new(),
            log: OutputBuffer::new(LOG_KEPT),
            checkpoint: None,
            broken: None,
        };
        Ok(Self {
            name: name.to_owned(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            writer: Mutex::new(writer),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(&self, context: Option<&StepContext>) -> Result<u64, Broken> {
        let mut state = self.lock();
        if let Some(broken) = &state.broken {
            return Err(broken.clone());
        }
        let id = state.next;
        state.next += 1;
        state.calls.insert(id, Pending { context: context.cloned(), answer: None });
        Ok(id)
    }

    /// An answer has come, or the link broke.
    pub(super) fn ring(&self) {
        self.changed.notify_all();
    }

    /// Send a line; a manager that does not take it is broken.
    pub(super) fn write(&self, line: &[u8]) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writer.write_all(line) {
            drop(writer);
            self.break_off(match error.kind() {
                // It has closed its end: the reading thread sees that as well, and reports how the program ended.
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return,
                ErrorKind::WouldBlock => Broken {
                    reason: format!("it did not read its socket for {}", seconds(WRITING)),
                    hung: true,
                },
                _ => Broken::new(format!("its socket: {error}")),
            });
        }
    }

    pub(super) fn notify<N: Notification>(&self, params: &N::Params) {
        if let Ok(line) = Message::notification::<N>(params).line() {
            self.write(&line);
        }
    }

    /// The link is no more: the first reason counts. The thread sees the end of the socket and kills the process.
    pub(super) fn break_off(&self, broken: Broken) {
        self.lock().broken.get_or_insert(broken);
        self.ring();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // It may be shut down already.
        let _ = writer.shutdown(Shutdown::Both);
    }
}
