//! The agent itself: what its API, its heartbeats and its commands share.

use crate::commands::{self, Call, Mode, UnknownCommand};
use crate::external::{Externals, Source};
use crate::logging::LogRing;
use crate::login::LoginService;
use crate::registry::{Cancel, Ending, Registry, Submission};
use crate::token::Token;
use agent_protocol::command::{CommandList, CommandStatus, Status};
use agent_protocol::heartbeat::{AgentState, Running};
use agent_protocol::inventory::Inventory;
use certificate::SigningKey;
use hwm_sdk::{HardwareManager, StepContext};
use serde_json::{Map, Value, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};

/// Version told to controllers.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Cancels another command; accepted while that one runs. Anneal's.
const CANCEL: &str = "anneal.cancel";

/// Finds the hardware of the machine.
pub type Discover = Box<dyn Fn() -> Inventory + Send + Sync>;

/// Why a command was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name.
    #[error(transparent)]
    Unknown(#[from] UnknownCommand),
    /// One at a time.
    #[error("Agent is busy: executing command {0}")]
    Busy(String),
    /// `anneal_command_id` belongs to another command.
    #[error("Invalid command: id {id} has been used for command {command_name}")]
    Reused {
        /// The id.
        id: String,
        /// Its command.
        command_name: String,
    },
}

/// How the agent is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Power the machine off.
    PowerOff,
    /// Reboot it, into what was deployed.
    Reboot,
    /// Leave it on, with nothing that runs.
    Halt,
}

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
            fresh_id()
        });
        let started_at =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |duration| duration.as_secs_f64());
        Self { boot_id: boot_id.trim().to_owned(), process_id: fresh_id(), started_at }
    }
}

/// The agent.
pub struct Agent {
    identity: Identity,
    evidence_key: Option<SigningKey>,
    extension: AtomicBool,
    managers: Vec<Arc<dyn HardwareManager>>,
    externals: OnceLock<Arc<Externals>>,
    discover: Discover,
    inventory: RwLock<Arc<Inventory>>,
    registry: Mutex<Registry>,
    ended: watch::Sender<u64>,
    bell: Notify,
    token: RwLock<Option<Token>>,
    exit: watch::Sender<Option<Exit>>,
    logs: LogRing,
    login: Box<dyn LoginService>,
    in_ramdisk: bool,
}

impl Agent {
    /// Build it; discovers the hardware once.
    pub fn new(
        managers: Vec<Arc<dyn HardwareManager>>,
        discover: Discover,
        logs: LogRing,
        login: Box<dyn LoginService>,
        in_ramdisk: bool,
    ) -> Arc<Self> {
        let inventory = RwLock::new(Arc::new(discover()));
        Arc::new(Self {
            identity: Identity::of_this_process(),
            evidence_key: new_key(),
            extension: AtomicBool::new(false),
            managers,
            externals: OnceLock::new(),
            discover,
            inventory,
            registry: Mutex::default(),
            ended: watch::Sender::new(0),
            bell: Notify::new(),
            token: RwLock::new(None),
            exit: watch::Sender::new(None),
            logs,
            login,
            in_ramdisk,
        })
    }

    /// Boot, process, start.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What this process signs its evidence with; kept nowhere, so that no other boot can.
    pub fn evidence_key(&self) -> Option<&SigningKey> {
        self.evidence_key.as_ref()
    }

    /// Whether the controller has offered Anneal's extension.
    pub fn extension(&self) -> bool {
        self.extension.load(Ordering::Acquire)
    }

    /// What the lookup has brought: who we are for the controller, and whether it has offered the extension.
    pub fn found(&self, token: Token, extension: bool) {
        self.set_token(token);
        self.extension.store(extension, Ordering::Release);
    }

    /// The hardware managers: the agent's own and those of vendors.
    pub fn managers(&self) -> Vec<Arc<dyn HardwareManager>> {
        let externals = self.externals.get().map(|externals| externals.managers());
        self.managers.iter().cloned().chain(externals.unwrap_or_default()).collect()
    }

    /// These are the managers of vendors. Said once, before the agent runs; without it there are none.
    pub fn set_externals(&self, externals: Arc<Externals>) {
        if self.externals.set(externals).is_err() {
            tracing::error!("the managers of vendors were set already");
        }
    }

    /// More managers of vendors have arrived, or are known to be missing: they are started, and the hardware is looked
    /// at with them. Blocks until each is ready or has failed.
    pub fn add_externals(&self, sources: Vec<Result<Source, String>>) {
        if let Some(externals) = self.externals.get().filter(|_| !sources.is_empty()) {
            externals.add(sources);
            self.rediscover();
        }
    }

