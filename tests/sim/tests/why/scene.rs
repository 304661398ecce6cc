//! One node in a world of its own, the API that is asked about it, and an operator who does what the answers advise.

use super::{Seen, name};
use model::{Node, ProvisionState};
use room::Kind;
use serde_json::{Value, json};
use sim::faults::Faults;
use sim::http::{Answer, Request};
use sim::machine::{Disk, Machine};
use sim::offers::{Offer, Offers};
use sim::rng::SimRng;
use sim::run::{begin, within};
use sim::world::World;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::prelude::*;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// Between two looks at the row.
const LOOK: Duration = Duration::from_millis(100);
/// All limits of the settings, one after another.
const COMES_TO_REST: Duration = Duration::from_secs(8 * 3600);
/// Commands that an operator gives before the advice counts as useless.
const COMMANDS: usize = 12;

/// Scenes whose faults strike in no storm of the simulation, which therefore takes the reason that is stated for untrue.
const UNKNOWN_TO_STORMS: [&str; 3] =
    ["a disk is missing", "a foreign agent", "a foreign fetch of the boot script"];

/// The node, and who looks at it.
pub struct Scene {
    pub world: Arc<World>,
    pub machine: Arc<Machine>,
    title: String,
    seen: Arc<Mutex<Seen>>,
    watch: AbortHandle,
}

/// A machine with two disks, whose steps do what the scenes need.
pub fn machine(rng: &SimRng, kind: Option<Kind>) -> Machine {
    let mut machine = Machine::of(rng, 0, kind);
    machine.out_of_band.retain(|offer| ["erase_storage", "deploy"].contains(&offer.name.as_str()));
    for offer in &mut machine.out_of_band {
        (offer.outside, offer.takes) = (offer.name == "erase_storage", 5..10);
    }
    {
        let mut state = machine.state();
        let disk = |serial: &str| Disk { serial: serial.to_owned(), tenant: Some(0), bootable: true };
        state.disks = vec![disk("S1"), disk("S2")];
        let all = Offers::drawn(rng, kind);
        let wanted = |offer: &Offer| ["erase_devices", "deploy"].contains(&offer.name.as_str());
        let mut steps: Vec<Offer> = all.steps.into_iter().filter(wanted).collect();
        for step in &mut steps {
            (step.takes, step.abortable, step.reports_progress) = (60..70, true, false);
            (step.idempotent, step.reboot) = (kind == Some(Kind::Anneal), false);
        }
        let tune = steps.first().cloned().map(|step| Offer {
            interface: "bios",
            name: "tune".to_owned(),
            priorities: vec![(model::StepKind::Service, 0), (model::StepKind::Clean, 0)],
            ..step
        });
        steps.extend(tune);
        state.offers = Arc::new(Offers { version: 1, steps });
    }
    machine
}

impl Scene {
    /// Play a scene with a machine that has this agent.
    pub fn play<F: Future<Output = Self>>(
        title: &str,
        kind: Option<Kind>,
        scene: impl FnOnce(Self) -> F,
    ) -> Seen {
        within(|| async {
            let world =
                World::new(20, |rng| vec![machine(rng, kind)], std::env::var_os("WHY_LOUD").is_some());
            begin(&world).await;
            let machine = world.machines[0].clone();
            let seen = Arc::new(Mutex::new(Seen::default()));
            let watch = tokio::spawn(watch(world.clone(), machine.clone(), title.to_owned(), seen.clone()));
            let watch = watch.abort_handle();
            let scene = scene(Self { world, machine, title: title.to_owned(), seen, watch }).await;
            scene.watch.abort();
            let violation = scene.world.violation();
            let unknown =
                |rule: &str| UNKNOWN_TO_STORMS.contains(&title) && rule == "a_failure_states_the_true_reason";
            assert!(
                violation.as_ref().is_none_or(|violation| unknown(violation.rule)),
                "{title}: {violation:?}"
            );
            std::mem::take(&mut *scene.seen.lock().unwrap())
        })
    }

    /// The row.
    pub async fn node(&self) -> Node {
        self.world.disk.node(self.machine.uuid).await.unwrap()
    }

