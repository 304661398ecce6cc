//! What the agent knows and holds: who it is, its token, its hardware, its commands by id, how it is to end.
//!
//! Commands and the API read it; only the [`executor`](crate::executor) changes the registry of commands.

use crate::logging::LogRing;
use crate::login::LoginService;
use crate::registry::Registry;
use crate::signer::Signer;
use crate::token::Token;
use agent_protocol::command::{CommandList, CommandStatus};
use agent_protocol::heartbeat::{AgentState, Running};
use agent_protocol::inventory::Inventory;
use hwm_host::{Externals, Source};
use hwm_sdk::HardwareManager;
use ramdisk_init::{Exit, Storage};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Finds the hardware of the machine.
pub type Discover = Box<dyn Fn() -> Inventory + Send + Sync>;

/// What stays the same for the life of the process.
#[derive(Debug, Clone)]
pub struct Identity {
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Random.
    pub process_id: String,
    /// Unix time in seconds.
    pub started_at: f64,
}

impl Identity {
    /// This boot, this process, now.
    pub fn of_this_process() -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_else(|error| {
            tracing::warn!(%error, "no boot id; using a random one");
            random_id()
        });
        let started_at =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |duration| duration.as_secs_f64());
        Self { boot_id: boot_id.trim().to_owned(), process_id: random_id(), started_at }
    }
}

/// The state of the agent.
pub struct State {
    identity: Identity,
    signer: Option<Signer>,
    extension: AtomicBool,
    managers: Vec<Arc<dyn HardwareManager>>,
    externals: OnceLock<Arc<Externals>>,
    discover: Discover,
    storage: Option<Arc<Storage>>,
    inventory: RwLock<Option<Arc<Inventory>>>,
    registry: Mutex<Registry>,
    token: RwLock<Option<Token>>,
    exit: watch::Sender<Option<Exit>>,
    logs: LogRing,
    login: Box<dyn LoginService>,
    in_ramdisk: bool,
}

impl State {
    /// Build it. Without a `signer` no evidence is signed.
    pub fn new(
        signer: Option<Signer>,
        managers: Vec<Arc<dyn HardwareManager>>,
        discover: Discover,
        logs: LogRing,
        login: Box<dyn LoginService>,
        in_ramdisk: bool,
    ) -> Self {
        Self {
            identity: Identity::of_this_process(),
            signer,
            extension: AtomicBool::new(false),
            managers,
            externals: OnceLock::new(),
            discover,
            storage: None,
            inventory: RwLock::default(),
            registry: Mutex::default(),
            token: RwLock::new(None),
            exit: watch::Sender::new(None),
            logs,
            login,
            in_ramdisk,
        }
    }

    /// With this search for disks, which the discovery of the hardware and every command waits for.
    #[must_use]
    pub fn searching(self, storage: Option<Arc<Storage>>) -> Self {
        Self { storage, ..self }
    }

    /// Blocks until no disk is missing that is known; then a controller may be called.
    pub fn wait_until_found(&self) {
        if let Some(storage) = &self.storage {
            storage.wait_until_found();
        }
    }

    /// Blocks until all disks are there.
    pub fn wait_until_settled(&self) {
        if let Some(storage) = &self.storage {
            storage.wait_until_settled();
        }
    }

    /// Boot, process, start.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What signs this process's evidence. Its key is stored nowhere, so that no other boot can sign with it.
    pub fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// Whether the controller has offered Anneal's extension.
    pub fn extension(&self) -> bool {
        self.extension.load(Ordering::Acquire)
    }

    /// Store what a lookup returned: the token, and whether the controller offers the extension.
    pub fn set_lookup_result(&self, token: Token, extension: bool) {
        self.set_token(token);
        self.extension.store(extension, Ordering::Release);
    }

    /// The hardware managers: the agent's own and those of vendors.
    pub fn managers(&self) -> Vec<Arc<dyn HardwareManager>> {
        let externals = self.externals.get().map(|externals| externals.managers());
        self.managers.iter().cloned().chain(externals.unwrap_or_default()).collect()
    }

    /// Set the vendors' managers, once, before the agent runs. Without this call there are none.
    pub fn set_externals(&self, externals: Arc<Externals>) {
        if self.externals.set(externals).is_err() {
            tracing::error!("the vendors' hardware managers were set already");
        }
    }

    /// Add vendors' managers, or the reasons why they are missing, start them and discover the hardware again. Blocks
    /// until each is ready or has failed.
    pub fn add_externals(&self, sources: Vec<Result<Source, String>>) {
        if let Some(externals) = self.externals.get().filter(|_| !sources.is_empty()) {
            externals.add(sources);
            self.rediscover();
        }
    }

    /// The hardware as last found. The first call looks, and blocks until all disks are there.
    pub fn inventory(&self) -> Arc<Inventory> {
        let known = self.inventory.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        known.unwrap_or_else(|| self.rediscover())
    }

    /// Look at the hardware again. Blocks until all disks are there.
    pub fn rediscover(&self) -> Arc<Inventory> {
        self.wait_until_settled();
        let fresh = Arc::new((self.discover)());
        *self.inventory.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(fresh.clone());
        fresh
    }

    /// The log ring.
    pub fn log_ring(&self) -> &LogRing {
        &self.logs
    }

    /// The service that lets the owner of a rescued node log in.
    pub fn login(&self) -> &dyn LoginService {
        &*self.login
    }

    /// Whether the agent runs in the ramdisk and may power the machine off.
    pub fn in_ramdisk(&self) -> bool {
        self.in_ramdisk
    }

    /// The token, once the lookup has brought one.
    pub fn token(&self) -> Option<Token> {
        self.token.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Take the token of a lookup.
    pub fn set_token(&self, token: Token) {
        *self.token.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(token);
    }

    /// End the agent once its answers are out.
    pub fn exit(&self, exit: Exit) {
        self.exit.send_replace(Some(exit));
    }

    /// Resolves when the agent is to end.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.exit.subscribe();
        loop {
            if let Some(exit) = *exit.borrow_and_update() {
                return exit;
            }
            if exit.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// One command as it stands.
    pub fn command(&self, id: &str) -> Option<CommandStatus> {
        self.registry().status(id)
    }

    /// All commands, oldest first.
    pub fn commands(&self) -> CommandList {
        self.registry().list()
    }

    /// The running command.
    pub fn running(&self) -> Option<Running> {
        self.registry().running()
    }

    /// What a heartbeat adds for a controller that offered the extension.
    pub fn heartbeat(&self) -> AgentState {
        let registry = self.registry();
        AgentState {
            extension: agent_protocol::EXTENSION,
            boot_id: self.identity.boot_id.clone(),
            process_id: self.identity.process_id.clone(),
            evidence_key: self.signer.as_ref().map(|signer| signer.public().to_string()),
            running: registry.running(),
            ended: registry.ended(),
        }
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A random UUID, for ids of commands and processes.
pub(crate) fn random_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
