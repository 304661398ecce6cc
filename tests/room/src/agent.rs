//! An agent's process, from its start to its end.

use crate::evidence::{self, SentStep};
use crate::held;
use crate::work::{Begun, Work};
use agent_protocol::EXTENSION;
use agent_protocol::command::CommandRequest;
use agent_protocol::heartbeat::AgentState;
use agentd::registry::{Cancel, Ending, Registry, Submission};
use axum::http::StatusCode;
use certificate::{AgentName, SigningKey};
use model::StepKind;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A certificate's PEM begins and ends like this; of the inside it only counts whether it is the same.
const PEM: (&str, &str) = ("-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n");

/// Which agent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Anneal's.
    #[default]
    Anneal,
    /// ironic-python-agent: own command ids, no cancel, nothing of Anneal's in its heartbeats.
    Ipa,
}

/// One process of an agent.
#[derive(Default)]
pub struct Agent {
    /// Which agent it is.
    pub kind: Kind,
    /// Of the boot.
    pub boot_id: String,
    /// Of the process.
    pub process_id: String,
    /// What its API shows in a room without TLS; a controller pins it. Each process has another.
    pub certificate: String,
    /// Its commands.
    pub registry: Mutex<Registry>,
    /// The token that commands need, once it has one.
    pub token: Mutex<Option<String>>,
    /// A command has ended: a heartbeat is due.
    pub ended: Notify,
    /// A command has reported its first progress: a heartbeat is due.
    pub progressed: Notify,
    /// Cancelled when the process ends.
    pub died: CancellationToken,
    /// Signs the reports of its erases; ironic-python-agent has none.
    key: Option<SigningKey>,
    /// The steps that it was sent, by the ids of their commands.
    sent: Mutex<BTreeMap<String, SentStep>>,
}

/// A call of a controller, in a form that can arrive twice.
#[derive(Debug, Clone)]
pub struct Call {
    /// Id of the command that is asked for; empty: all.
    id: String,
    /// The token of the query.
    token: String,
    /// The command as JSON; else it is a question.
    body: Option<Vec<u8>>,
}

impl Call {
    /// A call of `/v1/commands/ID` with this query.
    pub fn new(path: &str, query: Option<&str>, body: Option<Vec<u8>>) -> Self {
        let id = path.trim_start_matches("/v1/commands").trim_matches('/').to_owned();
        let mut pairs = query.unwrap_or_default().split('&');
        let token = pairs.find_map(|pair| pair.strip_prefix("agent_token=")).unwrap_or_default().to_owned();
        Self { id, token, body }
    }

    /// The command, if it is one that can be read.
    pub fn command(&self) -> Option<CommandRequest> {
        self.body.as_deref().and_then(|body| serde_json::from_slice(body).ok())
    }

    /// Whether it is a command, and no question.
    pub fn is_command(&self) -> bool {
        self.body.is_some()
    }
}

impl fmt::Display for Call {
    /// As far as a line of a log has place for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.body {
            Some(body) => write!(f, "command {:.160}", String::from_utf8_lossy(body)),
            None => write!(f, "question {}", self.id),
        }
    }
}

/// Status and body of an answer.
pub type Reply = (StatusCode, Vec<u8>);

/// What a command is.
enum Command {
    GetSteps(StepKind),
    ExecuteStep(StepKind),
    FinalizeRescue,
    InstallBootloader,
    Cancel,
}

impl Agent {
    /// A process in this boot, without a token.
    pub fn new(kind: Kind, boot_id: String, process_id: String) -> Self {
        let certificate = format!("{}{}{}", PEM.0, process_id.replace('-', ""), PEM.1);
        let key = if kind == Kind::Anneal { SigningKey::generate().ok() } else { None };
        Self { kind, boot_id, process_id, certificate, key: key.map(|(key, _)| key), ..Self::default() }
    }

    /// Anneal's part of a heartbeat.
    pub fn state(&self) -> AgentState {
        let registry = held(&self.registry);
        AgentState {
            extension: EXTENSION,
            boot_id: self.boot_id.clone(),
            process_id: self.process_id.clone(),
            evidence_key: self.key.as_ref().map(|key| key.public().to_string()),
            running: registry.running(),
            ended: registry.ended(),
        }
    }

    /// The running command has ended.
    pub fn finish(&self, id: &str, mut ending: Ending) {
        if let (Some(key), Some(sent)) = (&self.key, held(&self.sent).remove(id)) {
            let version = "sim".to_owned();
            let (boot_id, process_id) = (self.boot_id.clone(), self.process_id.clone());
            let agent = AgentName { version, boot_id, process_id };
            evidence::attach(key, agent, id, &sent, &mut ending);
        }
        held(&self.registry).finish(id, ending);
        self.ended.notify_one();
    }

