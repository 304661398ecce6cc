//! A client of QEMU's machine protocol (QEMU `docs/interop/qmp-spec.rst`).

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

const LIMIT: Duration = Duration::from_secs(20);

/// Callers that wait for an answer, by the id of their command.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

/// A connection to one QEMU.
#[derive(Debug)]
pub struct Qmp {
    writer: AsyncMutex<(OwnedWriteHalf, u64)>,
    waiting: Waiting,
    _reader: AbortOnDropHandle<()>,
}

impl Qmp {
    /// Connects to the socket and leaves negotiation mode. Events arrive at the receiver, which closes
    /// when QEMU does.
    ///
    /// # Errors
    /// When no process listens there (QEMU may be starting: try again) or it does not speak QMP.
    pub async fn connect(socket: &Path) -> Result<(Self, mpsc::UnboundedReceiver<Value>)> {
        let stream = UnixStream::connect(socket)
            .await
            .with_context(|| format!("cannot connect to {}", socket.display()))?;
        let (reader, writer) = stream.into_split();
        let waiting = Waiting::default();
        let (events, receiver) = mpsc::unbounded_channel();
        let task = tokio::spawn(read(BufReader::new(reader), Arc::clone(&waiting), events));
        let qmp =
            Self { writer: AsyncMutex::new((writer, 0)), waiting, _reader: AbortOnDropHandle::new(task) };
        qmp.command("qmp_capabilities", json!({})).await?;
        Ok((qmp, receiver))
    }

    /// Sends a command and returns its answer.
    ///
    /// # Errors
    /// When QEMU refuses it, has gone, or does not answer within 20 s.
    pub async fn command(&self, name: &str, arguments: Value) -> Result<Value> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut guard = self.writer.lock().await;
            let (writer, last_id) = &mut *guard;
            *last_id += 1;
            let id = *last_id;
            self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
            let line = json!({"execute": name, "arguments": arguments, "id": id});
            let sent = writer.write_all(format!("{line}\n").as_bytes()).await;
            sent.with_context(|| format!("QMP {name}: QEMU has gone"))?;
        }
        let answer = timeout(LIMIT, receiver)
            .await
            .with_context(|| format!("QMP {name}: no answer within {LIMIT:?}"))?
            .with_context(|| format!("QMP {name}: QEMU has gone"))?;
        if let Some(error) = answer.get("error") {
            bail!("QMP {name}: {error}");
        }
        Ok(answer.get("return").cloned().unwrap_or_default())
    }
}

async fn read(mut reader: BufReader<OwnedReadHalf>, waiting: Waiting, events: mpsc::UnboundedSender<Value>) {
    let mut line = String::new();
    while reader.read_line(&mut line).await.is_ok_and(|n| n > 0) {
        match serde_json::from_str::<Value>(&line) {
            Ok(message) if message.get("event").is_some() => {
                // QEMU no longer listens: the machine is being dropped.
                let _ = events.send(message);
            }
            Ok(message) => {
                let id = message.get("id").and_then(Value::as_u64);
                let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(sender) = id.and_then(|id| waiting.remove(&id)) {
                    let _ = sender.send(message);
                }
            }
            Err(error) => tracing::warn!(%error, line, "QMP line is no JSON"),
        }
        line.clear();
    }
    // Wake those who wait for answers that will not come.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
