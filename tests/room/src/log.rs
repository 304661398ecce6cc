//! The log of a thread.

use crate::held;
use serde_json::Value;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing::Level;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing_subscriber::fmt::MakeWriter;

/// The log of a thread, as lines of JSON.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collect what this thread logs until the guard is dropped.
    pub fn collect(&self) -> DefaultGuard {
        let subscriber = tracing_subscriber::fmt().json().with_max_level(Level::DEBUG);
        set_default(subscriber.with_writer(self.clone()).finish())
    }

    /// The lines until now.
    pub fn lines(&self) -> Vec<Value> {
        let bytes = held(&self.0);
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// The events of nodes among them.
    pub fn events(&self) -> Vec<Value> {
        self.lines().into_iter().filter(|line| line["target"] == "store::event_log").collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        held(&self.0).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