    /// The hardware as last found.
    pub fn inventory(&self) -> Arc<Inventory> {
        self.inventory.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Look at the hardware again.
    pub fn rediscover(&self) -> Arc<Inventory> {
        let fresh = Arc::new((self.discover)());
        *self.inventory.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = fresh.clone();
        fresh
    }

    /// The log ring.
    pub fn log_ring(&self) -> &LogRing {
        &self.logs
    }

    /// How somebody logs in to a rescued node.
    pub fn login(&self) -> &dyn LoginService {
        &*self.login
    }

    /// Whether the machine is the agent's to power off.
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

    /// Resolves when a command has ended since the last call.
    pub async fn bell(&self) {
        self.bell.notified().await;
    }

    /// Take a command and begin it. The status may still be running; `Mode` tells whether the
    /// answer is to wait.
    pub fn submit(
        self: &Arc<Self>,
        name: &str,
        params: Map<String, Value>,
        wanted_id: Option<&str>,
    ) -> Result<(CommandStatus, Mode), Refusal> {
        if name == CANCEL {
            return self.cancel(&params, wanted_id).map(|status| (status, Mode::Sync));
        }
        let (_, short_name) = commands::split(name)?;
        let mut registry = self.registry();
        // IPA's order: busy is told before the name is looked up.
        let command = match (commands::find(name), registry.running()) {
            (Ok(command), _) => command,
            (Err(_), Some(running)) => return Err(Refusal::Busy(running.command_name)),
            (Err(unknown), None) => return Err(unknown.into()),
        };
        let (id, context) = match registry.submit(short_name, wanted_id, fresh_id()) {
            Submission::New { id, context } => (id, context),
            Submission::Known(status) => return Ok((*status, command.mode)),
            Submission::Busy { command_name } => return Err(Refusal::Busy(command_name)),
            Submission::Reused { command_name } => {
                return Err(Refusal::Reused { id: wanted_id.unwrap_or_default().to_owned(), command_name });
            }
        };
        drop(registry);
        tracing::info!(command_id = %id, command = name, "command");
        match command.check_params(&params) {
            Err(problem) => self.finish(&id, commands::type_error(problem)),
            Ok(()) => self.start(&id, command, params, context),
        }
        let status = self.command(&id).ok_or_else(|| Refusal::Busy(short_name.to_owned()))?;
        Ok((status, command.mode))
    }

    fn start(
        self: &Arc<Self>,
        id: &str,
        command: &'static commands::Command,
        params: Map<String, Value>,
        context: StepContext,
    ) {
        let agent = self.clone();
        let thread_id = id.to_owned();
        let body = move || {
            let call = Call { agent: &agent, id: &thread_id, params: &params, context: &context };
            let ending = catch_unwind(AssertUnwindSafe(|| (command.run)(&call)))
                .unwrap_or_else(|panic| (command.panicked)(&params, &panic_text(&*panic)));
            agent.finish(&thread_id, ending);
            if command.mode == Mode::Async {
                agent.bell.notify_one();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("command".into()).spawn(body) {
            let details = format!("no thread for the command: {error}");
            self.finish(id, Ending::failed("CommandExecutionError", "Command execution failed", details));
        }
    }

    fn finish(&self, id: &str, ending: Ending) {
        let peak_memory_kib = peak_memory_kib();
        match &ending.error {
            None => tracing::info!(command_id = %id, peak_memory_kib, "command succeeded"),
            Some(error) => {
                let (kind, error) = (&error.kind, &error.details);
                tracing::warn!(command_id = %id, kind, error, peak_memory_kib, "command failed");
            }
        }
        // Told before the end is: a controller may cut the power right after it.
        if let Some(peak_memory_kib) = crate::memory::peak_kib() {
            tracing::info!(peak_memory_kib, "memory of the agent");
        }
        self.registry().finish(id, ending);
        self.ended.send_modify(|count| *count += 1);
    }

    fn cancel(&self, params: &Map<String, Value>, wanted_id: Option<&str>) -> Result<CommandStatus, Refusal> {
        let target = params.get("command_id").and_then(Value::as_str).filter(|_| params.len() == 1);
        let submission = self.registry().record("cancel", wanted_id, fresh_id(), |registry| {
            let Some(target) = target else {
                return commands::type_error("cancel() takes one argument: 'command_id', a string".into());
            };
            match registry.cancel(target) {
                Cancel::Unknown => Ending::failed(
                    "CommandNotFound",
                    "Nothing to cancel",
                    format!("Command Result with id {target} not found."),
                ),
                asked => {
                    Ending::done(Some(json!({ "command_id": target, "was_running": asked == Cancel::Asked })))
                }
            }
        });
        match submission {
            Submission::Known(status) => Ok(*status),
            Submission::Reused { command_name } => {
                Err(Refusal::Reused { id: wanted_id.unwrap_or_default().to_owned(), command_name })
            }
            Submission::Busy { command_name } => Err(Refusal::Busy(command_name)),
            Submission::New { id, .. } => Err(Refusal::Reused { id, command_name: "cancel".into() }),
        }
    }

    /// One command as it stands.
    pub fn command(&self, id: &str) -> Option<CommandStatus> {
        self.registry().status(id)
    }

    /// One command, when it has ended.
    pub async fn ended(&self, id: &str) -> Option<CommandStatus> {
        let mut ended = self.ended.subscribe();
        loop {
            ended.mark_unchanged();
            let status = self.command(id)?;
            if status.command_status != Status::Running || ended.changed().await.is_err() {
                return Some(status);
            }
        }
    }

    /// All commands, oldest first.
    pub fn commands(&self) -> CommandList {
        self.registry().list()
    }

    /// All commands, without earlier collections of logs, which would nest.
    pub fn commands_without_logs(&self) -> CommandList {
        let mut list = self.commands();
        for command in list.commands.iter_mut().filter(|c| c.command_name == "collect_system_logs") {
            command.command_result = None;
        }
        list
    }

    /// The running command.
    pub fn running(&self) -> Option<Running> {
        self.registry().running()
    }

    /// What a heartbeat adds for a controller that offered the extension.
    pub fn state(&self) -> AgentState {
        let registry = self.registry();
        AgentState {
            extension: agent_protocol::EXTENSION,
            boot_id: self.identity.boot_id.clone(),
            process_id: self.identity.process_id.clone(),
            evidence_key: self.evidence_key.as_ref().map(|key| key.public().to_string()),
            running: registry.running(),
            ended: registry.ended(),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn new_key() -> Option<SigningKey> {
    match SigningKey::generate() {
        Ok((key, _)) => Some(key),
        Err(error) => {
            tracing::error!(%error, "erases will not be certified");
            None
        }
    }
}

fn fresh_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "of unknown cause".into())
}

/// The most memory this process has had resident, in KiB (`VmHWM` of proc(5)).
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
