//! Starts the optional boot services.

use crate::config::{Boot, Config, DhcpMode};
use crate::directory::Directory;
use crate::discovery_boots::DiscoveryBoots;
use crate::identity::Identity;
use crate::services::Services;
use anyhow::{Context, Result};
use boot::dhcp::{Dhcp, DhcpConfig, Mode, Pool, SharedLeases};
use boot::http::{Http, HttpConfig};
use boot::medium::MediumConfig;
use boot::tftp::{Tftp, TftpConfig};
use boot::{RamdiskParams, kernel_arguments, ramdisk_cmdline};
use http_server::Clients;
use metrics::Metrics;
use model::AgentApi;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, Members, Remarks, Store};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// What the services of `[boot]` work with.
pub struct BootServices<'a> {
    pub config: &'a Config,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub clients: Clients,
    pub remarks: Remarks,
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

/// Bind and run the services that `[boot]` enables.
pub async fn start(parts: BootServices<'_>, services: &mut Services) -> Result<()> {
    let BootServices { config, store, clock, clients, remarks, runtime, stop, members, metrics } = parts;
    let boot = &config.boot;
    if !boot.enabled {
        return Ok(());
    }
    let own = members.agent_api().context("boot.address is none of api.listen")?.clone();
    let ramdisk = RamdiskParams {
        api_urls: own.by_url().map(|api| api.url).collect(),
        pins_sha256: own.pin_sha256.iter().cloned().collect(),
        dns: boot.dns.clone(),
        ntp: boot.ntp.clone(),
        consoles: boot.consoles.clone(),
        extra: boot.kernel_append.clone(),
        ..RamdiskParams::default()
    };
    ramdisk_cmdline(&ramdisk).context("boot")?;
    let leases = SharedLeases::default();
    let arguments = kernel_arguments(&ramdisk).context("boot")?;
    let http_at = |listen: SocketAddr| HttpConfig {
        listen,
        base_url: format!("http://{listen}"),
        kernel: boot.kernel.clone(),
        initramfs: boot.initramfs.clone(),
        rescue: boot.rescue.clone(),
        loader_dir: boot.loader_dir.clone(),
        medium: MediumConfig {
            loader_dir: boot.medium_loader_dir.clone(),
            arguments: arguments.clone(),
            signed_uki: boot.signed_uki().map(Into::into),
        },
    };
    let known = leases.clone();
    let lease_of = Arc::new(move |mac| known.address_of(mac));
    let hellos = api::Rates::new(config.agent_requests());
    let discovery = config.discovery().map(|settings| DiscoveryBoots {
        settings,
        after: config.discovery.after,
        asked: api::Rates::new(config.agent_requests()),
    });
    let members_of = members.clone();
    let directory =
        Directory { store, clock, ramdisk, own, members: members_of, lease_of, hellos, remarks, discovery };
    let directory = metrics.directory(Arc::new(directory));
    for listen in boot.http_addresses() {
        let bound = Http::bind(http_at(listen), directory.clone(), clients.clone());
        let http = runtime.spawn(bound).await?.context("boot.http_port")?;
        let stopped = stop.clone();
        services.start_on(runtime, format!("boot HTTP on {listen}"), async move {
            http.run(stopped).await;
            Ok(())
        });
    }
    let Some(address) = boot.address else { return Ok(()) };
    if boot.tftp {
        let tftp = TftpConfig {
            listen: SocketAddr::new(IpAddr::V4(address), 69),
            loader_dir: boot.loader_dir.clone(),
        };
        let tftp = runtime.spawn(Tftp::bind(tftp)).await?.context("boot.tftp")?;
        let stopped = stop.clone();
        services.start_on(runtime, "boot TFTP", async move { Ok(tftp.run(stopped).await?) });
    }
    let Some(mode) = dhcp_mode(boot) else { return Ok(()) };
    let boot_url = format!("http://{address}:{}", boot.http_port);
    let dhcp = DhcpConfig { interface: boot.interface.clone(), server: address, boot_url, mode };
    // Without router advertisements iPXE waits 16 s for IPv6.
    let (interface, stopped) = (boot.interface.clone(), stop.clone());
    let advertising = async move { Ok(boot::ra::serve(&interface, stopped).await?) };
    services.start_on(runtime, "boot router advertisements", advertising);
    let is_server = boot.dhcp == DhcpMode::Server;
    let dhcp = runtime.spawn(Dhcp::bind(dhcp)).await?.context("boot.dhcp")?.sharing(leases);
    let dhcp = dhcp.standing_by(Arc::new(move || !is_server || members.gives_addresses()));
    let stopped = stop.clone();
    services.start_on(runtime, "boot DHCP", async move { Ok(dhcp.run(stopped).await?) });
    Ok(())
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
