//! The agent of one boot: it reports the hardware, looks itself up, sends heartbeats, and runs the commands that it gets.

use crate::behaviour::Chance;
use crate::contact::Contact;
use crate::fetches::Fetches;
use crate::firmware::CommandLine;
use crate::journal::{What, now};
use crate::machine::Machine;
use agent_protocol::heartbeat::Heartbeat;
use agent_protocol::step::Step;
use agent_protocol::{HEARTBEAT_MICROVERSION, LOOKUP_MICROVERSION};
use agentd::heartbeat::{Activity, Outcome, Pace};
use agentd::lookup::{self, LookupResult};
use agentd::token::Token;
use anyhow::{Context, Result, ensure};
use bench::agent::step;
use bench::server::Answer;
use contract::certificate;
use hyper::Method;
use model::StepKind;
use room::{Begun, Call, Ending, Kind, Reply, Work, advertised, deployed, erased, held, step_result};
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

/// Bytes of the disk of a machine.
const DISK: u64 = 1 << 30;
/// In which ironic-python-agent reports its hardware, and ours.
const INSPECTION_MICROVERSION: &str = "1.1";
/// Tries of an inspection, as the real agent's.
const REPORTS: u64 = 5;
/// Longest wait between two lookups, as the real agent's.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(30);
/// The clean steps, in the order in which they are run, and whether they may be run again after an interruption.
const CLEAN: [(&str, bool); 3] = [("burnin_cpu", false), ("erase_devices", true), ("verify_settings", false)];
/// The same of the deploy steps. The priority of `write_image` is the one that the interface `direct` gives it.
const DEPLOY: [(&str, bool); 3] =
    [("apply_settings", false), ("write_image", true), ("inspect_settings", false)];

/// An agent in one boot of its machine.
pub struct Agent {
    /// Its ids, its token and its commands.
    pub process: room::Agent,
    /// What encrypts its API.
    pub tls: TlsAcceptor,
    /// The certificate of that, in PEM.
    certificate: String,
    machine: Arc<Machine>,
    /// Dies in its first step.
    dies: bool,
    me: Weak<Self>,
}

/// The agent as one controller speaks to it.
pub struct Heard {
    /// The agent.
    pub agent: Arc<Agent>,
    /// The controller.
    pub from: IpAddr,
}

impl Agent {
    fn new(machine: Arc<Machine>) -> Result<Arc<Self>> {
        let (tls, certificate) = certificate::own()?;
        let id = || Uuid::new_v4().to_string();
        let process = room::Agent::new(Kind::Anneal, id(), id());
        let share = machine.behaviour().agent.dies_in_step;
        let dies = machine.chance().happens(share, "dies", machine.turn());
        Ok(Arc::new_cyclic(|me| Self {
            process,
            tls: tls.into(),
            certificate,
            machine,
            dies,
            me: me.clone(),
        }))
    }

    fn chance(&self) -> Chance {
        self.machine.chance()
    }

    /// The steps of a kind that it offers.
    pub fn steps(kind: StepKind) -> Vec<Step> {
        let (steps, mut priority): (&[_], _) = match kind {
            StepKind::Clean => (&CLEAN, 40),
            StepKind::Deploy => (&DEPLOY, 100),
            StepKind::Service => (&[], 0),
        };
        let step = |(name, idempotent): &(&str, bool)| {
            priority -= 10;
            let other = Map::from_iter([("idempotent".to_owned(), json!(idempotent))]);
            Step { other, ..step(name, priority) }
        };
        steps.iter().map(step).collect()
    }

    /// The steps of a kind as they are run, in order: `deploy.erase_devices`.
    pub fn expected(kind: StepKind) -> Vec<String> {
        Self::steps(kind).iter().map(|step| format!("{}.{}", step.interface, step.step)).collect()
    }

    /// Runs a step for its time. Then it has ended, unless the machine lost its power meanwhile.
    async fn run(self: Arc<Self>, id: String, ending: Ending) {
        let span = self.machine.behaviour().agent.step_ms;
        let takes = self.chance().time(span, "step", self.machine.turn());
        let takes = if self.dies { takes / 2 } else { takes };
        tokio::select! {
            () = sleep(takes) => {}
            () = self.process.died.cancelled() => return,
        }
        if self.dies {
            self.machine.note(What::Died);
            return self.machine.lose_agent();
        }
        self.process.finish(&id, ending);
    }

