//! The agent's HTTP API, as a client.
//!
//! Anneal's agent takes the controller's command ids and can cancel. ironic-python-agent chooses its own ids: whether a
//! request whose answer was lost has arrived is found in its list of commands, because each step command that is not of
//! an earlier step of this run must be the current one.

use crate::agent_answer;
use crate::agent_command::{add_psids, add_rules, command, node_for_agent};
use crate::agent_transport::{AgentCall, AgentTransport, Https};
use crate::agents;
use crate::decision::{ActionError, Outcome};
use crate::image_download;
use crate::log_archive::LogArchive;
use crate::log_download::LogDownload;
use agent_protocol::command::{ANNEAL, Addition, CommandList, CommandRequest, CommandStatus, Status};
use agent_protocol::record::RequiredVerification;
use agent_protocol::step::AdvertisedSteps;
use images::ImageStore;
use model::image::{PREPARE_INSTANCE_BOOT, WRITE_IMAGE, is_step};
use model::root_disk::Rules;
use model::{Contact, Node, PlannedStep, Run, RunKind, StepKind, StepResult};
use reqwest::{Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Sends requests to agents and interprets their answers.
#[derive(Clone)]
pub struct AgentClient {
    transport: Arc<dyn AgentTransport>,
    required: RequiredVerification,
    images: ImageStore,
    rules: Rules,
    hello_url: String,
    epoch: Option<u64>,
    timeout: Duration,
}

/// Why the agent returned no plan of an erase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The agent runs another command; it runs one at a time.
    #[error("{0}")]
    Busy(String),
    /// The agent rejects this step or its arguments.
    #[error("{0}")]
    Refused(String),
    /// The agent did not answer, or its answer is not usable.
    #[error("{0}")]
    Unreachable(String),
}

enum Fault {
    /// The agent answered with this status and text.
    Status(StatusCode, String),
    /// No usable answer.
    Transport(String),
}

