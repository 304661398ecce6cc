//! The thread of a manager's process: reads what it sends, and kills it at the end.

use crate::services::Services;
use crate::shared::{Broken, Shared};
use hwm_sdk::protocol::{
    Checkpoint, CheckpointSaved, Code, Level, LineBuffer, Log, Logged, Message, Notification, ProgressReport,
    Progressed, RpcError, TooLong, decode,
};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use sandbox::Confined;
use serde_json::value::RawValue;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

/// What a manager may send in a second. Far above what the protocol asks for, far below what costs the agent.
const MESSAGES_A_SECOND: u32 = 2_000;
const BYTES_A_SECOND: usize = 16 << 20;
/// Log lines of a second that reach the agent's own log; all are kept for the step.
const LOGGED_A_SECOND: u32 = 20;
/// Longest log line (PROTOCOL.md) and longest message of an error, in bytes.
const LOG_LINE: usize = 4 << 10;
/// Longest checkpoint, in bytes of JSON (PROTOCOL.md).
const CHECKPOINT: usize = 64 << 10;
/// Most disks in a report of progress, and longest text, in characters.
const DISKS: usize = 1_024;
const PROGRESS_TEXT: usize = 256;
/// Output is read in pieces of this size, one after the other, with a pause after so many in a row: a flood of
/// output then costs a few hundredths of a processor.
const PIECE: usize = 16 << 10;
const PIECES: u32 = 64;
const PAUSE_MS: u16 = 5;
/// How long a program that closed its socket may take to say how it ended.
const ENDING: Duration = Duration::from_millis(500);

/// Read until the link breaks, then kill.
pub(super) fn read_all(mut confined: Confined, shared: &Shared, services: &Services) {
    let broken = Reader { shared, services, budget: Budget::default() }.listen(&mut confined);
    shared.break_off(broken);
    if confined.kill().is_none() {
        tracing::error!(manager = shared.name, "a hardware manager was killed and hangs in the kernel");
    }
}

struct Reader<'a> {
    shared: &'a Shared,
    services: &'a Services,
    budget: Budget,
}

/// What was sent in this second.
#[derive(Debug)]
struct Budget {
    since: Instant,
    messages: u32,
    bytes: usize,
    logged: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self { since: Instant::now(), messages: 0, bytes: 0, logged: 0 }
    }
}

impl Budget {
    /// Count; false when it is too much.
    fn take(&mut self, messages: u32, bytes: usize) -> bool {
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Self::default();
        }
        self.messages += messages;
        self.bytes += bytes;
        self.messages <= MESSAGES_A_SECOND && self.bytes <= BYTES_A_SECOND
    }
}

