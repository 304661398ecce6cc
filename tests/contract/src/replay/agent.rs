//! The agent of a conversation: it answers as the recorded one did.

use super::http::{self, Request};
use crate::certificate;
use crate::process::free_port;
use anyhow::{Context, Result};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a conductor waits for an answer before it gives up by itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command that the conductor sent and that waits for its answer.
pub struct Command {
    pub request: Request,
    answer: Sender<(u16, Value)>,
}

impl Command {
    /// Answers it.
    pub fn answer(self, status: u16, body: Value) {
        // A conductor that no longer waits has lost nothing here: it would ask again.
        let _ = self.answer.send((status, body));
    }
}

/// An agent that listens.
pub struct Agent {
    /// `127.0.0.1:PORT`
    pub address: String,
    /// The certificate it shows, when it listens with TLS.
    pub pem: Option<String>,
    commands: Receiver<Command>,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    /// The answer to `GET /v1/commands/`.
    list: Value,
    /// The questions for it since it is that.
    asked: Vec<Request>,
}

impl Agent {
    /// One without commands, with TLS or without.
    ///
    /// # Errors
    /// When there is no port to be had, or no certificate.
    pub fn start(tls: bool) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let listener = TcpListener::bind(&address).with_context(|| address.clone())?;
        let (tls, pem) = tls.then(certificate::own).transpose()?.unzip();
        let (sender, commands) = channel();
        let shared = Arc::new(Mutex::new(Shared { list: json!({"commands": []}), asked: Vec::new() }));
        let seen = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (sender, seen, tls) = (sender.clone(), seen.clone(), tls.clone());
                std::thread::spawn(move || {
                    if let Err(error) = accept(stream, tls, &sender, &seen) {
                        eprintln!("agent: {error:#}");
                    }
                });
            }
        });
        Ok(Self { address, pem, commands, shared })
    }

    /// The commands it has from now on. When it had the same before, a question for them was a question for these.
    pub fn has(&self, list: Value) {
        if let Ok(mut shared) = self.shared.lock()
            && shared.list != list
        {
            *shared = Shared { list, asked: Vec::new() };
        }
    }

    /// One more command. It runs until [`Agent::has`] says otherwise.
    pub fn took(&self, mut command: Value) {
        if command["command_result"].is_null() {
            command["command_status"] = "RUNNING".into();
        }
        if let Ok(mut shared) = self.shared.lock()
            && let Some(list) = shared.list["commands"].as_array_mut()
        {
            list.push(command);
            shared.asked.clear();
        }
    }

    /// A question for its commands since they are what they are.
    pub fn asked(&self) -> Option<Request> {
        self.shared.lock().ok()?.asked.first().cloned()
    }

    /// The next command that waits for an answer.
    pub fn next(&self, limit: Duration) -> Option<Command> {
        self.commands.recv_timeout(limit).ok()
    }
}

fn accept(
    mut stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    commands: &Sender<Command>,
    shared: &Mutex<Shared>,
) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let Some(config) = tls else { return serve(&mut stream, commands, shared) };
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, stream);
    serve(&mut stream, commands, shared)?;
    stream.conn.send_close_notify();
    Ok(stream.flush()?)
}

fn serve(mut stream: impl Read + Write, commands: &Sender<Command>, shared: &Mutex<Shared>) -> Result<()> {
    let request = http::take(&mut stream)?;
    if request.method == "GET" {
        let (status, answer) = {
            let mut shared = shared.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
            let answer = commands_at(&request.path, &shared.list);
            shared.asked.push(request);
            answer
        };
        return http::give(&mut stream, status, &answer);
    }
    let (answer, answered) = channel();
    commands.send(Command { request, answer })?;
    let (status, body) = answered.recv_timeout(PATIENCE)?;
    http::give(&mut stream, status, &body)
}

/// The list, or the one command that `path` names.
fn commands_at(path: &str, list: &Value) -> (u16, Value) {
    let path = path.split('?').next().unwrap_or_default();
    let id = path.trim_start_matches("/v1/commands").trim_matches('/');
    if id.is_empty() {
        return (200, list.clone());
    }
    let mut commands = list["commands"].as_array().into_iter().flatten();
    match commands.find(|one| one["id"] == id) {
        Some(found) => (200, found.clone()),
        None => (404, json!({"faultcode": "Client", "faultstring": "Command not found"})),
    }
}