impl AgentClient {
    /// A client over HTTPS whose calls end within `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, ..Self::over(Arc::new(Https::new(timeout))) }
    }

    /// A client over another transport.
    pub fn over(transport: Arc<dyn AgentTransport>) -> Self {
        let (required, images) = (RequiredVerification::default(), ImageStore::default());
        let (rules, hello_url) = (Rules::default(), String::new());
        Self { transport, required, images, rules, hello_url, epoch: None, timeout: Duration::ZERO }
    }

    /// Over a transport whose calls end within this.
    #[must_use]
    pub fn within(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// How long a call to this agent may take that it would not refuse under a lost lease.
    pub(crate) fn unfenced_call(&self, contact: &Contact) -> Duration {
        if agents::of(contact).takes_command_ids() { Duration::ZERO } else { self.timeout }
    }

    /// Whose commands carry the epoch of a lease: an agent of ours refuses them once it was sent a newer one.
    #[must_use]
    pub fn under(&self, epoch: u64) -> Self {
        Self { epoch: Some(epoch), ..self.clone() }
    }

    /// With the verification of erases that agents are asked for.
    #[must_use]
    pub fn requiring(self, required: RequiredVerification) -> Self {
        Self { required, ..self }
    }

    /// With the images that the controller serves, and the hosts that others may come from.
    #[must_use]
    pub fn serving(self, images: ImageStore) -> Self {
        Self { images, ..self }
    }

    /// With the rules by which agents choose the disk of an image.
    #[must_use]
    pub fn choosing(self, rules: Rules) -> Self {
        Self { rules, ..self }
    }

    /// With the base URL under which instances say hello.
    #[must_use]
    pub fn hearing_at(self, hello_url: &str) -> Self {
        Self { hello_url: hello_url.to_owned(), ..self }
    }

    /// Those images.
    pub(crate) fn images(&self) -> &ImageStore {
        &self.images
    }

    /// `clean.get_clean_steps` and the same of the other kinds. The wanted kind is required; the others are optional and
    /// fill the catalogue before they are needed.
    pub async fn ask_steps(&self, node: &Node, contact: &Contact, wanted: StepKind) -> Outcome {
        let mut steps_by_kind = BTreeMap::new();
        match self.ask_kind(node, contact, wanted).await {
            Ok(steps) => steps_by_kind.insert(wanted, steps),
            Err(outcome) => return *outcome,
        };
        for kind in StepKind::ALL.into_iter().filter(|kind| *kind != wanted) {
            match self.ask_kind(node, contact, kind).await {
                Ok(steps) => drop(steps_by_kind.insert(kind, steps)),
                Err(outcome) => {
                    tracing::debug!(node_uuid = %node.uuid, ?outcome, "the agent has no {} steps", kind.as_str())
                }
            }
        }
        Outcome::Steps(steps_by_kind)
    }

    fn node_as_sent(&self, node: &Node, contact: &Contact) -> Value {
        node_for_agent(node, contact, self.required)
    }

    async fn ask_kind(
        &self,
        node: &Node,
        contact: &Contact,
        kind: StepKind,
    ) -> Result<AdvertisedSteps, Box<Outcome>> {
        let kind = kind.as_str();
        let params = json!({ "node": self.node_as_sent(node, contact), "ports": [] });
        let request = self.request(contact, &format!("{kind}.get_{kind}_steps"), params, None);
        let status: CommandStatus = match self.call(contact, Method::POST, "?wait=true", Some(&request)).await
        {
            Ok(status) => status,
            Err(Fault::Status(StatusCode::CONFLICT, text)) => return Err(Box::new(Outcome::Busy(text))),
            Err(fault) => {
                return Err(Box::new(Outcome::Failed(fault.into_error(&format!("ask for {kind} steps")))));
            }
        };
        let wrong = |text: String| {
            Box::new(Outcome::Failed(ActionError {
                text: format!("the agent's {kind} steps cannot be used: {text}"),
                retryable: false,
                unreachable: false,
            }))
        };
        match (status.command_status, status.command_result) {
            (Status::Succeeded, Some(result)) => {
                serde_json::from_value::<AdvertisedSteps>(result).map_err(|error| wrong(error.to_string()))
            }
            (state, _) => {
                let reason = status.command_error.map(|error| error.details).unwrap_or_default();
                Err(wrong(format!("get_{kind}_steps ended {state:?} {reason}")))
            }
        }
    }

    /// `clean.execute_clean_step` or the same of another kind, under `command_id`. Idempotent.
    pub async fn send_step(
        &self,
        node: &Node,
        contact: &Contact,
        command_id: &str,
        run: RunKind,
        step: &PlannedStep,
    ) -> Outcome {
        let sent = self.node_as_sent(node, contact);
        let mut command = match command(node, contact, sent, run, step, &self.hello_url) {
            Ok(command) => command,
            Err(error) => {
                let text = error.to_string();
                return Outcome::Failed(ActionError { text, retryable: false, unreachable: false });
            }
        };
        if is_step(&step.step, WRITE_IMAGE) {
            let info = &mut command.params["step"]["args"]["image_info"];
            match image_download::download(&self.images, node, contact, true).await {
                Ok(download) => download.put_into(info, node, contact),
                // Ready once, it is missing only after a restart, or if it was removed: it comes again.
                Err(outcome) => return awaited(*outcome),
            }
            add_rules(&mut command.params, self.rules);
        }
        let agent = agents::of(contact);
        add_psids(&mut command.params, node, contact, &step.step.step);
        let checkpoint = node.run.as_ref().and_then(Run::resumes_from).filter(|_| agent.can_resume());
        // The command of this step does not name the node, and an agent that signs does.
        let named = is_step(&step.step, PREPARE_INSTANCE_BOOT) && agent.evidence_key().is_some();
        let addition =
            Addition { checkpoint: checkpoint.cloned(), node: named.then(|| node.uuid.to_string()) };
        if addition != Addition::default() {
            command.params[ANNEAL] = json!(addition);
        }
        if !agent.takes_command_ids() {
            let known = node.run.as_ref().map(|run| run.results.as_slice()).unwrap_or_default();
            match self.adopt(contact, command.short, known).await {
                Ok(Some(status)) => return Outcome::Command(status),
                Ok(None) => {}
                Err(fault) => return Outcome::Failed(fault.into_error("list commands")),
            }
        }
        let name = format!("{}.{}", command.extension, command.short);
        let request = self.request(contact, &name, command.params, Some(command_id));
        match self.call(contact, Method::POST, "?wait=false", Some(&request)).await {
            Ok(status) => Outcome::Command(status),
            Err(Fault::Status(StatusCode::CONFLICT, text)) => Outcome::Busy(text),
            Err(fault) => Outcome::Failed(fault.into_error(&format!("run step {}", step.label()))),
        }
    }

    /// The current step command of an agent that chooses its own ids, if the request reached it. Commands before one that
    /// was refused because hardware managers changed belong to an earlier plan, whose steps are run again.
    async fn adopt(
        &self,
        contact: &Contact,
        name: &str,
        known: &[StepResult],
    ) -> Result<Option<CommandStatus>, Fault> {
        let list: CommandList = self.call(contact, Method::GET, "", None).await?;
        let is_ours = |status: &CommandStatus| {
            status.command_name == name && known.iter().all(|result| result.command_id != status.id)
        };
        let newest_first = list.commands.into_iter().rev();
        let mut of_this_plan =
            newest_first.take_while(|status| status.command_status != Status::VersionMismatch);
        Ok(of_this_plan.find(is_ours))
    }

    /// The status of a command.
    pub async fn ask_command(&self, contact: &Contact, command_id: &str) -> Outcome {
        match self.call(contact, Method::GET, command_id, None).await {
            Ok(status) => Outcome::Command(status),
            Err(Fault::Status(StatusCode::NOT_FOUND, _)) => Outcome::NoSuchCommand,
            Err(fault) => Outcome::Failed(fault.into_error("ask for the running command")),
        }
    }

    /// Ask the agent to stop a command, then ask for the command's status.
    pub async fn cancel(&self, contact: &Contact, command_id: &str) -> Outcome {
        let request = self.request(contact, "anneal.cancel", json!({ "command_id": command_id }), None);
        let cancelled: Result<Value, Fault> =
            self.call(contact, Method::POST, "?wait=true", Some(&request)).await;
        match cancelled {
            Ok(_) => self.ask_command(contact, command_id).await,
            Err(fault) => Outcome::Failed(fault.into_error("cancel the running step")),
        }
    }

    /// `log.collect_system_logs`: a tar.gz, as the agent packed it, into the file of this name. Its content is not read here.
    ///
    /// # Errors
    /// The agent runs a command, cannot be reached, or sends something else; or its logs cannot be kept.
    pub async fn collect_logs(
        &self,
        contact: &Contact,
        archive: &LogArchive,
        name: &str,
    ) -> Result<(), ActionError> {
        let failed = |fault: Fault| fault.into_error("send its logs");
        let request = self.request(contact, "log.collect_system_logs", json!({}), None);
        let limit = agent_answer::with_archive(archive.max_bytes());
        let call = agent_call(limit, contact, Method::POST, "?wait=true", Some(&request)).map_err(failed)?;
        let mut download = LogDownload::to(archive.clone(), name.to_owned());
        let answered = self.transport.download(call, &mut download).await;
        if let Ok(status) = &answered
            && !status.is_success()
        {
            return Err(failed(refused(*status, download.refusal())));
        }
        let is_reached = answered.is_ok();
        let kept = download.end(answered.map(drop)).await;
        kept.map_err(|text| match is_reached {
            true => ActionError { text, retryable: false, unreachable: false },
            false => failed(Fault::Transport(text)),
        })
    }

    /// `anneal.plan_erase`: what an erase step would do to each disk, as the agent reports it. Changes nothing.
    ///
    /// # Errors
    /// The agent is busy with a step, refuses the step or its arguments, or cannot be reached.
    pub async fn plan_erase(&self, node: &Node, contact: &Contact, step: &Value) -> Result<Value, PlanError> {
        let mut params = json!({ "step": step, "node": self.node_as_sent(node, contact) });
        add_psids(&mut params, node, contact, step["step"].as_str().unwrap_or_default());
        let request = self.request(contact, "anneal.plan_erase", params, None);
        let status: CommandStatus = match self.call(contact, Method::POST, "?wait=true", Some(&request)).await
        {
            Ok(status) => status,
            Err(Fault::Status(StatusCode::CONFLICT, text)) => return Err(PlanError::Busy(text)),
            Err(fault) => return Err(PlanError::Unreachable(fault.into_error("plan the erase").text)),
        };
        match (status.command_status, status.command_result) {
            (Status::Succeeded, Some(plan)) => Ok(plan),
            (state, _) => {
                let reason = status.command_error.map(|error| error.details);
                Err(PlanError::Refused(reason.unwrap_or_else(|| format!("plan_erase ended {state:?}"))))
            }
        }
    }

    /// A command. What only our agent understands is sent to no other.
    fn request(&self, contact: &Contact, name: &str, params: Value, id: Option<&str>) -> CommandRequest {
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        let is_ours = agents::of(contact).takes_command_ids();
        CommandRequest {
            name: name.to_owned(),
            params,
            anneal_command_id: id.filter(|_| is_ours).map(str::to_owned),
            anneal_epoch: self.epoch.filter(|_| is_ours),
        }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        contact: &Contact,
        method: Method,
        tail: &str,
        body: Option<&CommandRequest>,
    ) -> Result<T, Fault> {
        let call = agent_call(agent_answer::ANSWER_MAX, contact, method, tail, body)?;
        let (status, bytes) = self.transport.call(call).await.map_err(Fault::Transport)?;
        if !status.is_success() {
            return Err(refused(status, &bytes));
        }
        agent_answer::parse(&bytes).map_err(Fault::Transport)
    }
}

