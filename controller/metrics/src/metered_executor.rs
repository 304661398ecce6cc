//! An executor whose calls to BMCs and agents are timed and counted by outcome.

use crate::counts::Counts;
use crate::labels;
use async_trait::async_trait;
use conductor::Executor;
use conductor::decision::{Action, ActionError, Outcome};
use model::{Abilities, Contact, Node};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Measures another executor.
pub struct MeteredExecutor {
    pub executor: Arc<dyn Executor>,
    pub counts: Arc<Counts>,
}

/// Whom an action calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    Bmc,
    Agent,
}

/// Whom an action calls, and the name of the call.
fn call(action: &Action) -> (Peer, &'static str) {
    match action {
        Action::VerifyBmc => (Peer::Bmc, "verify"),
        Action::ReadPower => (Peer::Bmc, "read_power"),
        Action::ReadState => (Peer::Bmc, "read_state"),
        Action::SetPower(_) => (Peer::Bmc, "set_power"),
        Action::ReadBootDevice => (Peer::Bmc, "read_boot_device"),
        Action::SetBootDevice => (Peer::Bmc, "set_boot_device"),
        Action::RestoreBootDevice(_) => (Peer::Bmc, "restore_boot_device"),
        Action::InsertMedium => (Peer::Bmc, "insert_medium"),
        Action::EjectMedium => (Peer::Bmc, "eject_medium"),
        Action::InspectBmc => (Peer::Bmc, "inspect"),
        Action::RunStep { .. } => (Peer::Bmc, "run_step"),
        Action::AskSteps(_) => (Peer::Agent, "ask_steps"),
        Action::SendStep { .. } => (Peer::Agent, "send_step"),
        Action::AskCommand { .. } => (Peer::Agent, "ask_command"),
        Action::CancelCommand { .. } => (Peer::Agent, "cancel_command"),
        Action::CollectLogs(_) => (Peer::Agent, "collect_logs"),
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Failed(ActionError { unreachable: true, .. }) => "unreachable",
        Outcome::Failed(_) => "failed",
        _ => "ok",
    }
}

#[async_trait]
impl Executor for MeteredExecutor {
    fn abilities(&self, node: &Node) -> Result<Arc<Abilities>, String> {
        self.executor.abilities(node)
    }

    fn unfenced_call(&self, contact: &Contact, action: &Action) -> Duration {
        self.executor.unfenced_call(contact, action)
    }

    async fn act(&self, epoch: u64, node: &Node, contact: &Contact, action: &Action) -> Outcome {
        let began = Instant::now();
        let outcome = self.executor.act(epoch, node, contact, action).await;
        let (took, ended) = (began.elapsed(), word(&outcome));
        match call(action) {
            (Peer::Bmc, name) => {
                let driver = labels::driver(&node.driver);
                self.counts.bmc_calls.count([driver, ended]);
                self.counts.bmc_times.took([driver, name], took);
            }
            (Peer::Agent, name) => {
                self.counts.agent_calls.count([ended]);
                self.counts.agent_times.took([name], took);
            }
        }
        outcome
    }
}
