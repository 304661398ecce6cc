//! One conversation, walked.

use super::agent::{Agent, Command};
use super::compare::{Difference, compare};
use super::conversation::{Action, Conversation, Exchange};
use super::exchange::{differences, in_common, unasked};
use super::http::{self, Request};
use super::listed::{List, writing};
use super::names::Names;
use crate::controller::Controller;
use crate::process::wait_until;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long an answer may take to become what was recorded: our node may still be on its way.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same while the list is written, when much may differ; and for what is listed as not coming.
const HASTE: Duration = Duration::from_millis(1500);
/// How long what the operator waits for may take.
const LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
/// The event of our node's history after logs of its ramdisk were stored.
const LOGS_KEPT: &str = "the logs of the ramdisk are kept";
/// States that a node leaves by itself.
const PASSING: [&str; 4] = ["cleaning", "deleting", "deploying", "unrescuing"];
/// What came out.
#[derive(Debug, Default)]
pub struct Tally {
    /// Exchanges that were compared.
    pub compared: usize,
    /// Those without any difference.
    pub agree: usize,
    /// Those that ours does not have at all, since it need not ask.
    pub unasked: usize,
    /// Requests whose answer the recorder missed: ours was received, and could not be compared.
    pub unanswered: usize,
    /// Everything that differs.
    pub found: BTreeMap<(String, usize), Vec<Difference>>,
    /// What is not as the list says.
    pub objections: Vec<String>,
}

/// A walk through one conversation.
pub struct Walk<'a> {
    conversation: &'a Conversation,
    controller: &'a mut Controller,
    /// Host and port of our API.
    address: String,
    /// The operators' token.
    token: Option<String>,
    list: &'a List,
    tally: &'a mut Tally,
    names: Names,
    agent: Agent,
    /// Commands of our conductor at a time when no recorded answer was due.
    unasked: Vec<Difference>,
    /// What the agent answered to commands that ended at once, by what they asked for.
    answered: BTreeMap<String, Value>,
    /// A command that came while a question was waited for, and is of a later line.
    held: Option<Command>,
    /// An answer that has a result at once. It is on its way until the recorded agent's next heartbeat came, since
    /// Ironic waits for that, and ours would be done before it.
    late: Option<(Command, u16, Value)>,
    /// How often the agent sent its logs.
    logs: usize,
}

impl<'a> Walk<'a> {
    /// Before the first line.
    ///
    /// # Errors
    /// When the agent has no port or no certificate.
    pub fn new(
        conversation: &'a Conversation,
        controller: &'a mut Controller,
        list: &'a List,
        tally: &'a mut Tally,
    ) -> Result<Self> {
        let address = controller.endpoint.trim_start_matches("http://").to_owned();
        let token = controller.token();
        let recorded = conversation.certificate();
        let agent = Agent::start(recorded.is_some())?;
        let mut names = Names::default();
        names.pair("127.0.0.1:6385", &address);
        names.pair("127.0.0.1:9999", &agent.address);
        if let (Some(recorded), Some(ours)) = (recorded, &agent.pem) {
            names.pair(recorded, ours);
        }
        Ok(Self {
            conversation,
            controller,
            address,
            token,
            list,
            tally,
            names,
            agent,
            unasked: Vec::new(),
            held: None,
            late: None,
            logs: 0,
            answered: BTreeMap::new(),
        })
    }

    /// Every line, and what the operator did between them.
    ///
    /// # Errors
    /// When our controller does not answer, or a node does not get where an operator waited for it.
    pub fn run(mut self) -> Result<()> {
        for (index, line) in self.conversation.lines.iter().enumerate() {
            let number = index + 1;
            self.operate(number)?;
            let context =
                || format!("{} line {number}: {} {}", self.conversation.name, line.method, line.path);
            let context = context();
            let mut found = match line.from.as_str() {
                "ironic" => self.hear(number, line),
                _ => self.say(number, line).context(context)?,
            };
            if line.path.starts_with("/v1/heartbeat")
                && let Some((command, status, answer)) = self.late.take()
            {
                command.answer(status, answer);
            }
            found.append(&mut self.unasked);
            if line.status.is_some() {
                self.note(number, found);
            } else {
                self.tally.unanswered += 1;
            }
        }
        self.operate(self.conversation.lines.len() + 1)
    }

    fn note(&mut self, line: usize, found: Vec<Difference>) {
        let name = self.conversation.name.as_str();
        self.tally.compared += 1;
        self.tally.agree += usize::from(found.is_empty());
        self.tally.unasked += usize::from(found.iter().any(|one| *one == unasked(&one.theirs)));
        self.tally.objections.extend(self.list.objections(name, line, &found));
        if !found.is_empty() {
            self.tally.found.insert((name.to_owned(), line), found);
        }
    }

