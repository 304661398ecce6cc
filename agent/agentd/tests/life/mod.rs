//! An agent that runs in this process against the test's controller.

use crate::common::{self, Probe};
use crate::controller::Controller;
use agentd::config::{Config, Environment};
use agentd::run::{RunError, run};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The agent, until it is stopped.
pub struct Life {
    stop: CancellationToken,
    task: JoinHandle<Result<Option<ramdisk_init::Exit>, RunError>>,
}

/// The configuration of an agent that trusts this controller, with these flags; `API` in them is its URL.
pub fn config(controller: &Controller, flags: &[&str]) -> Config {
    let mut arguments = vec![format!("--pin={}", controller.pin), "--listen=127.0.0.1:0".into()];
    arguments.extend(flags.iter().map(|flag| flag.replace("API", &controller.url)));
    agentd::config::parse(&Environment { arguments, ..Environment::default() }).expect("valid")
}

impl Life {
    /// Start it.
    pub fn start(config: Config, probe: &Arc<Probe>) -> Self {
        let (agent, stop) = (common::agent(probe), CancellationToken::new());
        let stopped = stop.clone();
        Self { stop, task: tokio::spawn(async move { run(&config, agent, stopped).await }) }
    }

    /// How it ends by itself.
    pub async fn end(self) -> Result<Option<ramdisk_init::Exit>, RunError> {
        self.task.await.expect("no panic")
    }

    /// Stop it; it must end well.
    pub async fn stop(self) {
        self.stop.cancel();
        assert!(matches!(self.task.await.expect("no panic"), Ok(None)));
    }
}