    /// Fetches the image of a command, where images are measured.
    async fn fetch(self: Arc<Self>, fetches: Arc<Fetches>, image_info: Value, id: String, done: Ending) {
        let ending = match fetches.take_part(&image_info).await {
            Ok(()) => done,
            Err(error) => Ending::failed("ImageDownload", "the image was not fetched", format!("{error:#}")),
        };
        self.process.finish(&id, ending);
    }
}

impl Work for Agent {
    fn steps(&self, kind: StepKind) -> Value {
        advertised(kind, "fleet", "1", &Self::steps(kind))
    }

    fn begin(&self, begun: Begun<'_>) {
        let step = begun.field("step");
        let label = format!("{}.{step}", begun.field("interface"));
        let idempotent = CLEAN.iter().chain(&DEPLOY).any(|(name, again)| *name == step && *again);
        self.machine.note(What::Step { step: label, id: begun.id.to_owned(), idempotent });
        let serial = self.machine.mac.replace(':', "");
        let report = match step {
            "erase_devices" => json!({ "disks": [erased(step, "/dev/sda", &serial, DISK)] }),
            "write_image" => {
                let image = &begun.params["step"]["args"]["image_info"];
                let digest = image["os_hash_value"].as_str().unwrap_or_default();
                json!({ "image": deployed("/dev/sda", &serial, DISK, digest) })
            }
            _ => Value::Null,
        };
        let result = step_result(begun.kind, &begun.params["step"], &report);
        let Some(me) = self.me.upgrade() else { return };
        let (id, done) = (begun.id.to_owned(), Ending::done(Some(result)));
        match self.machine.shared.fetches.get().filter(|_| step == "write_image") {
            Some(fetches) => {
                let image_info = begun.params["step"]["args"]["image_info"].clone();
                drop(tokio::spawn(me.fetch(fetches.clone(), image_info, id, done)));
            }
            None => drop(tokio::spawn(me.run(id, done))),
        }
    }

    fn rescue(&self, _params: &Map<String, Value>) -> Ending {
        Ending::done(None)
    }
}

impl Answer for Heard {
    fn answer(&self, call: &Call) -> Reply {
        let (at, agent) = (now(), &self.agent);
        let reply = agent.process.answer(&**agent, call);
        if let Some(request) = call.command() {
            let (name, id, epoch) = (request.name, request.anneal_command_id, request.anneal_epoch);
            let what = What::Command { from: self.from, name, id, epoch, status: reply.0.as_u16() };
            agent.machine.shared.journal.note(at, agent.machine.number, what);
        }
        reply
    }
}

/// Lives until its machine loses power, or it dies.
///
/// # Errors
/// When it cannot make its certificate.
pub async fn live(machine: &Arc<Machine>, boot: u32, line: &CommandLine) -> Result<()> {
    let agent = Agent::new(machine.clone())?;
    let mut contact = Contact::new(machine.clone(), line)?;
    if line.inspects {
        inspect(&agent, &mut contact).await;
    }
    if !machine.start(boot, agent.clone()) {
        return Ok(());
    }
    tokio::select! {
        () = agent.process.died.cancelled() => {}
        () = serve(&agent, &mut contact) => {}
    }
    Ok(())
}

/// Looks itself up and sends heartbeats, without end.
async fn serve(agent: &Agent, contact: &mut Contact) {
    let mut found = look_up(agent, contact).await;
    let mut failures = 0;
    loop {
        let sent = Instant::now();
        let outcome = beat(agent, contact, &found).await;
        if outcome == Outcome::Refused
            && let Ok(fresh) = ask(agent, contact, Some(&found.token)).await
        {
            *held(&agent.process.token) = Some(fresh.token.expose().to_owned());
            found = fresh;
        }
        failures = if outcome == Outcome::Accepted { 0 } else { failures + 1 };
        let pace = Pace {
            heartbeat_timeout: found.heartbeat_timeout,
            extension: found.extension,
            outcome,
            failures,
            random: agent.chance().unit("beat", agent.machine.turn()),
        };
        rest(&agent.process, sent, &pace).await;
    }
}