    /// What the operator did before this line.
    fn operate(&mut self, line: usize) -> Result<()> {
        for action in self.conversation.actions.iter().filter(|action| action.before == line) {
            self.action(action)
                .with_context(|| format!("{} before line {line}: {action:?}", self.conversation.name))?;
        }
        Ok(())
    }

    /// Waits until the logs that the agent sent are stored, so that no request of the operator's comes between: the
    /// conductor would ask for them again.
    fn keep_logs(&self) -> Result<()> {
        wait_until("the ramdisk's logs are kept", LIMIT, || {
            Ok(count_events(&self.look("/history")?, LOGS_KEPT)? >= self.logs)
        })
    }

    /// What our API shows of the node that the first action made.
    fn look(&self, tail: &str) -> Result<Value> {
        let made = &self.conversation.actions[0].body["name"];
        let path = format!("/v1/nodes/{}{tail}", made.as_str().context("the first action makes the node")?);
        let request = Request { method: "GET".into(), path, body: Value::Null };
        Ok(http::ask(&self.address, self.token.as_deref(), Some("1.115"), &request)?.body)
    }

    fn action(&mut self, action: &Action) -> Result<()> {
        if self.logs > 0 {
            self.keep_logs()?;
        }
        if !action.once.is_empty() {
            self.wait(&format!("the history has {:?}", action.once), |walk| {
                Ok(count_events(&walk.look("/history")?, &action.once)? > 0)
            })?;
        }
        if action.restarts {
            self.controller.kill();
            self.controller.start_again()?;
        }
        if !action.method.is_empty() {
            let body = self.names.in_value(&action.body);
            let request = Request { method: action.method.clone(), path: action.path.clone(), body };
            let answer = http::ask(&self.address, self.token.as_deref(), Some("1.115"), &request)?;
            ensure!(answer.status < 300, "{}: {}", answer.status, answer.body);
        }
        if action.until.is_empty() {
            return Ok(());
        }
        let mut seen = Value::Null;
        self.wait(&format!("the node becomes {}", action.until), |walk| {
            seen = walk.look("")?;
            Ok(seen["provision_state"] == action.until.as_str())
        })
        .with_context(|| format!("it is {}: {}", seen["provision_state"], seen["last_error"]))
    }

    /// Waits for something, and meanwhile takes the commands that no recorded line is about.
    fn wait(&mut self, what: &str, mut come: impl FnMut(&Self) -> Result<bool>) -> Result<()> {
        wait_until(what, LIMIT, || {
            while let Some(command) = self.held.take().or_else(|| self.agent.next(Duration::ZERO)) {
                let unasked = self.refuse(command);
                self.unasked.push(unasked);
            }
            come(self)
        })
    }

