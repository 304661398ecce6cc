//! One run of a manager: sends what an agent sends, and checks the replies more strictly than an agent does.

use crate::incoming::{Answer, Incoming};
use crate::process::Process;
use crate::{Plan, Rule, Violation};
use anyhow::Result;
use hwm_sdk::protocol::{Cancel, Cancelled, LineReader, Message, Method, RpcError};
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// A manager that reads nothing for this long has failed.
const WRITE: Duration = Duration::from_secs(10);

/// What came from the manager.
enum Event {
    Line(Vec<u8>),
    End(io::Result<()>),
}

/// A manager that runs.
pub(crate) struct Session {
    process: Process,
    socket: UnixStream,
    events: Receiver<Event>,
    next_id: u64,
    pub(crate) incoming: Incoming,
    /// The rule that is broken if the manager ends or is silent now, when it is not an ordinary call.
    blame: Option<Rule>,
}

impl Session {
    pub(crate) fn start(plan: &Plan) -> Result<Self> {
        let (process, socket) = Process::start(&plan.command)?;
        socket.set_write_timeout(Some(WRITE))?;
        let (sender, events) = channel();
        let mut lines = LineReader::new(socket.try_clone()?);
        std::thread::spawn(move || {
            loop {
                let event = match lines.next_line() {
                    Ok(Some(line)) => Event::Line(line.to_vec()),
                    Ok(None) => Event::End(Ok(())),
                    Err(error) => Event::End(Err(error)),
                };
                let ends = matches!(event, Event::End(_));
                if sender.send(event).is_err() || ends {
                    return;
                }
            }
        });
        Ok(Self { process, socket, events, next_id: 1, incoming: Incoming::default(), blame: None })
    }

    /// Does something in which an end or silence of the manager breaks this rule.
    pub(crate) fn blaming<T>(
        &mut self,
        rule: Rule,
        work: impl FnOnce(&mut Self) -> Result<T, Violation>,
    ) -> Result<T, Violation> {
        self.blame = Some(rule);
        let done = work(self);
        self.blame = None;
        done
    }

    /// Sends a line as it is.
    pub(crate) fn say(&mut self, line: &str) -> Result<(), Violation> {
        let written = self.socket.write_all(line.as_bytes()).and_then(|()| self.socket.write_all(b"\n"));
        // The last messages say why the manager ended.
        written.or_else(|_| self.hear(Instant::now() + Duration::from_secs(1), "a line").map(drop))
    }

    /// Calls, without waiting.
    pub(crate) fn ask<M: Method>(&mut self, params: &M::Params) -> Result<u64, Violation> {
        let id = self.next_id;
        self.next_id += 1;
        self.incoming.called(id, M::NAME);
        let line = Message::request::<M>(id, params).line().expect("a request fits into a line");
        self.say(String::from_utf8_lossy(&line).trim_end())?;
        Ok(id)
    }