/// Waits until the next heartbeat is due.
async fn rest(process: &room::Agent, sent: Instant, pace: &Pace) {
    let mut activity = Activity::default();
    loop {
        tokio::select! {
            biased;
            () = process.ended.notified() => activity.ended = true,
            () = sleep_until(sent + pace.due_after(activity)) => return,
        }
    }
}

async fn inspect(agent: &Agent, contact: &mut Contact) {
    let (machine, chance) = (&agent.machine, agent.chance());
    sleep(chance.time(machine.behaviour().agent.inspect_ms, "inspect", machine.turn())).await;
    let serial = machine.mac.replace(':', "");
    let body = json!({
        "inventory": {
            "interfaces": [{ "name": "eth0", "mac_address": machine.mac, "ipv4_address": machine.address }],
            "cpu": { "count": 8, "architecture": "x86_64" },
            "memory": { "physical_mb": 4096 },
            "disks": [{ "name": "/dev/sda", "size": DISK, "serial": serial }],
            "system_vendor": { "manufacturer": "Anneal", "product_name": "fleet", "serial_number": serial },
            "bmc_address": machine.address,
            "boot": { "pxe_interface": machine.mac },
        },
        "boot_interface": machine.mac,
    });
    for attempt in 0..REPORTS {
        let body = body.to_string().into_bytes();
        match contact.ask(INSPECTION_MICROVERSION, Method::POST, "/v1/continue_inspection", body).await {
            Ok((202, _)) => return,
            Ok((409, _)) | Err(_) => sleep(Duration::from_secs(5 + attempt)).await,
            Ok((status, text)) => {
                let text = String::from_utf8_lossy(&text);
                return eprintln!("anneal-fleet: node {}: inspection: {status} {text}", machine.number);
            }
        }
    }
}

async fn look_up(agent: &Agent, contact: &mut Contact) -> LookupResult {
    let mut failures = 0;
    loop {
        let pause = match ask(agent, contact, None).await {
            Ok(found) => {
                *held(&agent.process.token) = Some(found.token.expose().to_owned());
                return found;
            }
            Err(error) => {
                let random = agent.chance().unit("lookup", agent.machine.turn());
                let again = lookup::LookupError::Answer(String::new());
                let pause = lookup::delay(&again, failures, LOOKUP_INTERVAL, random);
                if failures > 2 {
                    eprintln!("anneal-fleet: node {}: lookup: {error:#}", agent.machine.number);
                }
                pause
            }
        };
        failures += 1;
        sleep(pause).await;
    }
}

async fn ask(agent: &Agent, contact: &mut Contact, own: Option<&Token>) -> Result<LookupResult> {
    let (mac, boot_id) = (&agent.machine.mac, &agent.process.boot_id);
    let path = format!("/v1/lookup?addresses={mac}&anneal_boot_id={boot_id}");
    let (status, body) = contact.ask(LOOKUP_MICROVERSION, Method::GET, &path, Vec::new()).await?;
    let found = lookup::judge(status, &body, own)?;
    ensure!(found.extension, "the controller does not offer Anneal's extension");
    Ok(found)
}

async fn beat(agent: &Agent, contact: &mut Contact, found: &LookupResult) -> Outcome {
    let machine = &agent.machine;
    if agent.chance().happens(machine.behaviour().agent.lost_heartbeats, "lost", machine.turn()) {
        return Outcome::Accepted;
    }
    match try_to_beat(agent, contact, found).await {
        Ok((202, _)) => Outcome::Accepted,
        Ok((status @ (400 | 401 | 403 | 404), body)) => {
            let text = String::from_utf8_lossy(&body);
            eprintln!("anneal-fleet: node {}: heartbeat: {status} {text}", machine.number);
            Outcome::Refused
        }
        _ => Outcome::Failed,
    }
}

