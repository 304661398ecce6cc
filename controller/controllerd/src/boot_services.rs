//! Starts the optional boot services.

use crate::boot_contents::BootContents;
use crate::config::{Boot, Config, DhcpMode};
use crate::directory::Directory;
use crate::discovery_boots::DiscoveryBoots;
use crate::identity::Identity;
use crate::services::Services;
use anyhow::{Context, Result};
use boot::BootDirectory;
use boot::dhcp::{Dhcp, DhcpConfig, Mode, Pool, SharedLeases};
use boot::dhcp6::{Dhcp6, Dhcp6Config};
use boot::http::{Http, HttpConfig};
use boot::tftp::{Tftp, TftpConfig};
use http_server::Clients;
use metrics::Metrics;
use model::AgentApi;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use store::Members;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// What the services of `[boot]` work with.
pub struct BootServices<'a> {
    pub config: &'a Config,
    /// `None` without `[boot]`.
    pub contents: Option<Arc<BootContents>>,
    pub clients: Clients,
    /// Whose threads they run on.
    pub runtime: &'a Handle,
    pub stop: &'a CancellationToken,
    /// The other controllers, to which agents turn when this one is gone.
    pub members: Members,
    /// What is asked is counted there.
    pub metrics: &'a Metrics,
}

/// Where the agents of booted nodes reach this controller; nowhere without `[boot]`.
pub fn agent_api(config: &Config, identity: &Identity) -> Option<AgentApi> {
    let mut apis = config.boot.http_addresses().filter_map(|at| config.agent_endpoint(at.ip()));
    let first = apis.next()?;
    let url = |api: SocketAddr| format!("{}://{api}", if api.ip().is_loopback() { "http" } else { "https" });
    Some(AgentApi {
        url: url(first),
        url_ipv6: apis.next().map(url),
        pin_sha256: (!first.ip().is_loopback()).then(|| identity.fingerprint()),
        gives_addresses: config.boot.dhcp == DhcpMode::Server,
    })
}

/// What DHCP can name.
fn ipv4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// What DHCPv6 can name.
fn ipv6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address),
    }
}

/// Bind and run the services that `[boot]` enables.
pub async fn start(parts: BootServices<'_>, services: &mut Services) -> Result<()> {
    let BootServices { config, contents, clients, runtime, stop, members, metrics } = parts;
    let boot = &config.boot;
    let Some(contents) = contents else { return Ok(()) };
    let leases = SharedLeases::default();
    let known = leases.clone();
    let lease_of = Arc::new(move |mac| known.address_of(mac));
    let hellos = api::Rates::new(config.agent.requests());
    let discovery = config.discovery().map(|settings| DiscoveryBoots {
        settings,
        after: config.discovery.after,
        asked: api::Rates::new(config.agent.requests()),
    });
    let directory = Directory { contents: contents.clone(), lease_of, hellos, discovery };
    let directory = metrics.directory(Arc::new(directory));
    let mut starter = Starter { boot, runtime, stop, services };
    starter.http(&contents, &directory, &clients).await?;
    starter.tftp().await?;
    starter.router_advertisements();
    starter.dhcpv6().await?;
    starter.dhcp(leases, members).await
}

/// Binds the services and runs each of them at each of its addresses.
struct Starter<'a> {
    boot: &'a Boot,
    runtime: &'a Handle,
    stop: &'a CancellationToken,
    services: &'a mut Services,
}

impl Starter<'_> {
    async fn http(
        &mut self,
        contents: &BootContents,
        directory: &Arc<dyn BootDirectory>,
        clients: &Clients,
    ) -> Result<()> {
        let boot = self.boot;
        for listen in boot.http_addresses() {
            let config = HttpConfig {
                listen,
                base_url: format!("http://{listen}"),
                ramdisk: contents.files.clone(),
                loader_dir: boot.loader_dir.clone(),
                medium: contents.medium.clone(),
            };
            let bound = Http::bind(config, directory.clone(), clients.clone());
            let http = self.runtime.spawn(bound).await?.context("boot.http_port")?;
            let stopped = self.stop.clone();
            self.services.start_on(self.runtime, format!("boot HTTP on {listen}"), async move {
                http.run(stopped).await;
                Ok(())
            });
        }
        Ok(())
    }

    async fn tftp(&mut self) -> Result<()> {
        let boot = self.boot;
        for address in boot.addresses().filter(|_| boot.tftp) {
            let listen = SocketAddr::new(address, 69);
            let config = TftpConfig { listen, loader_dir: boot.loader_dir.clone() };
            let tftp = self.runtime.spawn(Tftp::bind(config)).await?.context("boot.tftp")?;
            let stopped = self.stop.clone();
            let name = format!("boot TFTP on {listen}");
            self.services.start_on(self.runtime, name, async move { Ok(tftp.run(stopped).await?) });
        }
        Ok(())
    }

    /// Without them iPXE waits 16 s for IPv6, also where it boots by IPv4.
    fn router_advertisements(&mut self) {
        let network = self.boot.dhcpv6_address();
        if self.boot.dhcp == DhcpMode::Off && network.is_none() {
            return;
        }
        let (interface, stopped) = (self.boot.interface.clone(), self.stop.clone());
        let advertising = async move { Ok(boot::ra::serve(&interface, network, stopped).await?) };
        self.services.start_on(self.runtime, "boot router advertisements", advertising);
    }

    async fn dhcpv6(&mut self) -> Result<()> {
        let boot = self.boot;
        let Some(server) = boot.dhcpv6_address() else { return Ok(()) };
        let config = Dhcp6Config {
            interface: boot.interface.clone(),
            server,
            boot_url: format!("http://[{server}]:{}", boot.http_port),
            dns: boot.dns.iter().filter_map(|server| ipv6(*server)).collect(),
        };
        let dhcp = self.runtime.spawn(Dhcp6::bind(config)).await?.context("boot.dhcpv6")?;
        let stopped = self.stop.clone();
        self.services.start_on(self.runtime, "boot DHCPv6", async move { Ok(dhcp.run(stopped).await?) });
        Ok(())
    }

    async fn dhcp(&mut self, leases: SharedLeases, members: Members) -> Result<()> {
        let boot = self.boot;
        let (Some(mode), Some(server)) = (dhcp_mode(boot), boot.address) else { return Ok(()) };
        let boot_url = format!("http://{server}:{}", boot.http_port);
        let config = DhcpConfig { interface: boot.interface.clone(), server, boot_url, mode };
        let is_server = boot.dhcp == DhcpMode::Server;
        let dhcp = self.runtime.spawn(Dhcp::bind(config)).await?.context("boot.dhcp")?.sharing(leases);
        let dhcp = dhcp.standing_by(Arc::new(move || !is_server || members.gives_addresses()));
        let stopped = self.stop.clone();
        self.services.start_on(self.runtime, "boot DHCP", async move { Ok(dhcp.run(stopped).await?) });
        Ok(())
    }
}

/// How DHCP is served; `None`: not at all.
fn dhcp_mode(boot: &Boot) -> Option<Mode> {
    match (boot.dhcp, boot.dhcp_first, boot.dhcp_last) {
        (DhcpMode::Proxy, _, _) => Some(Mode::Proxy),
        (DhcpMode::Server, Some(first), Some(last)) => Some(Mode::Server(Pool {
            first,
            last,
            prefix: boot.dhcp_prefix,
            router: boot.dhcp_router,
            dns: boot.dns.iter().filter_map(|server| ipv4(*server)).collect(),
            lease: Duration::from_secs(u64::from(boot.dhcp_lease_s)),
        })),
        _ => None,
    }
}
