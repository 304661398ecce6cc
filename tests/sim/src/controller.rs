//! The controller's process: the real conductor and the real API over a store that outlives them.

use crate::bmc::SimDrivers;
use crate::drivers::SimPort;
use crate::held;
use crate::host::Host;
use crate::http::{Answer, Request};
use crate::store::WatchedStore;
use crate::wire::Wire;
use crate::world::World;
use conductor::agent_client::AgentClient;
use conductor::{CertificateIssuer, Conductor, LiveExecutor, SigningKey};
use std::sync::Arc;
use std::time::Duration;
use store::prelude::*;
use store::{Bell, Members};
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Largest body that is read.
const BODY: usize = 64 << 20;
/// How often a process that stands still looks whether it may go on.
const THAWS: Duration = Duration::from_secs(5);
/// After SIGTERM a service manager waits so long before it kills.
const STOPS_WITHIN: Duration = Duration::from_secs(90);

/// One life of the controller.
pub struct Incarnation {
    /// Rings for it alone.
    pub bell: Bell,
    life: Life,
    router: axum::Router,
    stop: CancellationToken,
    ended: CancellationToken,
    conducting: AbortHandle,
}

/// Shared by all parts of one life: whether it goes on. Everything else than what is stored dies with it.
#[derive(Clone)]
pub struct Life {
    /// Cancelled when the process is killed.
    pub dead: CancellationToken,
    /// Where it runs.
    pub host: Arc<Host>,
    /// The process stands still until then.
    frozen: Arc<std::sync::Mutex<Option<Instant>>>,
}

impl Life {
    /// Returns at once while the process lives, later when it stands still, and never once it is dead: what a
    /// killed process would have done next is not done.
    pub async fn goes_on(&self) {
        loop {
            if self.dead.is_cancelled() {
                std::future::pending::<()>().await;
            }
            let until = held(&self.frozen).filter(|until| *until > Instant::now());
            match until {
                // It may go on sooner: the end of the storm ends this, too.
                Some(until) => tokio::time::sleep_until(until.min(Instant::now() + THAWS)).await,
                None => return,
            }
        }
    }

    /// For how long the process stands still inside the call that it makes now.
    pub fn stops_in_call(&self, world: &Arc<World>) -> Duration {
        let Some(lasts) = self.host.stops_in_call() else { return Duration::ZERO };
        let until = Instant::now() + lasts;
        self.freeze(until);
        let world = world.clone();
        tokio::spawn(async move { world.change_lasts(until).await });
        lasts
    }

    /// The process stands still until then.
    pub fn freeze(&self, until: Instant) {
        *held(&self.frozen) = Some(until);
        self.host.is_well_from(until);
    }
}

impl Incarnation {
    /// The process goes on, if it stood still.
    pub fn thaw(&self) {
        *held(&self.life.frozen) = None;
    }
}

impl World {
    /// Start a controller; as `kill -9` left it, if there was one before.
    pub fn start_controller(self: &Arc<Self>, host: usize) {
        let host = &self.hosts[host];
        let life = Life { dead: CancellationToken::new(), host: host.clone(), frozen: Arc::default() };
        let bell = if self.disk.is_shared() { self.hear(&life) } else { self.disk.bell().clone() };
        let store = Arc::new(WatchedStore::new(self.clone(), life.clone(), bell.clone()));
        let members = Members::alone(&host.name);
        let app = api::App {
            clock: host.clock.clone(),
            members: members.clone(),
            settings: api::Settings {
                public_endpoint: "https://controller.example:6385".to_owned(),
                ..api::Settings::default()
            },
            ..api::App::alone(&host.name, store.clone(), Arc::new(SimPort::new(self.clone())))
        };
        let agents = AgentClient::over(Arc::new(Wire::new(self.clone(), life.clone())));
        let executor = LiveExecutor::new(
            Arc::new(SimDrivers::new(self.clone(), life.clone())),
            agents.within(crate::wire::PATIENCE),
            host.clock.clone(),
            self.settings.clone(),
        );
        // Nothing depends on which key it is, so it may be another each time.
        let issuer = CertificateIssuer::new(SigningKey::generate().expect("random numbers").0, "sim");
        let (clock, settings) = (host.clock.clone(), self.settings.clone());
        let conductor = Conductor::new(store, Arc::new(executor), clock, settings, members, issuer);
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let (until, is_over) = (stop.clone(), ended.clone());
        let conducting = tokio::spawn(async move {
            conductor.run(until).await;
            is_over.cancel();
        });
        let conducting = conducting.abort_handle();
        let router = api::router(app);
        self.trace.note(|| format!("the controller {} starts", host.name));
        host.is_well_from(Instant::now());
        self.changed();
        *held(&host.running) = Some(Arc::new(Incarnation { bell, life, router, stop, ended, conducting }));
    }