async fn try_to_beat(
    agent: &Agent,
    contact: &mut Contact,
    found: &LookupResult,
) -> Result<bench::client::Answer> {
    let beat = Heartbeat {
        callback_url: format!("https://{}:{}", agent.machine.address, agent.machine.shared.ports.agent),
        agent_token: Some(found.token.expose().to_owned()),
        agent_version: Some("fleet".to_owned()),
        agent_verify_ca: Some(agent.certificate.clone()),
        anneal: Some(agent.process.state()),
    };
    let body = serde_json::to_vec(&beat).context("a heartbeat")?;
    let path = format!("/v1/heartbeat/{}", found.node_uuid);
    contact.ask(HEARTBEAT_MICROVERSION, Method::POST, &path, body).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::Behaviour;
    use crate::fleet::{Fleet, Setup};
    use crate::journal::Journal;
    use crate::network::Network;
    use agent_protocol::command::{CommandStatus, Status};

    /// A fleet of one, whose machine is on with an agent that has got a step.
    async fn at_work(behaviour: &str) -> (Fleet, Arc<Agent>, CommandStatus) {
        let setup = Setup {
            nodes: 1,
            network: Network::LOOPBACK,
            bmc_tls: false,
            behaviour: Behaviour::parse(behaviour).unwrap(),
            boot: Vec::new(),
            controllers: Vec::new(),
        };
        let fleet = Fleet::start(setup, Journal::memory(), 1).await.unwrap();
        let machine = fleet.machines[0].clone();
        machine.switch(true);
        let agent = Agent::new(machine.clone()).unwrap();
        assert!(machine.start(1, agent.clone()));
        *held(&agent.process.token) = Some("token".to_owned());
        let step = json!({ "step": "erase_devices", "interface": "deploy" });
        let body = json!({
            "name": "clean.execute_clean_step",
            "params": { "step": step, "node": { "uuid": crate::network::uuid(0) } },
            "anneal_command_id": "id",
            "anneal_epoch": 7,
        });
        let call = Call::new("/v1/commands/", Some("agent_token=token"), Some(body.to_string().into_bytes()));
        let heard = Heard { agent: agent.clone(), from: [127, 0, 0, 1].into() };
        let (status, answer) = heard.answer(&call);
        assert_eq!(status.as_u16(), 200);
        (fleet, agent, serde_json::from_slice(&answer).unwrap())
    }

    fn noted(fleet: &Fleet, is: impl Fn(&What) -> bool) -> bool {
        fleet.shared.journal.take().iter().any(|entry| is(&entry.what))
    }

    #[tokio::test]
    async fn a_step_takes_its_time_and_ends_with_signed_evidence() {
        let (fleet, agent, begun) = at_work("[agent]\nstep_ms = [50, 50]\n").await;
        assert_eq!((&begun.id[..], begun.command_status), ("id", Status::Running));
        agent.process.ended.notified().await;
        let ended = held(&agent.process.registry).status("id").unwrap();
        assert_eq!(ended.command_status, Status::Succeeded);
        assert!(ended.command_result.unwrap().get("anneal_evidence").is_some());
        let is_command = |what: &What| matches!(what, What::Command { epoch: Some(7), status: 200, name, .. } if name.ends_with("clean_step"));
        assert!(noted(&fleet, is_command));
    }

    #[tokio::test]
    async fn an_agent_that_dies_in_a_step_is_gone_and_its_machine_stays_on() {
        let (fleet, agent, _) = at_work("[agent]\nstep_ms = [40, 40]\ndies_in_step = 1.0\n").await;
        agent.process.died.cancelled().await;
        let machine = &fleet.machines[0];
        assert!(machine.agent().is_none() && machine.is_on());
        assert!(noted(&fleet, |what| *what == What::Died));
        assert_eq!(held(&agent.process.registry).status("id").unwrap().command_status, Status::Running);
    }

    #[tokio::test]
    async fn without_power_no_step_ends() {
        let (fleet, agent, _) = at_work("[agent]\nstep_ms = [60000, 60000]\n").await;
        fleet.machines[0].switch(false);
        agent.process.died.cancelled().await;
        assert!(fleet.machines[0].agent().is_none() && noted(&fleet, |what| *what == What::Off));
        let late = Agent::new(fleet.machines[0].clone()).unwrap();
        assert!(!fleet.machines[0].start(1, late), "that boot is over");
    }
}
