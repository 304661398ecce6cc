//! An agent's logs on their way from its answer to the disk. The archive is decoded as it arrives and is never whole in memory.
//!
//! ```text
//!   transport ── chunks ──▶ a thread that may block: LogAnswer ── archive ──▶ IncomingArchive (a hidden file) ── rename
//!                                                     └── everything else: the outline, small
//! ```

use crate::agent_answer;
use crate::agent_transport::AnswerSink;
use crate::log_answer::LogAnswer;
use crate::log_archive::{IncomingArchive, LogArchive};
use agent_protocol::command::{CommandStatus, Status};
use async_trait::async_trait;
use reqwest::StatusCode;
use serde_json::Value;
use std::io;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Chunks that wait for the disk.
const WAITING: usize = 4;
/// Most bytes of an answer that refuses to send logs.
const REFUSAL_MAX: usize = 64 << 10;

enum Piece {
    Chunk(Vec<u8>),
    /// The answer has arrived whole. Without it, nothing is kept.
    End,
}

/// Receives an answer to `log.collect_system_logs`.
pub struct LogDownload {
    archive: LogArchive,
    name: String,
    /// From the first chunk on: no thread waits for an agent that has not answered.
    writer: Option<Writer>,
    refusal: Vec<u8>,
}

struct Writer {
    pieces: mpsc::Sender<Piece>,
    ended: JoinHandle<Result<(), String>>,
}

impl Writer {
    fn start(archive: &LogArchive, name: &str) -> Self {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let (archive, name) = (archive.clone(), name.to_owned());
        let ended = tokio::task::spawn_blocking(move || write(&archive, &name, waiting));
        Self { pieces, ended }
    }
}

impl LogDownload {
    /// A download into the archive of this name.
    pub fn to(archive: LogArchive, name: String) -> Self {
        Self { archive, name, writer: None, refusal: Vec::new() }
    }

    /// What the agent answered instead of logs.
    pub fn refusal(&self) -> &[u8] {
        &self.refusal
    }

    /// Keep the archive if `arrived` says that the answer is complete.
    ///
    /// # Errors
    /// Why it is not kept, also when that is why the transport gave up.
    pub async fn end(self, arrived: Result<(), String>) -> Result<(), String> {
        let Self { archive, name, writer, .. } = self;
        if writer.is_none() && arrived.is_err() {
            // Nothing is to be written or removed.
            return arrived;
        }
        let Writer { pieces, ended } = writer.unwrap_or_else(|| Writer::start(&archive, &name));
        if arrived.is_ok() {
            // A writer that has given up says why below.
            let _ = pieces.send(Piece::End).await;
        }
        drop(pieces);
        match ended.await.unwrap_or_else(|error| Err(error.to_string())) {
            Err(error) if error == CUT => arrived.and(Err(error)),
            ended => ended,
        }
    }
}

/// What a writer says whose answer did not arrive whole.
const CUT: &str = "the answer did not arrive whole";

#[async_trait]
impl AnswerSink for LogDownload {
    async fn receive(&mut self, status: StatusCode, chunk: &[u8]) -> Result<(), String> {
        if status.is_success() {
            let (archive, name) = (&self.archive, &self.name);
            let writer = self.writer.get_or_insert_with(|| Writer::start(archive, name));
            let sent = writer.pieces.send(Piece::Chunk(chunk.to_vec())).await;
            return sent.map_err(|_| "its logs are not kept".to_owned());
        }
        if self.refusal.len() + chunk.len() > REFUSAL_MAX {
            return Err(format!("the answer is larger than {REFUSAL_MAX} bytes"));
        }
        self.refusal.extend_from_slice(chunk);
        Ok(())
    }
}

fn write(archive: &LogArchive, name: &str, mut pieces: mpsc::Receiver<Piece>) -> Result<(), String> {
    let mut incoming: Option<IncomingArchive> = None;
    let stored = |error: io::Error| {
        format!("{name} could not be stored in {}: {error}", archive.directory().display())
    };
    let mut answer = LogAnswer::default();
    loop {
        match pieces.blocking_recv() {
            None => return Err(CUT.to_owned()),
            Some(Piece::End) => break,
            Some(Piece::Chunk(chunk)) => {
                let bytes = answer.read(&chunk)?;
                if bytes.is_empty() {
                    continue;
                }
                let file = match &mut incoming {
                    Some(file) => file,
                    None => incoming.insert(archive.receive(name).map_err(stored)?),
                };
                file.write(&bytes).map_err(stored)?;
            }
        }
    }
    let (outline, rest) = answer.end()?;
    check(&outline)?;
    let mut file = match incoming {
        Some(file) => file,
        None => archive.receive(name).map_err(stored)?,
    };
    file.write(&rest).and_then(|()| file.keep()).map_err(stored)
}

/// The answer without the archive: the command succeeded, and there was one.
fn check(outline: &[u8]) -> Result<(), String> {
    let status: CommandStatus = agent_answer::parse(outline)?;
    let CommandStatus { command_status: Status::Succeeded, command_result: Some(result), .. } = status else {
        let reason = status.command_error.map(|error| error.details).unwrap_or_default();
        return Err(format!("the agent could not send its logs: {:?} {reason}", status.command_status));
    };
    match result.get("system_logs") {
        Some(Value::String(_)) => Ok(()),
        _ => Err("the agent sent something else instead of its logs".to_owned()),
    }
}
