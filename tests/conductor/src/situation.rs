//! One node in one situation, for decisions that are looked at one by one; and an agent with one answer.

use agent_protocol::command::CommandStatus;
use async_trait::async_trait;
use conductor::Settings;
use conductor::agent_transport::{AgentCall, AgentTransport};
use conductor::decision::{Action, Change, Decision, Outcome, Snapshot};
use conductor::stages::{apply_outcome, decide};
use model::abilities::{Abilities, Inspect, Rescue};
use model::agent::{AgentKind, AgentState};
use model::plan::automated_plan;
use model::run::{Cursor, Run};
use model::{CatalogueStep, Contact, Node, PowerState, ProvisionState, RunKind, Timestamp};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

/// Now, and when the controller was started.
pub const NOW: Timestamp = Timestamp(1_790_000_000_000_000);

/// Seconds from now.
pub fn at(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

pub fn catalogue_step(name: &str, priority: i64) -> CatalogueStep {
    serde_json::from_value(json!({
        "interface": "deploy", "step": name, "priority": priority, "idempotent": true, "abortable": true,
    }))
    .unwrap()
}

/// A node in `state` whose run of two erase steps stands at `cursor`, at the step of this index.
pub fn node(state: ProvisionState, cursor: Cursor, index: usize) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", NOW);
    node.enter(state, Some(ProvisionState::Available), NOW);
    let steps = [catalogue_step("erase_devices_metadata", 99), catalogue_step("erase_devices", 10)];
    let mut run = Run::new(RunKind::AutomatedClean, NOW);
    run.plan = Some(automated_plan(&steps));
    (run.index, run.cursor, run.booted) = (Some(index), cursor, true);
    node.run = Some(run);
    node.power_state = Some(PowerState::On);
    node
}

pub fn issued(boot_id: &str, accepted: bool) -> Cursor {
    let (boot_id, process_id) = (Some(boot_id.into()), Some("p".into()));
    Cursor::Issued { command_id: "c0".into(), at: NOW, boot_id, process_id, accepted }
}

/// An agent of this boot that was last heard now.
pub fn heard(boot_id: &str) -> Contact {
    let state = AgentState {
        boot_id: boot_id.into(),
        process_id: "p".into(),
        evidence_key: None,
        running: None,
        ended: Vec::new(),
        progress: None,
    };
    Contact {
        token: Some("t".into()),
        callback_url: Some("https://192.0.2.1:9999".into()),
        last_heartbeat_at: Some(NOW),
        agent: Some(AgentKind::Anneal(state)),
        ..Contact::default()
    }
}

/// An ironic-python-agent that was last heard now.
pub fn ipa() -> Contact {
    Contact { token_at: Some(NOW), agent: Some(AgentKind::Ipa), ..heard("") }
}

/// What the Anneal agent of this contact reports of itself.
pub fn anneal(contact: &mut Contact) -> &mut AgentState {
    match &mut contact.agent {
        Some(AgentKind::Anneal(state)) => state,
        other => panic!("{other:?} is not an Anneal agent"),
    }
}

pub fn snapshot(node: Node, contact: Contact, now: Timestamp) -> Snapshot {
    let abilities = Abilities {
        agent: true,
        inspect: Inspect::None,
        rescue: Rescue::None,
        steps: std::collections::BTreeMap::new(),
    };
    let (abilities, listening_since) = (Ok(abilities.into()), NOW);
    Snapshot::of(node, contact, abilities, listening_since, now)
}

pub fn recorded(decision: Decision) -> Node {
    match decision {
        Decision::Record(change) => change.node,
        other => panic!("{other:?} stores nothing"),
    }
}

/// What is decided under the default settings, where that is a change …
pub fn changes(snapshot: &Snapshot) -> Change {
    match decide(snapshot, &Settings::default()) {
        Decision::Record(change) => *change,
        other => panic!("{other:?}"),
    }
}

/// … and where it is an action.
pub fn acts(snapshot: &Snapshot) -> Action {
    match decide(snapshot, &Settings::default()) {
        Decision::Act(action) => action,
        other => panic!("{other:?}"),
    }
}

/// What the outcome of an action changes.
pub fn after(snapshot: &Snapshot, action: &Action, outcome: Outcome) -> Change {
    apply_outcome(snapshot, action, outcome, &Settings::default())
}

/// An agent that has these commands, answers every other in the same way, and keeps what it is sent.
pub struct Scripted {
    commands: Vec<CommandStatus>,
    answer: Result<(StatusCode, Value), String>,
    sent: Mutex<Vec<Value>>,
}

impl Scripted {
    /// Without commands.
    pub fn new(answer: Result<(StatusCode, Value), String>) -> Arc<Self> {
        Arc::new(Self { commands: Vec::new(), answer, sent: Mutex::default() })
    }

    pub fn with(commands: &[CommandStatus], answer: &CommandStatus) -> Arc<Self> {
        let answer = Ok((StatusCode::OK, json!(answer)));
        Arc::new(Self { commands: commands.to_vec(), answer, sent: Mutex::default() })
    }

    /// The commands that it was sent.
    pub fn sent(&self) -> Vec<Value> {
        self.sent.lock().unwrap().clone()
    }
}

#[async_trait]
impl AgentTransport for Scripted {
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String> {
        let answer = match call.body {
            None => Ok((StatusCode::OK, json!({"commands": self.commands}))),
            Some(body) => {
                self.sent.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                self.answer.clone()
            }
        };
        answer.map(|(status, body)| (status, body.to_string().into_bytes()))
    }
}
