//! A hardware manager in a program of its own: `fn main() -> ExitCode { hwm_sdk::serve(Mine) }`.
//!
//! ```text
//!   main thread: reads lines ─┬─ request ─▶ a thread of its own ─▶ the manager ─▶ answer
//!                             ├─ cancel ──▶ StepContext of that thread
//!                             └─ answer ──▶ the thread that asked the agent
//! ```

mod calls;
mod peer;
mod socket;

use crate::HardwareManager;
use crate::protocol::{Message, RpcError};
use calls::Calls;
use peer::Peer;
use socket::Descriptor;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;

/// Why serving ended other than by `shutdown` or the end of the socket.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The program was not started by an agent.
    #[error(
        "this is a hardware manager: an agent starts it, with a socket on file descriptor 3 ({0}); try it with hwm-conformance"
    )]
    NotStarted(io::Error),
    /// The socket broke.
    #[error("the agent cannot be heard: {0}")]
    Broken(io::Error),
}

/// Serve on file descriptor 3 until the agent is done. Return the status from `main` at once: work that still runs is
/// given up. Errors of serving are written to standard error.
///
/// Programs that the manager starts inherit the socket; they must not write to it.
pub fn serve(manager: impl HardwareManager + 'static) -> ExitCode {
    let served = Descriptor::inherited()
        .map_err(ServeError::NotStarted)
        .and_then(|socket| serve_on(Arc::new(manager), socket, socket));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Serve on any two ends of a stream.
///
/// # Errors
/// [`ServeError::Broken`].
pub fn serve_on(
    manager: Arc<dyn HardwareManager>,
    input: impl Read,
    output: impl Write + Send + 'static,
) -> Result<(), ServeError> {
    let peer = Arc::new(Peer::new(output));
    let calls = Arc::new(Calls::new(manager, peer.clone()));
    let mut lines = crate::protocol::LineReader::new(input);
    while let Some(line) = lines.next_line().map_err(ServeError::Broken)? {
        match Message::read(line) {
            Ok(Message::Request { id, method, params }) => {
                if calls.called(id, method, params).is_break() {
                    break;
                }
            }
            Ok(Message::Notification { method, params }) => calls.notified(&method, &params),
            Ok(Message::Answer { id, result }) => peer.answered(id, Ok(result)),
            Ok(Message::Error { id: Some(id), error }) => peer.answered(id, Err(error)),
            Ok(Message::Error { id: None, .. }) => {}
            Err(malformed) => peer.send(&Message::Error { id: None, error: RpcError::from(malformed) }),
        }
    }
    Ok(())
}
