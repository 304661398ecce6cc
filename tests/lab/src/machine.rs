//! A node's power and boot order: one QEMU process for each power-on.
//!
//! Power off is SIGKILL, as pulling the plug is. The boot override is one-time in earnest: it counts for
//! the next boot of any kind (power on, reset by the BMC, reset from inside) and is gone once that boot
//! began. QEMU reads the order of its devices at each reset, so that moving the NIC with `qom-set` once a
//! boot has begun decides about the one after it. A reset begins a boot only when no other follows within
//! [`SETTLE`]: SeaBIOS, entered by a warm reset, at once asks for a cold one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::bios::Bios;
use crate::key_lists::KeyLists;
use crate::node::{BOOT_FIRST, BOOT_LAST, Boot, CD, NIC, NodeSpec, STICK, stick_args};
use crate::process::{Daemon, leashed};
use crate::qmp::Qmp;
use crate::software_tpm;
use crate::timeline::Timeline;
use crate::uefi_variables;
use crate::wait;

const START_LIMIT: Duration = Duration::from_secs(30);

/// Pause between two tries to reach a QEMU that is starting.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Resets that follow each other faster are one.
const SETTLE: Duration = Duration::from_secs(2);

/// How long an override counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    /// For one boot.
    Once,
    /// Until changed.
    Always,
}

/// An emulated server that can be switched on and off. Clones are the same server.
#[derive(Debug, Clone)]
pub struct Machine {
    spec: Arc<NodeSpec>,
    timeline: Timeline,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// What the next boot tries first, and for how long that counts; `None`: as the firmware's boot order has it.
    choice: Option<(Boot, Lasting)>,
    bios: Bios,
    /// The URL of UEFI HTTP boot; without one it is the DHCP server's.
    http_url: Option<String>,
    /// The keys of Secure Boot from the next power-on; `None`: those that the firmware has.
    keys: Option<KeyLists>,
    /// The image in the virtual CD drive, from the next power-on.
    cd: Option<PathBuf>,
    /// The same of the virtual USB stick.
    stick: Option<PathBuf>,
    /// Serial numbers of disks that are not there from the next power-on.
    pulled: Vec<String>,
    /// Counts resets and choices: who sees it unchanged knows that neither came between.
    changes: u64,
    running: Option<Running>,
}

/// One QEMU process, owned by a task that watches it.
#[derive(Debug)]
struct Running {
    qmp: Arc<Qmp>,
    pid: Option<u32>,
    stop: CancellationToken,
    watcher: JoinHandle<()>,
}

impl State {
    /// The running machine; one that ended by itself counts no more.
    fn running(&mut self) -> Option<&Running> {
        if self.running.as_ref().is_some_and(|r| r.watcher.is_finished()) {
            self.running = None;
        }
        self.running.as_ref()
    }

    fn boot(&self) -> Boot {
        self.choice.map_or(self.bios.first(), |(boot, _)| boot)
    }

    /// A boot began: a one-time choice has been used up, pending settings are in force.
    fn used(&mut self) {
        self.bios.booted();
        self.choice = self.choice.filter(|(_, lasting)| *lasting == Lasting::Always);
    }
}

impl Machine {
    /// A machine that is off.
    #[must_use]
    pub fn new(spec: NodeSpec, timeline: Timeline) -> Self {
        Self { spec: Arc::new(spec), timeline, state: Arc::default() }
    }

    /// Its hardware.
    #[must_use]
    pub fn spec(&self) -> &NodeSpec {
        &self.spec
    }

    /// Whether its QEMU runs.
    pub async fn is_on(&self) -> bool {
        self.state.lock().await.running().is_some()
    }

    /// Process id of its QEMU, while on.
    pub async fn pid(&self) -> Option<u32> {
        self.state.lock().await.running().and_then(|r| r.pid)
    }

    /// State of its firmware.
    pub async fn bios(&self) -> Bios {
        self.state.lock().await.bios.clone()
    }

