//! Where rounds take place: namespaces, PostgreSQL, three controllers, and the fleet.

use super::audit;
use super::judge::Record;
use crate::behaviour::Behaviour;
use crate::contact::Endpoint;
use crate::fleet::{Fleet, Setup};
use crate::journal::Journal;
use crate::network::Network;
use crate::operator;
use anyhow::{Context, Result, ensure};
use bench::operator::{Api, Operator};
use contract::process::Daemon;
use lab::net::{Cable, End, Netns};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pinned_tls::Pin;
use postgres_server::{Durability, Server};
use reqwest::Method;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Names of the controllers, which are also those of their namespaces behind a prefix.
pub const NAMES: [&str; 3] = ["c1", "c2", "c3"];
/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(100);
/// Of every controller, at its own address: the API for agents, and boot HTTP.
const PORTS: (u16, u16) = (6385, 8089);
/// Known to every helper of this crate.
const VERSION: &str = "1.82";

/// A name that no other process uses.
fn netns_name(end: &str) -> String {
    format!("fleet-{}-{end}", std::process::id())
}

/// Runs `work` in the namespace "room", where all addresses of nodes are local.
///
/// # Errors
/// When the namespace cannot be made, which needs root; else those of `work`.
pub fn inside<T: Send>(work: impl FnOnce(&Netns) -> Result<T> + Send) -> Result<T> {
    let room = Netns::create(&netns_name("room"))?;
    room.ip(&["route", "add", "local", "10.64.0.0/10", "dev", "lo"])?;
    room.run(|| work(&room))
}

/// A controller in its namespace.
pub struct Controller {
    /// Its name.
    pub name: &'static str,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its operator.
    pub operator: Operator,
    /// What it runs when it is started the next time.
    pub program: PathBuf,
    netns: Netns,
    cable: Cable,
    config: PathBuf,
    process: Option<Daemon>,
}

/// All of it; the fields are dropped in this order.
pub struct Place {
    /// The controllers.
    pub controllers: Vec<Controller>,
    /// The nodes.
    pub fleet: Fleet,
    server: Server,
    database: String,
    dir: TempDir,
}