    /// Answer a call.
    pub fn answer(&self, work: &impl Work, call: &Call) -> Reply {
        if held(&self.token).as_deref() != Some(call.token.as_str()) {
            return fault(StatusCode::UNAUTHORIZED, "401 Unauthorized: Token invalid.");
        }
        let Some(body) = &call.body else { return self.question(&call.id) };
        match serde_json::from_slice(body) {
            Ok(request) => self.submit(work, &request),
            Err(error) => fault(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }

    fn question(&self, id: &str) -> Reply {
        let registry = held(&self.registry);
        if id.is_empty() {
            return ok(&registry.list());
        }
        match registry.status(id) {
            Some(status) => ok(&status),
            None => {
                fault(StatusCode::NOT_FOUND, &format!("Not found: Command Result with id {id} not found."))
            }
        }
    }

    fn submit(&self, work: &impl Work, request: &CommandRequest) -> Reply {
        let Some((command, short)) = find(&request.name, self.kind) else {
            let text = format!("Invalid command: Unknown command: {}", request.name);
            return fault(StatusCode::BAD_REQUEST, &text);
        };
        // ironic-python-agent knows nothing of ids that others choose.
        let wanted = request.anneal_command_id.as_deref().filter(|_| self.kind == Kind::Anneal);
        let epoch = request.anneal_epoch.filter(|_| self.kind == Kind::Anneal);
        if let Err(old) = held(&self.registry).admit(epoch) {
            return fault(StatusCode::PRECONDITION_FAILED, &old.to_string());
        }
        let fresh = work.fresh_id().to_string();
        let submission = match command {
            Command::Cancel => {
                let target = request.params.get("command_id").and_then(Value::as_str).unwrap_or_default();
                held(&self.registry).record(short, wanted, fresh, |registry| cancelled(registry, target))
            }
            _ => held(&self.registry).submit(short, wanted, fresh),
        };
        let (id, context) = match submission {
            Submission::New { id, context } => (id, context),
            Submission::Known(status) => return ok(&*status),
            Submission::Busy { command_name } => {
                let text = format!("Agent is busy: executing command {command_name}");
                return fault(StatusCode::CONFLICT, &text);
            }
            Submission::Reused { command_name } => {
                let text = format!("Invalid command: the id has been used for {command_name}");
                return fault(StatusCode::CONFLICT, &text);
            }
        };
        match command {
            Command::GetSteps(kind) => {
                let steps = work.steps(kind);
                held(&self.registry).finish(&id, Ending::done(Some(steps)));
            }
            Command::ExecuteStep(kind) => {
                held(&self.sent).insert(id.clone(), (kind, request.params.clone()));
                work.begin(Begun { id: &id, kind, params: &request.params, context });
            }
            Command::FinalizeRescue => self.finish(&id, work.rescue(&request.params)),
            Command::InstallBootloader => self.finish(&id, work.install_bootloader(&request.params)),
            Command::Cancel => {}
        }
        match held(&self.registry).status(&id) {
            Some(status) => ok(&status),
            None => fault(StatusCode::INTERNAL_SERVER_ERROR, "the command is gone"),
        }
    }
}

fn cancelled(registry: &mut Registry, target: &str) -> Ending {
    match registry.cancel(target) {
        Cancel::Unknown => Ending::failed("CommandNotFound", "Nothing to cancel", target),
        asked => Ending::done(Some(json!({"was_running": asked == Cancel::Asked}))),
    }
}

/// The command of a name, with its name without the extension.
fn find(name: &str, kind: Kind) -> Option<(Command, &str)> {
    let short = name.split_once('.')?.1;
    for step in StepKind::ALL {
        let word = step.as_str();
        if name == format!("{word}.get_{word}_steps") {
            return Some((Command::GetSteps(step), short));
        }
        if name == format!("{word}.execute_{word}_step") {
            return Some((Command::ExecuteStep(step), short));
        }
    }
    match name {
        "rescue.finalize_rescue" => Some((Command::FinalizeRescue, short)),
        "image.install_bootloader" => Some((Command::InstallBootloader, short)),
        "anneal.cancel" if kind == Kind::Anneal => Some((Command::Cancel, short)),
        _ => None,
    }
}

fn ok(value: &impl serde::Serialize) -> Reply {
    (StatusCode::OK, serde_json::to_vec(value).unwrap_or_default())
}

fn fault(status: StatusCode, text: &str) -> Reply {
    (status, json!({ "faultcode": "Client", "faultstring": text }).to_string().into_bytes())
}
