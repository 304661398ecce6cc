//! What holds a pass together: its lease, and how much it stores at once.

use crate::situation;
use crate::world::{World, asked, step};
use async_trait::async_trait;
use conductor::decision::{Action, ActionError, Outcome};
use conductor::{CertificateIssuer, Conductor, Executor, Settings, SigningKey};
use model::run::Cursor;
use model::{Abilities, Contact, EventKind, Node, PowerState, ProvisionState, StepKind, Timestamp};
use room::SimClock;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::memory::MemoryStore;
use store::{Clock, HeartbeatRecord, Members, TokenRequest, prelude::*};
use tokio_util::sync::CancellationToken;

/// Three actions of a hundred seconds are longer than the lease that was taken before the first.
#[tokio::test(start_paused = true)]
async fn the_lease_outlasts_every_action() {
    let world = World::new().await;
    *world.action_time.lock().unwrap() = Duration::from_secs(100);
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    assert!(world.actions().len() > 6);
    assert_eq!(*world.unleased.lock().unwrap(), [] as [&str; 0]);
}

/// An agent can distinguish the commands of a pass from those of an earlier one.
#[tokio::test(start_paused = true)]
async fn each_action_names_the_lease_of_its_pass() {
    let world = World::new().await;
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    let epochs = world.epochs.lock().unwrap().clone();
    assert!(epochs.is_sorted(), "{epochs:?}");
    assert!(epochs.first() < epochs.last(), "all actions in one pass: {epochs:?}");
    let (now, until) = (world.clock.now(), world.clock.now().after(Duration::from_secs(1)));
    let next = world.store.take_lease(world.node, "sim", now, until).await.unwrap().unwrap();
    assert!(epochs.iter().all(|epoch| (1..next.epoch).contains(epoch)), "{epochs:?}, next {next:?}");
}

/// The end of a step and the beginning of the next are one write, the agent's acceptance the other.
#[tokio::test(start_paused = true)]
async fn a_step_costs_two_writes_of_the_node() {
    let mut versions = Vec::new();
    for steps in [2, 22] {
        let world = World::new().await;
        world.advertise(
            StepKind::Clean,
            (0..steps).map(|number| step(&format!("step_{number}"), 10 + number, true)).collect(),
        );
        // No polls, each of which is a write.
        let _conductor = world.provide(Settings { agent_poll_s: 3600, ..Settings::default() }).await;
        versions.push(world.until_state(ProvisionState::Available).await.version);
        assert_eq!(world.ran().len(), usize::try_from(steps).unwrap());
    }
    // The node at rest may have been looked at once more.
    let more = versions[1] - versions[0];
    assert!((39..=41).contains(&more), "{more} writes for 20 steps");
}

/// A node that is to be looked at sooner than was known when the conductor went to sleep is looked at in time.
#[tokio::test(start_paused = true)]
async fn a_wake_up_call_that_comes_later_is_heard() {
    let world = World::new().await;
    world.only_out_of_band(StepKind::Clean, &[]);
    let _conductor = world.conductor(Settings::default());
    let wait = asked("power.wait", json!({"args": {"seconds": 1}}));
    for _ in 0..5 {
        // Let it sleep first.
        tokio::time::sleep(Duration::from_secs(15)).await;
        let begun = world.clock.now();
        world.clean(vec![wait.clone()]).await;
        world.until("at work", |node| !node.provision_state.is_stable()).await;
        world.until_state(ProvisionState::Manageable).await;
        let took = world.clock.now().since(begun);
        assert!((1000..1500).contains(&took.as_millis()), "{took:?}");
    }
}

/// What is stored in one write is noted as if it had been stored one by one.
#[tokio::test(start_paused = true)]
async fn every_transition_is_noted_with_the_state_it_leaves() {
    let world = World::new().await;
    let _conductor = world.provide(Settings { stay_on_after_cleaning: true, ..Settings::default() }).await;
    world.until_state(ProvisionState::Available).await;
    let history = world.store.history(world.node).await.unwrap();
    let transitions: Vec<_> = history.iter().filter(|event| event.kind == EventKind::Transition).collect();
    assert!(transitions.len() >= 5, "{:#?}", world.texts().await);
    for event in transitions {
        let left = event.text.split(" -> ").next().unwrap_or_default();
        assert_eq!(event.state.map(ProvisionState::as_str), Some(left), "{}", event.text);
    }
}