impl Place {
    /// Starts PostgreSQL, three controllers that run `program`, with these lines of `[bmc]` and tables of their configuration in
    /// addition, and so many nodes that behave so, which are manageable at the end.
    ///
    /// # Errors
    /// When something cannot be started.
    pub async fn start(
        room: &Netns,
        program: &Path,
        settings: &str,
        nodes: u32,
        behaviour: Behaviour,
    ) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("fleet-").tempdir()?;
        // The server itself is not disturbed here.
        let server = Server::with(Durability::None, &["listen_addresses=*"]);
        admit(&server)?;
        let database = server.create();
        let file = dir.path().join("boot-file");
        std::fs::write(&file, "no machine of these tests boots it")?;
        let mut controllers = Vec::new();
        for index in 0..NAMES.len() {
            controllers.push(Controller::new(room, index, program, settings, dir.path(), &database)?);
        }
        for controller in &mut controllers {
            share_key(dir.path(), controller.name)?;
            controller.start().await?;
        }
        audit::begin(&server, &database);
        let endpoints: Result<Vec<Endpoint>> =
            controllers.iter().map(|one| one.endpoint(dir.path())).collect();
        let boot = controllers.iter().map(|one| SocketAddr::new(one.address.into(), PORTS.1));
        let setup = Setup {
            nodes,
            network: Network::NAMESPACE,
            bmc_tls: false,
            behaviour,
            boot: boot.collect(),
            controllers: endpoints?,
        };
        let fleet = Fleet::start(setup, Journal::memory(), 0).await?;
        let place = Self { controllers, fleet, server, database, dir };
        place.all_alive().await?;
        let operator = &place.controllers[0].operator;
        operator::enrol(operator, &place.fleet).await?;
        operator::ask(operator, (0..nodes).collect(), "manage").await?;
        place.all_are("manageable").await?;
        Ok(place)
    }

    /// Every node is manageable, every controller alive, and what was noted is forgotten.
    ///
    /// # Errors
    /// When that is not so within three minutes.
    pub async fn prepare(&mut self) -> Result<()> {
        for controller in &mut self.controllers {
            if controller.process.is_none() {
                controller.start().await?;
            }
        }
        self.all_alive().await?;
        let operator = &self.controllers[0].operator;
        let states = operator::states(operator).await?;
        let there = states.into_iter().filter(|(_, state)| state == "available").map(|(number, _)| number);
        operator::ask(operator, there.collect(), "manage").await?;
        self.all_are("manageable").await?;
        self.forget();
        Ok(())
    }

    /// What was noted so far is forgotten.
    pub fn forget(&self) {
        self.fleet.shared.journal.take();
        audit::forget(&self.server, &self.database);
    }

    /// What `psql` prints of statements in the database of the controllers.
    pub fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.database, statements)
    }

    /// What was noted since, by nodes and by PostgreSQL.
    ///
    /// # Errors
    /// When it is not understood.
    pub fn record(&self) -> Result<Record> {
        let names: BTreeMap<IpAddr, String> =
            self.controllers.iter().map(|one| (one.address.into(), one.name.to_owned())).collect();
        Ok(Record {
            journal: self.fleet.shared.journal.take(),
            leases: audit::leases(&self.server, &self.database)?,
            writes: audit::writes(&self.server, &self.database, &names)?,
            names,
            ..Record::default()
        })
    }

    /// The controller with this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn controller(&mut self, name: &str) -> Result<&mut Controller> {
        self.controllers.iter_mut().find(|one| one.name == name).context("a controller")
    }

    /// Leaves its files where they are: how each controller logged.
    pub fn keep(&mut self) -> &Path {
        self.dir.disable_cleanup(true);
        self.dir.path()
    }

    /// Waits until each controller knows of all that they are alive.
    ///
    /// # Errors
    /// When that is not so within three minutes.
    pub async fn all_alive(&self) -> Result<()> {
        until("all controllers are alive", async || {
            let mut all = true;
            for controller in &self.controllers {
                let body = controller.operator.call(Method::GET, "/v1/conductors", None).await?;
                let known = body["conductors"].as_array().into_iter().flatten();
                all &= known.filter(|one| one["alive"] == true).count() == NAMES.len();
            }
            Ok(all)
        })
        .await
    }

    async fn all_are(&self, state: &str) -> Result<()> {
        self.are(state, |_| true).await
    }

    /// Waits until these nodes are in this state.
    ///
    /// # Errors
    /// When one fails, or that is not so within three minutes.
    pub async fn are(&self, state: &str, which: impl Fn(u32) -> bool) -> Result<()> {
        until(state, async || {
            let states = operator::states(&self.controllers[0].operator).await?;
            Ok(states.iter().filter(|(number, _)| which(**number)).all(|(_, of)| of == state))
        })
        .await
    }
}

/// The controllers sign with one key: that which the first has made.
fn share_key(dir: &Path, name: &str) -> Result<()> {
    let state = dir.join(name);
    std::fs::DirBuilder::new().mode(0o700).create(&state)?;
    let made = dir.join(NAMES[0]).join("certificate.key");
    if made.exists() {
        std::fs::copy(made, state.join("certificate.key"))?;
    }
    Ok(())
}

