//! One simulated agent: its commands, and a journal of when each step came and ended.

use agent_protocol::EXTENSION;
use agent_protocol::command::{CommandList, CommandRequest, CommandStatus, Status};
use agent_protocol::heartbeat::AgentState;
use agent_protocol::step::{AdvertisedSteps, Step};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The one hardware manager.
const MANAGER: &str = "bench";
/// Most ended commands that a heartbeat names.
const ENDED: usize = 16;

/// An agent in one boot of its machine.
#[derive(Debug)]
pub struct Agent {
    /// MAC address of its machine.
    pub mac: String,
    boot_id: String,
    process_id: String,
    steps: Vec<Step>,
    state: Mutex<State>,
    /// A command has ended: a heartbeat is due.
    pub ended: Notify,
    /// Every step has ended.
    pub finished: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    token: Option<String>,
    commands: Vec<CommandStatus>,
    journal: Vec<Mark>,
}

/// One step as the agent saw it.
#[derive(Debug, Clone)]
pub struct Mark {
    /// `interface.step`.
    pub step: String,
    /// When its command had arrived whole.
    pub received: Instant,
    /// When it had ended, and the heartbeat that reports it was due.
    pub ended: Instant,
}

/// Why a command is not taken, with its HTTP status.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal(pub u16, pub &'static str);

impl Agent {
    /// The agent of machine `number`, with `steps` clean steps that are run in the order of their numbers.
    pub fn new(number: usize, steps: usize) -> Self {
        let [high, low] = u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes();
        let mac = format!("52:54:00:be:{high:02x}:{low:02x}");
        Self::of(mac, (0..steps).map(|index| step(index, steps)).collect())
    }

    /// The agent of the machine with this MAC address, with these clean steps.
    pub fn of(mac: String, steps: Vec<Step>) -> Self {
        Self {
            mac,
            boot_id: Uuid::new_v4().to_string(),
            process_id: Uuid::new_v4().to_string(),
            steps,
            state: Mutex::default(),
            ended: Notify::new(),
            finished: CancellationToken::new(),
        }
    }

    /// The boot this agent lives in.
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// From now on commands need this token.
    pub fn take_token(&self, token: String) {
        self.state().token = Some(token);
    }

    /// The token of the lookup.
    pub fn token(&self) -> Option<String> {
        self.state().token.clone()
    }

    /// Whether `token` is the one of the lookup.
    pub fn admits(&self, token: Option<&str>) -> bool {
        token.is_some() && self.state().token.as_deref() == token
    }

    /// Take a command. A step has ended before its answer, RUNNING, is on its way.
    ///
    /// # Errors
    /// When it is not one that cleaning needs.
    pub fn submit(&self, request: CommandRequest) -> Result<CommandStatus, Refusal> {
        let received = Instant::now();
        let short = request.name.split_once('.').map_or("", |(_, short)| short).to_owned();
        let mut state = self.state();
        if let Some(id) = &request.anneal_command_id
            && let Some(known) = state.commands.iter().find(|command| command.id == *id)
        {
            return Ok(known.clone());
        }
        let id = request.anneal_command_id.unwrap_or_else(|| Uuid::new_v4().to_string());
        let mut command = CommandStatus {
            id,
            command_name: short.clone(),
            command_status: Status::Succeeded,
            command_error: None,
            command_result: None,
            progress: None,
            checkpoint: None,
        };
        match short.as_str() {
            "get_clean_steps" => command.command_result = Some(self.advertised("clean_steps", &self.steps)),
            "get_deploy_steps" => command.command_result = Some(self.advertised("deploy_steps", &[])),
            "get_service_steps" => command.command_result = Some(self.advertised("service_steps", &[])),
            "execute_clean_step" => {
                let step = request.params.get("step").cloned().unwrap_or_default();
                let of = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or("?");
                let label = format!("{}.{}", of("interface"), of("step"));
                command.command_result = Some(json!({ "clean_result": null, "clean_step": step }));
                let running = CommandStatus {
                    command_status: Status::Running,
                    command_result: None,
                    ..command.clone()
                };
                state.commands.push(command);
                state.journal.push(Mark { step: label, received, ended: Instant::now() });
                let over = state.journal.len() >= self.steps.len();
                drop(state);
                self.ended.notify_one();
                if over {
                    self.finished.cancel();
                }
                return Ok(running);
            }
            _ => return Err(Refusal(404, "no such command")),
        }
        state.commands.push(command.clone());
        Ok(command)
    }

    fn advertised(&self, key: &str, steps: &[Step]) -> Value {
        let advertised = AdvertisedSteps {
            clean_steps: BTreeMap::from([(MANAGER.to_owned(), steps.to_vec())]),
            hardware_manager_version: BTreeMap::from([(MANAGER.to_owned(), "1".to_owned())]),
        };
        let mut advertised = json!(advertised);
        if let Some(lists) = advertised.as_object_mut()
            && let Some(steps) = lists.remove("clean_steps")
        {
            lists.insert(key.to_owned(), steps);
        }
        advertised
    }

    /// One command.
    pub fn command(&self, id: &str) -> Option<CommandStatus> {
        self.state().commands.iter().find(|command| command.id == id).cloned()
    }

    /// All commands, oldest first.
    pub fn commands(&self) -> CommandList {
        CommandList { commands: self.state().commands.clone() }
    }

    /// Anneal's part of a heartbeat.
    pub fn heartbeat_state(&self) -> AgentState {
        let state = self.state();
        let from = state.commands.len().saturating_sub(ENDED);
        AgentState {
            extension: EXTENSION,
            boot_id: self.boot_id.clone(),
            process_id: self.process_id.clone(),
            evidence_key: None,
            running: None,
            ended: state.commands.iter().skip(from).map(|command| command.id.clone()).collect(),
        }
    }

    /// The steps that were run, in order.
    pub fn journal(&self) -> Vec<Mark> {
        self.state().journal.clone()
    }

    /// The steps as they are to be run, in order.
    pub fn expected(&self) -> Vec<String> {
        self.steps.iter().map(|step| format!("{}.{}", step.interface, step.step)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Step `index` of `count`: the earlier, the higher its priority.
fn step(index: usize, count: usize) -> Step {
    Step {
        step: format!("instant_{index:03}"),
        priority: (count - index).into(),
        interface: "deploy".to_owned(),
        reboot_requested: false,
        abortable: true,
        argsinfo: None,
        args: None,
        other: Map::new(),
    }
}
