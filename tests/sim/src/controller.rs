//! The controller's process: the real conductor and the real API over a store that outlives them.

use crate::bmc::SimDrivers;
use crate::drivers::SimPort;
use crate::held;
use crate::http::{Answer, Request};
use crate::store::WatchedStore;
use crate::wire::Wire;
use crate::world::World;
use conductor::agent_client::AgentClient;
use conductor::{CertificateIssuer, Conductor, LiveExecutor, SigningKey};
use std::sync::Arc;
use store::Members;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Largest body that is read.
const BODY: usize = 64 << 20;

/// One life of the controller.
pub struct Incarnation {
    life: Life,
    router: axum::Router,
    conducting: AbortHandle,
}

/// Shared by all parts of one life: whether it goes on. Everything else than what is stored dies with it.
#[derive(Clone)]
pub struct Life {
    /// Cancelled when the process is killed.
    pub dead: CancellationToken,
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
                Some(until) => tokio::time::sleep_until(until).await,
                None => return,
            }
        }
    }
}

impl World {
    /// Start a controller; as `kill -9` left it, if there was one before.
    pub fn start_controller(self: &Arc<Self>) {
        let life = Life { dead: CancellationToken::new(), frozen: Arc::default() };
        let store = Arc::new(WatchedStore::new(self.clone(), life.clone()));
        let members = Members::alone("sim");
        let app = api::App {
            store: store.clone(),
            clock: self.clock.clone(),
            drivers: Arc::new(SimPort::new(self.clone())),
            bundles: None,
            images: Default::default(),
            certificate_key: None,
            lock_waits: api::LockWaits::default(),
            remarks: store::Remarks::default(),
            members: members.clone(),
            settings: api::Settings {
                public_endpoint: "https://controller.example:6385".to_owned(),
                ..api::Settings::default()
            },
        };
        let executor = LiveExecutor::new(
            Arc::new(SimDrivers::new(self.clone(), life.clone())),
            AgentClient::over(Arc::new(Wire::new(self.clone(), life.clone()))),
            self.clock.clone(),
            self.settings.clone(),
        );
        // Nothing depends on which key it is, so it may be another each time.
        let issuer = CertificateIssuer::new(SigningKey::generate().expect("random numbers").0, "sim");
        let conductor = Conductor::new(
            store,
            Arc::new(executor),
            self.clock.clone(),
            self.settings.clone(),
            members,
            issuer,
        );
        let conducting = tokio::spawn(conductor.run(CancellationToken::new())).abort_handle();
        let router = api::router(app);
        self.trace.note(|| "the controller starts".to_owned());
        *held(&self.controller) = Some(Arc::new(Incarnation { life, router, conducting }));
    }

    /// `kill -9`: every part of the controller is dropped where it waits.
    pub fn kill_controller(&self, how: &str) {
        let Some(incarnation) = held(&self.controller).take() else { return };
        self.trace.note(|| format!("the controller is killed {how}"));
        held(&self.ground_truth).killed(self.now());
        incarnation.life.dead.cancel();
        incarnation.conducting.abort();
        self.forget_jump();
    }

    /// The process stands still, as under a debugger or on a host that swaps.
    pub fn freeze_controller(&self, until: Instant) {
        if let Some(incarnation) = held(&self.controller).as_ref() {
            self.trace.note(|| "the controller stands still".to_owned());
            *held(&incarnation.life.frozen) = Some(until);
        }
    }

    /// Whether a controller runs.
    pub fn is_conducted(&self) -> bool {
        held(&self.controller).is_some()
    }

    /// Let the controller answer a request that has arrived.
    ///
    /// # Errors
    /// It is not there, or dies over it.
    pub async fn serve(&self, request: &Request) -> Result<Answer, String> {
        let Some(incarnation) = held(&self.controller).clone() else {
            return Err("connection refused".to_owned());
        };
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
                if let Ok(Answer { status: 500.., bytes }) = &answer {
                    self.violated("no_answer_blames_us", String::from_utf8_lossy(bytes).into_owned());
                }
                answer
            }
        }
    }
}