/// PostgreSQL believes every client from a controller's namespace.
fn admit(server: &Server) -> Result<()> {
    let path = server.dir().join("data/pg_hba.conf");
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    writeln!(file, "host all all 10.99.0.0/16 trust")?;
    server.sql("postgres", "SELECT pg_reload_conf()");
    Ok(())
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !holds().await? {
        ensure!(begun.elapsed() < LIMIT, "{what}: not within {} s", LIMIT.as_secs());
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

impl Controller {
    fn new(
        room: &Netns,
        index: usize,
        program: &Path,
        settings: &str,
        dir: &Path,
        database: &str,
    ) -> Result<Self> {
        let name = *NAMES.get(index).context("a name")?;
        let number = u8::try_from(index + 1)?;
        let (near, address) = (Ipv4Addr::new(10, 99, number, 1), Ipv4Addr::new(10, 99, number, 2));
        let netns = Netns::create(&netns_name(name))?;
        let (here, there) = (format!("{near}/24"), format!("{address}/24"));
        let cable = Cable::plug(
            End { netns: room, interface: name, address: &here },
            End { netns: &netns, interface: "up", address: &there },
        )?;
        netns.ip(&["route", "add", "default", "via", &near.to_string()])?;
        let (config, file) = (dir.join(format!("{name}.toml")), dir.join("boot-file"));
        // One key for all: what one has encrypted, the others read.
        let text = format!(
            "host = {name:?}\nlog = \"info\"\nstate_dir = {:?}\ndatabase_key_file = {:?}\n[database]\n\
             url = \"postgres://postgres@{near}:5432/{database}?sslmode=disable\"\n[api]\n\
             listen = [\"{address}:{}\"]\nsocket = {:?}\n[boot]\n\
             enabled = true\naddress = \"{address}\"\nhttp_port = {}\ntftp = false\nkernel = {file:?}\n\
             initramfs = {file:?}\n[bmc]\nsend_passwords_over_plain_http = true\n{settings}",
            dir.join(name),
            dir.join("key"),
            PORTS.0,
            dir.join(format!("{name}.sock")),
            PORTS.1,
        );
        std::fs::write(&config, text)?;
        let api = Api::at_socket(&dir.join(format!("{name}.sock")), VERSION, Duration::from_secs(60))?;
        let operator = Operator::of(api);
        let program = program.to_owned();
        Ok(Self { name, address, operator, program, netns, cable, config, process: None })
    }

    /// Starts it; it serves at the end.
    ///
    /// # Errors
    /// When it does not.
    pub async fn start(&mut self) -> Result<()> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.netns.name()));
        command.arg(&self.program).arg("--config").arg(&self.config);
        let mut process = Daemon::start(&command, &self.config.with_extension("log"))?;
        let operator = self.operator.clone();
        until(self.name, async || {
            process.ensure_running()?;
            Ok(operator.has_driver("redfish").await)
        })
        .await
        .with_context(|| format!("controller {}", self.name))?;
        self.process = Some(process);
        Ok(())
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// SIGTERM; returns when it has ended.
    ///
    /// # Errors
    /// When it does not run, or does not end within three minutes.
    pub async fn stop(&mut self) -> Result<()> {
        self.signal(Signal::SIGTERM)?;
        let process = self.process.as_mut().context("it does not run")?;
        until("it ends", async || Ok(process.ended()?.is_some())).await?;
        self.process = None;
        Ok(())
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it does not run.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let process = self.process.as_ref().context("it does not run")?;
        Ok(kill(Pid::from_raw(process.id().try_into()?), signal)?)
    }

    /// From here on nothing gets to it or from it, but through its socket.
    ///
    /// # Errors
    /// When it cannot be cut off.
    pub fn cut(&self) -> Result<()> {
        self.cable.cut()
    }

    /// Undoes [`Controller::cut`].
    ///
    /// # Errors
    /// When it is not cut off.
    pub fn join(&self) -> Result<()> {
        self.cable.join()
    }

    /// Where it serves agents, and the certificate that it has made for itself.
    fn endpoint(&self, dir: &Path) -> Result<Endpoint> {
        let pem = std::fs::read_to_string(dir.join(self.name).join("tls/controller.crt"))?;
        let pin = Pin::of_pem(&pem).map_err(|bad| anyhow::anyhow!("{bad}"))?;
        Ok(Endpoint { address: SocketAddr::new(self.address.into(), PORTS.0), pin: Some(pin) })
    }
}