impl Reader<'_> {
    /// Until it breaks.
    fn listen(&mut self, confined: &mut Confined) -> Broken {
        let mut lines = LineBuffer::new();
        let mut output_open = true;
        let mut in_a_row = 0;
        loop {
            let resting = in_a_row >= PIECES;
            let mut watched = vec![PollFd::new(confined.socket.as_fd(), PollFlags::POLLIN)];
            if output_open && !resting {
                watched.push(PollFd::new(confined.output.as_fd(), PollFlags::POLLIN));
            }
            let patience = if resting { PollTimeout::from(PAUSE_MS) } else { PollTimeout::NONE };
            match poll(&mut watched, patience) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Broken::new(format!("waiting for it: {error}")),
            }
            let ready = |at: usize| watched.get(at).is_some_and(|fd| fd.any().unwrap_or(false));
            let (socket, output) = (ready(0), ready(1));
            in_a_row = if output { in_a_row + 1 } else { 0 };
            if output {
                output_open = self.read_output(confined);
            }
            if socket && let Err(broken) = self.read_socket(confined, &mut lines) {
                // Its last output may say why.
                while output_open && self.read_output_now(confined) {}
                return broken;
            }
        }
    }

    fn read_output_now(&self, confined: &mut Confined) -> bool {
        let mut watched = [PollFd::new(confined.output.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut watched, PollTimeout::ZERO), Ok(1..)) && self.read_output(confined)
    }

    /// False at its end.
    fn read_output(&self, confined: &mut Confined) -> bool {
        let mut piece = [0; PIECE];
        match confined.output.read(&mut piece) {
            Ok(0) => false,
            Ok(length) => {
                self.shared.lock().log.push(&piece[..length]);
                true
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn read_socket(&mut self, confined: &mut Confined, lines: &mut LineBuffer) -> Result<(), Broken> {
        let length = match recv(confined.socket.as_raw_fd(), lines.room(), MsgFlags::MSG_DONTWAIT) {
            Ok(0) | Err(Errno::ECONNRESET) => return Err(gone(confined)),
            Ok(length) => length,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(()),
            Err(error) => return Err(Broken::new(format!("its socket: {error}"))),
        };
        lines.filled(length);
        let too_long = |error: TooLong| Broken::new(error.to_string());
        if !self.budget.take(0, length) {
            return Err(flood());
        }
        while let Some(line) = lines.line().map_err(too_long)? {
            if !self.budget.take(1, 0) {
                return Err(flood());
            }
            let message = Message::read(line)
                .map_err(|wrong| Broken::new(format!("it sent a line that is {wrong}")))?;
            self.hear(message)?;
        }
        Ok(())
    }

    fn hear(&mut self, message: Message) -> Result<(), Broken> {
        match message {
            Message::Answer { id, result } => self.answered(id, Ok(result)),
            Message::Error { id: Some(id), mut error } => {
                error.message = shorten(&error.message, LOG_LINE);
                self.answered(id, Err(error))
            }
            Message::Error { id: None, error } => Err(Broken::new(format!(
                "it could not read what it was sent: {}",
                shorten(&error.message, 200)
            ))),
            Message::Notification { method, params } => self.notified(&method, &params),
            Message::Request { id, method, params } => {
                let answer = self.services.answer(id, &method, &params);
                let line = answer.line().or_else(|error| {
                    Message::Error { id: Some(id), error: RpcError::new(Code::Internal, error.to_string()) }
                        .line()
                });
                self.shared.write(&line.unwrap_or_default());
                Ok(())
            }
        }
    }

    fn answered(&self, id: u64, answer: Result<Box<RawValue>, RpcError>) -> Result<(), Broken> {
        let mut state = self.shared.lock();
        match state.calls.get_mut(&id) {
            Some(call) if call.answer.is_none() => {
                call.answer = Some(answer);
                drop(state);
                self.shared.ring();
                Ok(())
            }
            _ => Err(Broken::new(format!("it answered call {id}, which it was not asked"))),
        }
    }

    fn notified(&mut self, method: &str, params: &RawValue) -> Result<(), Broken> {
        let wrong = |error: RpcError| Broken::new(format!("its notification is wrong: {}", error.message));
        match method {
            Progressed::NAME => self.progressed(decode(method, params).map_err(wrong)?),
            Log::NAME => {
                self.logged(&decode(method, params).map_err(wrong)?);
                Ok(())
            }
            Checkpoint::NAME => {
                let saved: CheckpointSaved = decode(method, params).map_err(wrong)?;
                if params.get().len() > CHECKPOINT {
                    return Err(Broken::new(format!("its checkpoint is larger than {CHECKPOINT} bytes")));
                }
                let mut state = self.shared.lock();
                if let Some(call) = state.calls.get(&saved.id) {
                    if let Some(context) = &call.context {
                        context.save_checkpoint(&saved.data);
                    }
                    state.checkpoint = Some((saved.id, saved.data));
                }
                Ok(())
            }
            // Of a later version.
            _ => Ok(()),
        }
    }

    fn progressed(&self, mut report: ProgressReport) -> Result<(), Broken> {
        let progress = &mut report.progress;
        if progress.percent.is_some_and(|percent| percent > 100) || progress.disks.len() > DISKS {
            return Err(Broken::new("its progress is above 100 percent, or of too many disks"));
        }
        progress.text = progress.text.take().map(|text| shorten(&text, PROGRESS_TEXT));
        let context = self.shared.lock().calls.get(&report.id).and_then(|call| call.context.clone());
        // Of a call that has ended: it came too late, which is no fault.
        if let Some(context) = context {
            context.report(report.progress);
        }
        Ok(())
    }

    fn logged(&mut self, line: &Logged) {
        let text = shorten(&line.text, LOG_LINE);
        self.shared.lock().log.push(format!("[{}] {text}\n", word(line.level)).as_bytes());
        self.budget.logged += 1;
        if self.budget.logged <= LOGGED_A_SECOND {
            tracing::info!(manager = self.shared.name, level = word(line.level), text, "hardware manager");
        }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
    }
}

fn flood() -> Broken {
    Broken::new(format!(
        "it floods its socket: more than {MESSAGES_A_SECOND} messages or {BYTES_A_SECOND} bytes a second"
    ))
}

fn gone(confined: &mut Confined) -> Broken {
    match confined.wait(ENDING) {
        Some(ended) => Broken::new(format!("it {ended}")),
        None => Broken::new("it closed its socket"),
    }
}

/// At most so many bytes, cut between characters.
fn shorten(text: &str, bytes: usize) -> String {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
