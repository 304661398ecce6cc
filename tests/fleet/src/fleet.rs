//! All machines of a simulator, and the two listeners at which their BMCs and agents are reached.

use crate::agent::Heard;
use crate::behaviour::Behaviour;
use crate::bmc;
use crate::contact::Endpoint;
use crate::fetches::Fetches;
use crate::journal::Journal;
use crate::machine::Machine;
use crate::network::{self, Network};
use anyhow::{Context, Result, ensure};
use bench::server;
use contract::certificate;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What a simulator is made of.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Nodes.
    pub nodes: u32,
    /// Their addresses.
    pub network: Network,
    /// BMCs serve HTTPS, with a certificate that no client knows; else HTTP.
    pub bmc_tls: bool,
    /// How they behave.
    pub behaviour: Behaviour,
    /// Where boot scripts are served. The first that answers boots a node.
    pub boot: Vec<SocketAddr>,
    /// Controllers that every agent knows of in addition to the one that booted it.
    pub controllers: Vec<Endpoint>,
}

impl Setup {
    /// Nodes on loopback that one controller boots, which serves boot scripts there. Their BMCs serve HTTP.
    pub fn on_loopback(nodes: u32, behaviour: Behaviour, boot: SocketAddr) -> Self {
        let (network, boot) = (Network::LOOPBACK, vec![boot]);
        Self { nodes, network, bmc_tls: false, behaviour, boot, controllers: Vec::new() }
    }
}

/// Where BMCs and agents of all nodes listen, each at the address of its node.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// Of BMCs.
    pub bmc: u16,
    /// Of agents.
    pub agent: u16,
}

/// What all machines share.
pub struct Shared {
    /// What they are made of.
    pub setup: Setup,
    /// Where they listen.
    pub ports: Ports,
    /// What happened to them.
    pub journal: Journal,
    /// What happens by chance.
    pub seed: AtomicU64,
    /// Where images are measured, what agents do instead of writing one.
    pub fetches: OnceLock<Arc<Fetches>>,
}

/// The machines. Dropped, all lose their power.
pub struct Fleet {
    /// By number.
    pub machines: Vec<Arc<Machine>>,
    /// What they share.
    pub shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

impl Fleet {
    /// Machines that are off, with their BMCs.
    ///
    /// # Errors
    /// When there are too many, or no port or certificate for them.
    pub async fn start(setup: Setup, journal: Journal, seed: u64) -> Result<Self> {
        ensure!(setup.nodes <= network::MOST_NODES, "at most {} nodes", network::MOST_NODES);
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
        let (bmcs, agents) = (listener().await?, listener().await?);
        let ports = Ports { bmc: bmcs.local_addr()?.port(), agent: agents.local_addr()?.port() };
        let tls: Option<TlsAcceptor> =
            setup.bmc_tls.then(certificate::own).transpose()?.map(|(config, _)| config.into());
        let (nodes, seed) = (setup.nodes, AtomicU64::new(seed));
        let shared = Arc::new(Shared { setup, ports, journal, seed, fetches: OnceLock::new() });
        let machines: Vec<_> =
            (0..nodes).map(|number| Arc::new(Machine::new(number, shared.clone()))).collect();
        let mut serving = JoinSet::new();
        let (for_bmcs, for_agents) = (Doors::of(&shared, &machines), Doors::of(&shared, &machines));
        serving.spawn(
            for_bmcs.open(bmcs, move |stream, machine, from| serve_bmc(stream, tls.clone(), machine, from)),
        );
        serving.spawn(for_agents.open(agents, serve_agent));
        Ok(Self { machines, shared, _serving: serving })
    }

    /// Begins a run: what happens by chance is of this seed from its beginning, and the journal is empty.
    pub fn begin(&self, seed: u64) {
        self.shared.seed.store(seed, Ordering::Relaxed);
        self.machines.iter().for_each(|machine| machine.begin());
        self.shared.journal.take();
    }

    /// Where the BMC of a node is reached.
    pub fn bmc_url(&self, number: u32) -> String {
        let Shared { setup, ports, .. } = &*self.shared;
        let scheme = if setup.bmc_tls { "https" } else { "http" };
        format!("{scheme}://{}:{}", setup.network.address(number), ports.bmc)
    }

    /// What a node is enrolled with at a controller.
    pub fn enrolment(&self, number: u32) -> Value {
        let mut info = json!({
            "redfish_address": self.bmc_url(number),
            "redfish_system_id": bmc::SYSTEM,
            "redfish_username": bmc::USER.0,
            "redfish_password": bmc::USER.1,
            "redfish_auth_type": "basic",
        });
        if self.shared.setup.bmc_tls {
            info["redfish_verify_ca"] = json!(false);
        }
        json!({
            "uuid": network::uuid(number),
            "name": format!("fleet-{number}"),
            "driver": "redfish",
            "driver_info": info,
            "deploy_interface": "direct",
            "inspect_interface": "agent",
        })
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.machines.iter().for_each(|machine| machine.switch(false));
        if let Err(error) = self.shared.journal.flush() {
            eprintln!("anneal-fleet: journal: {error:#}");
        }
    }
}

async fn listener() -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.context("no port for the nodes")
}

/// The way from an address to its machine.
struct Doors {
    network: Network,
    machines: Vec<Arc<Machine>>,
}

impl Doors {
    fn of(shared: &Shared, machines: &[Arc<Machine>]) -> Self {
        Self { network: shared.setup.network, machines: machines.to_vec() }
    }

    /// The machine that a client has connected to.
    fn machine(&self, to: IpAddr) -> Option<&Arc<Machine>> {
        self.network.number(to).and_then(|number| self.machines.get(usize::try_from(number).ok()?))
    }

    /// Serves every client that may connect, without end.
    async fn open<F>(
        self,
        listener: TcpListener,
        serve: impl Fn(TcpStream, Arc<Machine>, IpAddr) -> F + Send + Sync,
    ) where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, from)) if self.network.admits(from.ip()) => {
                    let to = stream.local_addr().map(|to| to.ip());
                    if let Some(machine) = to.ok().and_then(|to| self.machine(to)) {
                        connections.spawn(serve(stream, machine.clone(), from.ip()));
                    }
                }
                Ok(_) => {}
                Err(error) => eprintln!("anneal-fleet: accept: {error}"),
            }
        }
    }
}

async fn serve_bmc(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    machine: Arc<Machine>,
    from: IpAddr,
) -> Result<()> {
    bmc::connection(stream, tls, machine, from).await
}

/// A machine without an agent closes the connection: a kernel without a listener would refuse it.
async fn serve_agent(stream: TcpStream, machine: Arc<Machine>, from: IpAddr) -> Result<()> {
    let Some(agent) = machine.agent() else { return Ok(()) };
    let (tls, died) = (Some(agent.tls.clone()), agent.process.died.clone());
    tokio::select! {
        () = died.cancelled() => Ok(()),
        ended = server::connection(stream, tls, Arc::new(Heard { agent, from })) => ended,
    }
}