    /// Asks what a client or an agent asked, until the answer is as recorded and listed or time is out.
    fn say(&mut self, number: usize, line: &Exchange) -> Result<Vec<Difference>> {
        let request = Request {
            method: line.method.clone(),
            path: self.names.in_text(&line.path),
            body: self.names.in_value(&line.sent),
        };
        if request.path.starts_with("/v1/lookup") {
            // An agent that looks up has just begun.
            self.agent.has(json!({"commands": []}));
        }
        let passing = line.answer["provision_state"].as_str().filter(|state| PASSING.contains(state));
        let missed = passing.map(|state| self.missed(&request.path, state)).transpose()?.flatten();
        let begun = Instant::now();
        loop {
            let ours = http::ask(&self.address, self.token.as_deref(), line.version.as_deref(), &request)?;
            let mut names = std::mem::take(&mut self.names);
            let before = names.clone();
            let mut found = differences(line, &ours, passing.is_some(), &mut names);
            found.extend(missed.clone());
            // A lookup that gave the token away cannot be repeated. What is refused for the moment is asked again, as
            // clients do.
            let looked_up = request.path.starts_with("/v1/lookup")
                && ours.status < 400
                && ours.body["config"]["agent_token"] != "******";
            let repeats = ours.status == 409 || request.method == "GET" && !looked_up;
            let settled = line.status.is_none() || self.list.expects(&self.conversation.name, number, &found);
            if settled || !repeats || begun.elapsed() > patience() {
                self.names = names;
                return Ok(found);
            }
            self.names = before;
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until our node's history has a state in which the recorded client saw the node, since how long our node
    /// stays in that state is not known.
    fn missed(&self, path: &str, state: &str) -> Result<Option<Difference>> {
        let node = path.split('?').next().unwrap_or_default();
        let request = Request { method: "GET".into(), path: format!("{node}/history"), body: Value::Null };
        let entered = format!("-> {state}");
        let begun = Instant::now();
        while begun.elapsed() < patience() {
            let history = http::ask(&self.address, self.token.as_deref(), Some("1.115"), &request)?.body;
            if count_events(&history, &entered)? > 0 {
                return Ok(None);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Some(Difference { at: "/passed".into(), theirs: json!(state), ours: json!("(never)") }))
    }

    /// Waits for what Ironic's conductor asked the agent, and answers as the agent did.
    fn hear(&mut self, number: usize, line: &Exchange) -> Vec<Difference> {
        let mut found = Vec::new();
        let answer = self.names.in_value(&line.answer);
        let questions = line.method == "GET";
        if questions {
            self.agent.has(answer.clone());
        }
        let absent = unasked(&json!(line.method));
        let begun = Instant::now();
        let patience = if self.list.has(&self.conversation.name, number, &absent) { HASTE } else { PATIENCE };
        while begun.elapsed() < patience {
            if questions && let Some(request) = self.agent.asked() {
                self.asked(line, &request, &mut found);
                return found;
            }
            let Some(command) = self.held.take().or_else(|| self.agent.next(PAUSE)) else { continue };
            if questions && self.agent.asked().is_some() {
                self.held = Some(command);
                continue;
            }
            if questions && self.comes_next(number, &command) {
                // Ours knows already what Ironic's asks for here.
                self.held = Some(command);
                break;
            }
            if questions || command.request.body["name"] != line.sent["name"] {
                found.push(self.refuse(command));
                continue;
            }
            self.asked(line, &command.request, &mut found);
            let waits = line.path.contains("wait=true");
            self.logs += usize::from(line.sent["name"] == "log.collect_system_logs");
            if waits || !answer["command_result"].is_null() {
                self.answered.insert(asks_for(&line.sent), answer.clone());
            }
            self.agent.took(answer.clone());
            let status = line.status.unwrap_or(500);
            let next = self.conversation.lines.get(number);
            let beats = next.is_some_and(|next| next.path.starts_with("/v1/heartbeat"));
            if !waits && beats && answer["command_status"] != "RUNNING" {
                self.late = Some((command, status, answer));
            } else {
                command.answer(status, answer);
            }
            return found;
        }
        found.push(absent);
        found
    }

    /// Whether the command is what Ironic's conductor sent after this line, before it heard the agent again.
    fn comes_next(&self, number: usize, command: &Command) -> bool {
        let mut rest = self.conversation.lines[number..].iter().take_while(|line| line.from == "ironic");
        let next = rest.find(|line| line.method == "POST");
        next.is_some_and(|next| next.sent["name"] == command.request.body["name"])
    }

    /// Takes a command that Ironic's conductor did not send here: an agent answers what it answered before, and refuses
    /// what it does not know.
    fn refuse(&self, command: Command) -> Difference {
        let name = command.request.body["name"].clone();
        match self.answered.get(&asks_for(&command.request.body)) {
            Some(answer) => command.answer(200, answer.clone()),
            None => {
                let fault =
                    json!({"type": "InvalidCommandError", "code": 404, "faultstring": "Unknown command"});
                command.answer(404, fault);
            }
        }
        let at = format!("/unasked/{}", name.as_str().unwrap_or_default());
        Difference { at, theirs: json!("(absent)"), ours: json!("POST") }
    }

    fn asked(&mut self, line: &Exchange, ours: &Request, found: &mut Vec<Difference>) {
        let mut theirs = json!({"method": line.method, "path": line.path, "body": line.sent});
        let mut ours = json!({"method": ours.method, "path": ours.path, "body": ours.body});
        let node = "/body/params/node";
        if let (Some(theirs), Some(ours)) = (theirs.pointer_mut(node), ours.pointer_mut(node)) {
            in_common(theirs, ours);
        }
        if ours["body"]["params"]["ports"] == json!([]) {
            // No agent that is known reads them; ours sends none.
            theirs["body"]["params"]["ports"] = json!([]);
        }
        compare(&theirs, &ours, "", &mut self.names, found);
    }
}

/// The name of a command, and of its step when it has one.
fn asks_for(body: &Value) -> String {
    format!("{} {}", body["name"], body["params"]["step"]["step"])
}

/// How many events of a history have this text.
fn count_events(history: &Value, text: &str) -> Result<usize> {
    let events = history["history"].as_array().context("a history")?;
    Ok(events.iter().filter(|one| one["event"].as_str().is_some_and(|event| event.contains(text))).count())
}

fn patience() -> Duration {
    if writing() { HASTE } else { PATIENCE }
}