/// A call whose answer has at most `limit` bytes.
fn agent_call(
    limit: usize,
    contact: &Contact,
    method: Method,
    tail: &str,
    body: Option<&CommandRequest>,
) -> Result<AgentCall, Fault> {
    let (Some(base), Some(token)) = (&contact.callback_url, &contact.token) else {
        return Err(Fault::Transport("the agent has not been heard since it was booted".into()));
    };
    let url = format!("{}/v1/commands/{tail}", base.trim_end_matches('/'));
    let mut url =
        Url::parse(&url).map_err(|error| Fault::Transport(format!("callback_url {base}: {error}")))?;
    // Ironic's protocol carries the token in the query. No message below may contain it.
    url.query_pairs_mut().append_pair("agent_token", token);
    let body = match body.map(serde_json::to_vec).transpose() {
        Ok(body) => body,
        Err(error) => return Err(Fault::Transport(format!("the command cannot be written: {error}"))),
    };
    Ok(AgentCall { method, url, body, certificate: contact.verify_ca.clone(), limit })
}

/// What an agent answers instead of what it was asked for.
fn refused(status: StatusCode, answer: &[u8]) -> Fault {
    let fault: Value = agent_answer::parse(answer).unwrap_or_default();
    let text = fault.get("faultstring").and_then(Value::as_str).unwrap_or("no reason given");
    Fault::Status(status, text.chars().take(500).collect())
}

/// An image that is not here yet is asked for again.
fn awaited(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::StepRunning(text) => {
            let text = format!("the controller waits for {text}");
            Outcome::Failed(ActionError { text, retryable: true, unreachable: false })
        }
        other => other,
    }
}

impl Fault {
    fn into_error(self, action: &str) -> ActionError {
        match self {
            Self::Status(status, text) => ActionError {
                text: format!("the agent refused to {action}: {} {text}", status.as_u16()),
                retryable: status.is_server_error(),
                unreachable: false,
            },
            Self::Transport(text) => ActionError {
                text: format!("the agent could not be reached to {action}: {text}"),
                retryable: true,
                unreachable: true,
            },
        }
    }
}