    /// The bell of a controller of this life: what others write rings it, while they can be heard.
    fn hear(self: &Arc<Self>, life: &Life) -> Bell {
        let bell = Bell::new();
        let (mut changes, mut locks) = (self.disk.bell().listen(), self.disk.bell().listen_for_locks());
        let (rings, life) = (bell.clone(), life.clone());
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    () = life.dead.cancelled() => return,
                    Some(node) = changes.recv() => if life.host.reaches_store() { rings.ring(node) },
                    Some(node) = locks.recv() => if life.host.reaches_store() { rings.released(node) },
                    else => return,
                }
            }
        });
        bell
    }

    /// `kill -9`: every part of the controller is dropped where it waits.
    pub fn kill_controller(self: &Arc<Self>, host: usize, how: &str) {
        let Some(incarnation) = held(&self.hosts[host].running).take() else { return };
        self.trace.note(|| format!("the controller {} is killed {how}", self.hosts[host].name));
        self.changed();
        held(&self.ground_truth).killed(host, self.now());
        incarnation.life.dead.cancel();
        incarnation.conducting.abort();
        if self.disk.is_shared() {
            crate::invariants::left_behind(self, host);
        } else {
            self.forget_jump();
        }
    }

    /// SIGTERM: the controller ends its passes and leaves its nodes to the others. It is killed if that takes too long.
    pub async fn stop_controller(self: &Arc<Self>, host: usize) {
        let Some(incarnation) = self.hosts[host].running() else { return };
        self.trace.note(|| format!("the controller {} is to stop", self.hosts[host].name));
        self.changed();
        // From here on it drives no node that it did not drive before.
        self.hosts[host].is_well_from(Instant::now() + STOPS_WITHIN);
        incarnation.stop.cancel();
        let _ = timeout(STOPS_WITHIN, incarnation.ended.cancelled()).await;
        if !incarnation.life.dead.is_cancelled() {
            self.kill_controller(host, "at its end");
        }
    }

    /// The process stands still, as under a debugger or on a host that swaps.
    pub fn freeze_controller(&self, host: usize, until: Instant) {
        if let Some(incarnation) = self.hosts[host].running() {
            self.trace.note(|| format!("the controller {} stands still", self.hosts[host].name));
            incarnation.life.freeze(until);
            self.changed();
        }
    }

    /// Whether a controller runs.
    pub fn is_conducted(&self) -> bool {
        self.hosts.iter().any(|host| host.running().is_some())
    }

    /// Whether some controller answers a node that boots from the network.
    pub fn boots_nodes(&self) -> bool {
        let answers = |host: &Arc<Host>| host.reaches_store() && host.reaches_nodes();
        self.hosts.iter().any(|host| host.running().is_some() && answers(host))
    }

    /// Let a controller answer a request that has arrived.
    ///
    /// # Errors
    /// It is not there, or dies over it.
    pub async fn serve(&self, host: usize, request: &Request) -> Result<Answer, String> {
        let host = &self.hosts[host];
        let Some(incarnation) = host.running() else {
            return Err("connection refused".to_owned());
        };
        let begun = Instant::now();
        let request = request.build().map_err(|error| error.to_string())?;
        let answer = async {
            let response = match incarnation.router.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
            let status = response.status().as_u16();
            let bytes = axum::body::to_bytes(response.into_body(), BODY).await;
            let bytes = bytes.map_err(|error| error.to_string())?.to_vec();
            Ok(Answer { status, bytes })
        };
        tokio::select! {
            biased;
            () = incarnation.life.dead.cancelled() => Err("connection reset".to_owned()),
            answer = answer => {
                // Without the store it can do nothing.
                let is_well = host.well_since() <= begun;
                if let Ok(Answer { status: 500.., bytes }) = &answer && is_well {
                    self.violated("no_answer_blames_us", String::from_utf8_lossy(bytes).into_owned());
                }
                answer
            }
        }
    }
}
