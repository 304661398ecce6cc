//! The DevTools protocol over a pair of pipes: requests, answers, and events that come in between.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// The protocol's file descriptors, made of standard input and output, which Chromium does not use.
const DESCRIPTORS: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;
/// Longest wait for an answer: the machine may be busy with other tests.
const LIMIT: Duration = Duration::from_secs(60);

/// A browser's pipe. The browser ends when it is dropped.
pub struct Pipe {
    child: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    last: u64,
    events: Vec<Value>,
}

impl Pipe {
    /// Starts `program`, which must be asked to talk over descriptors 3 and 4. Its complaints go to `log`.
    pub fn start(program: &Command, log: std::fs::File) -> Result<Self> {
        let mut shell = Command::new("setpriv");
        shell.args(["--pdeathsig", "KILL", "--", "/bin/sh", "-c", DESCRIPTORS, "sh"]);
        shell.arg(program.get_program()).args(program.get_args());
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let spawned = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = spawned.with_context(|| program.get_program().display().to_string())?;
        let requests = child.stdin.take().context("a pipe for requests")?;
        let mut answers = BufReader::new(child.stdout.take().context("a pipe for answers")?);
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            while answers.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
                bytes.pop();
                let message = serde_json::from_slice(&bytes).unwrap_or_default();
                if sender.send(message).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
        Ok(Self { child, requests, messages, last: 0, events: Vec::new() })
    }

    /// The result of a method, in a session of a page or, without one, of the browser.
    pub fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Result<Value> {
        self.last += 1;
        let id = self.last;
        let mut request = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            request["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&request)?;
        bytes.push(0);
        self.requests.write_all(&bytes).and_then(|()| self.requests.flush()).context("Chromium has ended")?;
        loop {
            let message = match self.messages.recv_timeout(LIMIT) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => bail!("{method}: no answer within {} s", LIMIT.as_secs()),
                Err(RecvTimeoutError::Disconnected) => bail!("{method}: Chromium has ended"),
            };
            if message["id"] == id {
                ensure!(message["error"].is_null(), "{method}: {}", message["error"]["message"]);
                return Ok(message["result"].clone());
            }
            if message["method"].is_string() {
                self.events.push(message);
            }
        }
    }

    /// The events of a session that have come and were not taken yet.
    pub fn events(&mut self, session: &str) -> Vec<Value> {
        self.events.extend(self.messages.try_iter().filter(|message| message["method"].is_string()));
        self.events.extract_if(.., |event| event["sessionId"] == session).collect()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.call(None, "Browser.close", json!({}));
        // One that does not end by itself within its moment.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