/// An agent that answers no request, and is heard again during the action in which its silence becomes too long.
struct HeardDuringAnAction {
    store: Arc<MemoryStore>,
    clock: Arc<SimClock>,
    silent_until: Timestamp,
    heard: AtomicUsize,
}

impl HeardDuringAnAction {
    async fn beats(&self, node: &Node) {
        let situation = situation::heard("boot-1");
        let beat = HeartbeatRecord {
            callback_url: situation.callback_url.unwrap(),
            verify_ca: None,
            agent_version: None,
            at: self.clock.now(),
            agent: situation.agent.unwrap(),
        };
        self.store.record_heartbeat(node.uuid, "token", beat).await.unwrap();
    }
}

#[async_trait]
impl Executor for HeardDuringAnAction {
    fn abilities(&self, _: &Node) -> Result<Arc<Abilities>, String> {
        situation::snapshot(
            Node::enrolled(uuid::Uuid::nil(), "fake-hardware", situation::NOW),
            Contact::default(),
            situation::NOW,
        )
        .abilities
    }

    fn unfenced_call(&self, _: &Contact, _: &Action) -> Duration {
        Duration::ZERO
    }

    async fn act(&self, _: u64, node: &Node, _: &Contact, action: &Action) -> Outcome {
        tokio::time::sleep(Duration::from_secs(7)).await;
        if self.clock.now() >= self.silent_until {
            self.beats(node).await;
            self.heard.fetch_add(1, Ordering::Relaxed);
        }
        match action {
            Action::ReadPower => Outcome::Power(PowerState::On),
            _ => {
                Outcome::Failed(ActionError { text: "no answer".into(), retryable: true, unreachable: true })
            }
        }
    }
}

/// The agent's silence became too long while the action went on, and the agent was heard before the action ended.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_during_an_action_counts_for_what_is_decided_after_it() {
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(SimClock::start()));
    let node = situation::node(ProvisionState::CleanWait, Cursor::AwaitAgent, 1);
    let mut node = store.create_node(node, Vec::new()).await.unwrap();
    let request = TokenRequest::without_nonce("token", Some("boot-1"), clock.now());
    store.grant_token(node.uuid, request).await.unwrap();
    let settings = Settings { agent_silence_s: 30, ..Settings::default() };
    let silent_until = clock.now().after(Duration::from_secs(settings.agent_silence_s));
    let executor = HeardDuringAnAction {
        store: store.clone(),
        clock: clock.clone(),
        silent_until,
        heard: AtomicUsize::new(0),
    };
    executor.beats(&node).await;
    node.run.as_mut().unwrap().cursor = Cursor::Issued {
        command_id: "c0".into(),
        at: clock.now(),
        boot_id: Some("boot-1".into()),
        process_id: Some("p".into()),
        accepted: true,
    };
    node.next_wake_at = Some(clock.now());
    let uuid = store.update_node(node, Vec::new(), None).await.unwrap().uuid;
    let executor = Arc::new(executor);
    let issuer = CertificateIssuer::new(SigningKey::generate().unwrap().0, "sim");
    let conductor = Conductor::new(
        store.clone(),
        executor.clone(),
        clock.clone(),
        settings,
        Members::alone("sim"),
        issuer,
    );
    let stop = CancellationToken::new();
    let task = tokio::spawn(conductor.run(stop.clone()));
    let deadline = clock.now().after(Duration::from_secs(600));
    while executor.heard.load(Ordering::Relaxed) < 5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let node = store.node(uuid).await.unwrap();
        assert_eq!(node.provision_state, ProvisionState::CleanWait, "{:?}", node.last_error);
        assert!(clock.now() < deadline, "{node:#?}");
    }
    stop.cancel();
    task.await.unwrap();
}