    /// Changes what its firmware keeps; what `change` returns is given.
    pub async fn change_bios<T>(&self, change: impl FnOnce(&mut Bios) -> T) -> T {
        let mut state = self.state.lock().await;
        let changed = change(&mut state.bios);
        state.changes += 1;
        let boot = state.boot();
        if let Some(running) = state.running()
            && let Err(error) = set_order(&running.qmp, boot).await
        {
            tracing::debug!(node = self.spec.name, %error, "boot order not changed");
        }
        changed
    }

    /// What the next boot tries first, and how long that counts; `None`: as the firmware's boot order has it.
    pub async fn boot_choice(&self) -> Option<(Boot, Lasting)> {
        self.state.lock().await.choice
    }

    /// Chooses what the next boot tries first.
    ///
    /// # Errors
    /// UEFI HTTP boot of a BIOS node; or QEMU does not answer.
    pub async fn choose_boot(&self, choice: Option<(Boot, Lasting)>) -> Result<()> {
        if matches!(choice, Some((Boot::Http, _))) && !self.spec.firmware.is_uefi() {
            bail!("{} has a BIOS: no UEFI HTTP boot", self.spec.name);
        }
        let mut state = self.state.lock().await;
        state.choice = choice;
        state.changes += 1;
        let boot = state.boot();
        if let Some(running) = state.running() {
            set_order(&running.qmp, boot).await?;
        }
        Ok(())
    }

    /// The URL that its firmware has for UEFI HTTP boot.
    pub async fn http_url(&self) -> Option<String> {
        self.state.lock().await.http_url.clone()
    }

    /// Gives its firmware another one, from the next power-on.
    pub async fn set_http_url(&self, url: Option<String>) {
        self.state.lock().await.http_url = url;
    }

    /// The keys of Secure Boot that its firmware has from the next power-on.
    ///
    /// # Errors
    /// When the store of its variables cannot be read.
    pub async fn key_lists(&self) -> Result<KeyLists> {
        let state = self.state.lock().await;
        match &state.keys {
            Some(keys) => Ok(keys.clone()),
            None => self.stored_keys(),
        }
    }

    /// Changes them.
    ///
    /// # Errors
    /// As [`Machine::key_lists`], or what `change` says; then nothing is changed.
    pub async fn change_key_lists(&self, change: impl FnOnce(&mut KeyLists) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock().await;
        let mut keys = match &state.keys {
            Some(keys) => keys.clone(),
            None => self.stored_keys()?,
        };
        change(&mut keys)?;
        state.keys = Some(keys);
        Ok(())
    }

    fn stored_keys(&self) -> Result<KeyLists> {
        self.spec.ensure_files()?;
        KeyLists::read(&self.spec.uefi_variables())
    }