    /// An operator's request, over a network that loses nothing. A locked node is asked for again, and so is a controller that
    /// is being started.
    pub async fn ask(&self, method: &'static str, path: &str, body: Value) -> Answer {
        let request = Request::new(method, path).with(body.clone());
        let until = Instant::now() + COMES_TO_REST;
        loop {
            match self.world.serve(0, &request).await {
                Ok(answer) if answer.status != 409 || Instant::now() > until => return answer,
                Err(error) => assert!(Instant::now() < until, "{}: {path}: {error}", self.title),
                Ok(_) => {}
            }
            sleep(Duration::from_secs(5)).await;
        }
    }

    /// A request about the node that must be accepted.
    pub async fn does(&self, method: &'static str, tail: &str, body: Value) {
        let answer = self.ask(method, &format!("/v1/nodes/{}{tail}", self.machine.uuid), body.clone()).await;
        let text = String::from_utf8_lossy(&answer.bytes).into_owned();
        assert!(answer.is_good(), "{}: {method} {tail} {body}: {} {text}", self.title, answer.status);
    }

    /// A verb with what comes along.
    pub async fn verb(&self, target: &str, mut body: Value) {
        body["target"] = target.into();
        self.does("PUT", "/states/provision", body).await;
    }

    /// What the API answers to why.
    pub async fn why(&self) -> Value {
        let path = format!("/v1/anneal/nodes/{}/why", self.machine.name);
        let answer = self.ask("GET", &path, Value::Null).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.bytes));
        answer.json()
    }

    /// The commands that the answer advises.
    pub fn commands(why: &Value) -> Vec<String> {
        let commands = why["help"]["commands"].as_array().unwrap();
        commands.iter().map(|advice| advice["command"].as_str().unwrap().to_owned()).collect()
    }

    /// Wait until the row is like this; otherwise the scene fails with the answer to why.
    pub async fn until(&self, what: &str, is_so: impl Fn(&Node) -> bool) {
        let end = Instant::now() + COMES_TO_REST;
        while !is_so(&self.node().await) {
            if Instant::now() > end {
                panic!("{}: never {what}: {:#}", self.title, self.why().await);
            }
            sleep(LOOK).await;
        }
    }

    /// Wait for this state.
    pub async fn until_state(&self, state: ProvisionState) {
        self.until(state.as_str(), |node| node.provision_state == state).await;
    }

    /// Give the first advised command whenever the node waits for a user, until the node is in this state and in service. The
    /// commands that were given.
    pub async fn follow_to(&self, goal: ProvisionState) -> Vec<String> {
        let mut given = Vec::new();
        let end = Instant::now() + COMES_TO_REST;
        loop {
            let node = self.node().await;
            let arrived =
                node.provision_state == goal && !node.maintenance && node.target_power_state.is_none();
            if arrived {
                return given;
            }
            let why = self.why().await;
            let first = Self::commands(&why).into_iter().next();
            if why["next"]["by"] == "user" {
                let first = first.unwrap_or_else(|| panic!("{}: no command is named: {why:#}", self.title));
                assert!(given.len() < COMMANDS, "{}: {given:?} lead nowhere: {why:#}", self.title);
                self.follow(&first).await;
                given.push(first);
            }
            assert!(Instant::now() < end, "{}: never {}: {why:#}", self.title, goal.as_str());
            sleep(LOOK).await;
        }
    }

    /// Do what a command line of `anneal` does.
    pub async fn follow(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let node = self.machine.name.as_str();
        match words.as_slice() {
            ["anneal", "node", verb, named] if *named == node => {
                let target = match *verb {
                    "undeploy" => "deleted",
                    "deploy" => "active",
                    verb => verb,
                };
                let body =
                    if *verb == "rescue" { json!({"rescue_password": "let me in"}) } else { json!({}) };
                self.verb(target, body).await;
            }
            ["anneal", "node", "power", word, named] if *named == node => {
                let target = match *word {
                    "on" => "power on",
                    "off" => "power off",
                    other => panic!("{}: no scene asks for {other}", self.title),
                };
                self.does("PUT", "/states/power", json!({"target": target})).await;
            }
            ["anneal", "node", "maintenance", "unset", named] if *named == node => {
                self.does("DELETE", "/maintenance", Value::Null).await;
            }
            ["anneal", "node", "unset", named, "--retired"] if *named == node => {
                self.does("PATCH", "", json!([{"op": "add", "path": "/retired", "value": false}])).await;
            }
            ["anneal", "node", "unset", named, "--protected"] if *named == node => {
                self.does("PATCH", "", json!([{"op": "add", "path": "/protected", "value": false}])).await;
            }
            ["anneal", "node", "set", named, "--property", pair] if *named == node => {
                let (key, value) = pair.split_once('=').unwrap();
                let patch = json!([{"op": "add", "path": format!("/properties/{key}"), "value": value}]);
                self.does("PATCH", "", patch).await;
            }
            ["anneal", "node", "disks", "retire", named, disk, "--reason", ..] if *named == node => {
                let path = format!("/v1/anneal/nodes/{node}/disks/retire");
                let answer = self.ask("POST", &path, json!({"disk": disk, "reason": "gone"})).await;
                assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.bytes));
            }
            _ => panic!("{}: no operator of this test knows the command {line:?}", self.title),
        }
    }

    /// From the enrolment to MANAGEABLE.
    pub async fn managed(&self) {
        self.verb("manage", json!({})).await;
        self.until_state(ProvisionState::Manageable).await;
    }

    /// From the enrolment to AVAILABLE.
    pub async fn available(&self) {
        self.managed().await;
        self.verb("provide", json!({})).await;
        self.until_state(ProvisionState::Available).await;
    }

    /// From the enrolment to ACTIVE.
    pub async fn active(&self) {
        self.available().await;
        self.verb("active", json!({})).await;
        self.until_state(ProvisionState::Active).await;
    }

    /// This goes wrong from now on.
    pub fn suffer(&self, faults: Faults) {
        *self.world.faults.lock().unwrap() = faults;
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        sim::storm::calm_down(&self.world);
    }
}