    /// Calls with params of any kind, and waits for the answer.
    pub(crate) fn call_raw(
        &mut self,
        method: &str,
        params: &serde_json::Value,
        within: Duration,
        late: Rule,
    ) -> Result<Answer<Box<RawValue>>, Violation> {
        let id = self.next_id;
        self.next_id += 1;
        self.incoming.called(id, method);
        let line = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&line.to_string())?;
        self.wait(id, within, late, method)
    }

    /// Calls, and waits for the answer: within this time, or the rule `late` is broken; as described, or `rule` is.
    pub(crate) fn call<M: Method>(
        &mut self,
        params: &M::Params,
        within: Duration,
        late: Rule,
        rule: Rule,
    ) -> Result<Answer<M::Answer>, Violation> {
        let id = self.ask::<M>(params)?;
        let raw = self.wait(id, within, late, M::NAME)?;
        match raw {
            Ok(raw) => described::<M>(&raw, rule).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Waits for the answer to a call.
    pub(crate) fn wait(
        &mut self,
        id: u64,
        within: Duration,
        late: Rule,
        what: &str,
    ) -> Result<Answer<Box<RawValue>>, Violation> {
        let end = Instant::now() + within;
        loop {
            if let Some(answer) = self.incoming.take_answer(id) {
                return Ok(answer);
            }
            if !self.hear(end, what)? {
                let rule = self.blame.unwrap_or(late);
                return Err(Violation::new(rule, format!("{what} was not answered within {within:?}")));
            }
        }
    }

    /// Waits for the error with the id null, which answers a line that could not be read.
    pub(crate) fn wait_refusal(&mut self, within: Duration) -> Result<Option<RpcError>, Violation> {
        let end = Instant::now() + within;
        self.incoming.expect_refusal();
        loop {
            if let Some(error) = self.incoming.take_refusal() {
                return Ok(Some(error));
            }
            if !self.hear(end, "a line that cannot be read")? {
                return Ok(None);
            }
        }
    }

    /// Waits until the manager says something else than the answer to this call, or `within` is over.
    pub(crate) fn wait_sign(&mut self, id: u64, within: Duration) -> Result<(), Violation> {
        let end = Instant::now() + within;
        while !self.incoming.is_answered(id) && !self.incoming.has_sign() && self.hear(end, "a sign")? {}
        Ok(())
    }

    pub(crate) fn cancel(&mut self, id: u64) -> Result<(), Violation> {
        let line = Message::notification::<Cancel>(&Cancelled { id }).line().expect("it is short");
        self.say(String::from_utf8_lossy(&line).trim_end())
    }

    /// Hears one thing; false when there is none until `end`.
    fn hear(&mut self, end: Instant, what: &str) -> Result<bool, Violation> {
        let within = end.saturating_duration_since(Instant::now());
        match self.events.recv_timeout(within) {
            Ok(Event::Line(line)) => {
                if let Some(reply) = self.incoming.line(&line)? {
                    let line = reply.line().expect("a reply fits into a line");
                    self.say(String::from_utf8_lossy(&line).trim_end())?;
                }
                Ok(true)
            }
            Ok(Event::End(end)) => Err(self.ended(end, what)),
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended(Ok(()), what)),
        }
    }

    fn ended(&mut self, end: io::Result<()>, what: &str) -> Violation {
        match end {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Violation::new(Rule::LineLimit, error.to_string());
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Violation::new(Rule::OnlyMessages, error.to_string());
            }
            _ => {}
        }
        let status = self.process.exit(Duration::from_secs(1));
        let how = status.map_or("closed its socket".to_owned(), |status| format!("ended ({status})"));
        let rule = self.blame.unwrap_or(Rule::Alive);
        Violation::new(rule, format!("the manager {how} while {what} was awaited"))
    }

    /// Hears what is still to be heard until the manager closes its socket.
    pub(crate) fn hear_end(&mut self, within: Duration) -> Result<(), Violation> {
        let end = Instant::now() + within;
        loop {
            match self.events.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Event::Line(line)) => drop(self.incoming.line(&line)?),
                Ok(Event::End(Err(error))) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(Violation::new(Rule::LineLimit, error.to_string()));
                }
                // An agent that closed the socket may have cut off a line.
                Ok(Event::End(_)) | Err(_) => return Ok(()),
            }
        }
    }

    /// Closes the socket, as an agent that died.
    pub(crate) fn close(&mut self) {
        // An error means that it is closed already.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    pub(crate) fn exit(&mut self, within: Duration) -> Option<std::process::ExitStatus> {
        self.process.exit(within)
    }

    pub(crate) fn log(&self) -> String {
        self.process.log()
    }
}

/// The answer as its type, or the rule that says how it is to be.
pub(crate) fn described<M: Method>(raw: &RawValue, rule: Rule) -> Result<M::Answer, Violation> {
    serde_json::from_str(raw.get())
        .map_err(|error| Violation::new(rule, format!("the answer to {}: {error}", M::NAME)))
}