    /// Puts an image into the virtual CD drive, which shows it from the next power-on; `None` takes out what is in it, at once.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub async fn insert_cd(&self, image: Option<PathBuf>) -> Result<()> {
        self.insert(image, CD, |state| &mut state.cd).await
    }

    /// The same with the virtual USB stick.
    ///
    /// # Errors
    /// QEMU does not answer.
    pub async fn insert_stick(&self, image: Option<PathBuf>) -> Result<()> {
        self.insert(image, STICK, |state| &mut state.stick).await
    }

    async fn insert(
        &self,
        image: Option<PathBuf>,
        device: &str,
        place: impl FnOnce(&mut State) -> &mut Option<PathBuf>,
    ) -> Result<()> {
        let mut state = self.state.lock().await;
        let is_ejected = image.is_none();
        let was_in = std::mem::replace(place(&mut state), image).is_some();
        if let (true, Some(running)) = (is_ejected && was_in, state.running()) {
            // Inserted since the power-on, or unplugged before: then it is not there.
            if let Err(error) = running.qmp.command("device_del", json!({"id": device})).await {
                tracing::debug!(node = self.spec.name, %error, device, "the virtual drive stays");
            }
        }
        Ok(())
    }

    /// Takes a disk out: from the next power-on it is not there.
    pub async fn pull_disk(&self, serial: &str) {
        self.state.lock().await.pulled.push(serial.to_owned());
    }

    /// Switches on; nothing when it is on already.
    ///
    /// # Errors
    /// When QEMU does not start; its message is in the error.
    pub async fn power_on(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        if state.running().is_some() {
            return Ok(());
        }
        let running = self.start(&state).await?;
        self.timeline.note(&self.spec.name, "power on");
        state.keys = None;
        state.used();
        let (qmp, boot) = (Arc::clone(&running.qmp), state.boot());
        state.running = Some(running);
        set_order(&qmp, boot).await
    }

    /// Cuts the power; nothing when it is off already.
    ///
    /// # Errors
    /// When its task panicked.
    pub async fn power_off(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        let Some(running) = state.running.take() else { return Ok(()) };
        running.stop.cancel();
        running.watcher.await.context("the machine's task panicked")
    }

    /// Pulls the reset line.
    ///
    /// # Errors
    /// When it is off, or QEMU does not answer.
    pub async fn reset(&self) -> Result<()> {
        let has_new_keys = self.state.lock().await.keys.is_some();
        let at_start = matches!(self.boot_choice().await, Some((Boot::Http | Boot::Cd, _)));
        if at_start || has_new_keys {
            // Whether OVMF offers HTTP boot, what is in the CD drive, and what is in the flash, is settled when QEMU starts.
            self.power_off().await?;
            return self.power_on().await;
        }
        let mut state = self.state.lock().await;
        let Some(running) = state.running() else { bail!("{} is off", self.spec.name) };
        running.qmp.command("system_reset", json!({})).await?;
        Ok(())
    }

    /// Presses the power button: an operating system that listens shuts down.
    ///
    /// # Errors
    /// When it is off, or QEMU does not answer.
    pub async fn press_power_button(&self) -> Result<()> {
        let mut state = self.state.lock().await;
        let Some(running) = state.running() else { bail!("{} is off", self.spec.name) };
        running.qmp.command("system_powerdown", json!({})).await?;
        Ok(())
    }

    /// Sends any command to its QEMU, for example to unplug a disk.
    ///
    /// # Errors
    /// When it is off, or QEMU refuses.
    pub async fn qmp(&self, command: &str, arguments: Value) -> Result<Value> {
        let qmp = match self.state.lock().await.running() {
            Some(running) => Arc::clone(&running.qmp),
            None => bail!("{} is off", self.spec.name),
        };
        qmp.command(command, arguments).await
    }

    async fn start(&self, state: &State) -> Result<Running> {
        let mut spec = NodeSpec::clone(&self.spec);
        spec.disks.retain(|disk| !state.pulled.contains(&disk.serial));
        spec.ensure_files()?;
        if let Some(keys) = &state.keys {
            keys.write(&spec.uefi_variables())?;
        }
        let boot = state.boot();
        if let Some(url) = state.http_url.as_deref().filter(|_| boot == Boot::Http) {
            uefi_variables::boot_next(&spec.uefi_variables(), url)?;
        }
        let socket = spec.qmp_socket();
        if socket.exists() {
            std::fs::remove_file(&socket).with_context(|| format!("cannot remove {}", socket.display()))?;
        }
        let log = std::fs::File::create(spec.qemu_log())
            .with_context(|| format!("cannot write {}", spec.qemu_log().display()))?;
        let tpm = spec.tpm.then(|| software_tpm::start(&spec)).transpose()?;
        if tpm.is_some() {
            self.tpm_listens(&spec).await?;
        }
        let mut child = leashed("qemu-system-x86_64")
            .args(spec.qemu_args(boot, state.cd.as_deref()))
            .args(state.stick.as_deref().map(stick_args).unwrap_or_default())
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start qemu-system-x86_64")?;
        let pid = child.id();
        let (qmp, events) =
            self.connect(&mut child, &socket).await.with_context(|| wait::tail(&spec.qemu_log(), 2000))?;
        let (qmp, stop) = (Arc::new(qmp), CancellationToken::new());
        let watcher = tokio::spawn(self.clone().watch((child, tpm), events, Arc::clone(&qmp), stop.clone()));
        Ok(Running { qmp, pid, stop, watcher })
    }

    /// QEMU does not wait for it.
    async fn tpm_listens(&self, spec: &NodeSpec) -> Result<()> {
        let (socket, end) = (software_tpm::socket(spec), Instant::now() + START_LIMIT);
        while !socket.exists() {
            ensure!(Instant::now() < end, "swtpm of {} does not listen", spec.name);
            sleep(CONNECT_PAUSE).await;
        }
        Ok(())
    }

    /// Connects to a QEMU that is starting. (A loop of its own: `wait::until` takes a closure whose
    /// future the compiler cannot see to be `Send`.)
    async fn connect(
        &self,
        child: &mut Child,
        socket: &Path,
    ) -> Result<(Qmp, mpsc::UnboundedReceiver<Value>)> {
        let end = Instant::now() + START_LIMIT;
        loop {
            if let Some(status) = child.try_wait()? {
                bail!("QEMU of {} ended with {status}", self.spec.name);
            }
            match Qmp::connect(socket).await {
                Ok(connected) => return Ok(connected),
                Err(error) if Instant::now() >= end => return Err(error),
                Err(_) => sleep(CONNECT_PAUSE).await,
            }
        }
    }

    /// Ends with the QEMU process; cancelled, it kills that first.
    async fn watch(
        self,
        (mut child, _tpm): (Child, Option<Daemon>),
        mut events: mpsc::UnboundedReceiver<Value>,
        qmp: Arc<Qmp>,
        stop: CancellationToken,
    ) {
        loop {
            tokio::select! {
                ended = child.wait() => {
                    tracing::debug!(node = self.spec.name, ?ended, "QEMU ended");
                    break;
                }
                () = stop.cancelled() => {
                    if let Err(error) = child.kill().await {
                        tracing::warn!(node = self.spec.name, %error, "QEMU not killed");
                    }
                    break;
                }
                Some(event) = events.recv() => {
                    if event["event"] == "RESET" {
                        self.timeline.note(&self.spec.name, "reset");
                        // Not awaited here: the state may be held by a caller who waits for us.
                        tokio::spawn(self.clone().after_reset(Arc::clone(&qmp)));
                    }
                }
            }
        }
        self.timeline.note(&self.spec.name, "power off");
    }

    async fn after_reset(self, qmp: Arc<Qmp>) {
        let mut state = self.state.lock().await;
        state.changes += 1;
        let seen = state.changes;
        drop(state);
        sleep(SETTLE).await;
        let mut state = self.state.lock().await;
        // Reset again, chosen anew, or power-cycled: then this boot has not used the choice up.
        let same = state.running().is_some_and(|running| Arc::ptr_eq(&running.qmp, &qmp));
        if !same || state.changes != seen {
            return;
        }
        state.used();
        if let Err(error) = set_order(&qmp, state.boot()).await {
            tracing::debug!(node = self.spec.name, %error, "boot order not restored");
        }
    }
}

/// Puts the NIC before or after the disks, from the next reset on.
async fn set_order(qmp: &Qmp, boot: Boot) -> Result<()> {
    let place = if matches!(boot, Boot::Disks | Boot::Cd) { BOOT_LAST } else { BOOT_FIRST };
    let path = format!("/machine/peripheral/{NIC}");
    // QEMU takes a place that is taken for a conflict, also when this device has it.
    if qmp.command("qom-get", json!({"path": path, "property": "bootindex"})).await? == place {
        return Ok(());
    }
    let set = json!({"path": path, "property": "bootindex", "value": place});
    qmp.command("qom-set", set).await?;
    Ok(())
}