/// Asks why whenever the row is at another place, and checks what every answer must have.
async fn watch(world: Arc<World>, machine: Arc<Machine>, title: String, seen: Arc<Mutex<Seen>>) {
    let mut asked = BTreeSet::new();
    let path = format!("/v1/anneal/nodes/{}/why", machine.uuid);
    loop {
        let node = world.disk.node(machine.uuid).await.unwrap();
        let cursor = node.run.as_ref().map_or("done", |run| name(&run.cursor));
        let attempts = node.run.as_ref().map_or(0, |run| run.attempts);
        let place = (node.provision_state, cursor, attempts, node.maintenance, node.last_error.clone());
        if !asked.contains(&place)
            && let Ok(answer) = world.serve(0, &Request::new("GET", &path)).await
        {
            let why = answer.json();
            assert_eq!(answer.status, 200, "{title}: {why}");
            judge(&title, &why);
            // The row may have changed since it was read.
            if world.disk.node(machine.uuid).await.unwrap().version == node.version {
                if let Some(error) = &node.last_error {
                    let text = format!("the last error: {error}");
                    let is_quoted = |tried: &Value| tried["text"] == text.as_str();
                    assert!(why["tried"].as_array().unwrap().iter().any(is_quoted), "{title}: {why:#}");
                }
                if let Some(wait) = node.wait.as_ref().filter(|_| why["next"]["by"] == "controller") {
                    assert_eq!(why["waits_for"]["text"], wait.reason.as_str(), "{title}: {why:#}");
                    assert_eq!(
                        why["waits_for"]["until"].is_null(),
                        wait.deadline.is_none(),
                        "{title}: {why:#}"
                    );
                }
                let mut seen = seen.lock().unwrap();
                seen.states.insert(node.provision_state.as_str());
                seen.cursors.insert(cursor);
                seen.awaited.insert(why["waits_for"]["what"].as_str().unwrap_or_default().to_owned());
                asked.insert(place);
            }
        }
        sleep(LOOK).await;
    }
}

/// An answer has all its parts: a text and a time of what is awaited, what comes next, and a command or that none is needed.
fn judge(title: &str, why: &Value) {
    let text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let whole = text(&why["waits_for"]["text"])
        && text(&why["waits_for"]["since"])
        && why["waits_for"]["age_s"].is_u64()
        && text(&why["next"]["text"])
        && text(&why["help"]["text"]);
    assert!(whole, "{title}: {why:#}");
    let by_user = why["next"]["by"] == "user";
    let says_that_none_is_needed = why["help"]["text"].as_str().unwrap().starts_with("no command is needed");
    let has_commands = !Scene::commands(why).is_empty();
    assert!(if by_user { has_commands } else { says_that_none_is_needed }, "{title}: {why:#}");
    assert!(
        by_user || !why["next"]["at"].is_null() || why["waits_for"]["until"].is_null(),
        "{title}: {why:#}"
    );
}
