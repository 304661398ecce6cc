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
use std::net::{IpAddr, SocketAddr};
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
    let address = config.boot.address.filter(|_| config.boot.enabled)?;
    let api = config.agent_endpoint(address)?;
    let tls = !api.ip().is_loopback();
    let url = format!("{}://{api}", if tls { "https" } else { "http" });
    let gives_addresses = config.boot.dhcp == DhcpMode::Server;
    Some(AgentApi { url, pin_sha256: tls.then(|| identity.fingerprint()), gives_addresses })
}

/// Bind and run the services that `[boot]` enables.
pub async fn start(parts: BootServices<'_>, services: &mut Services) -> Result<()> {
    let BootServices { config, store, clock, clients, remarks, runtime, stop, members, metrics } = parts;
    let boot = &config.boot;
    let (true, Some(address)) = (boot.enabled, boot.address) else { return Ok(()) };
    let own = members.agent_api().context("boot.address is none of api.listen")?.clone();
    let ramdisk = RamdiskParams {
        api_urls: vec![own.url.clone()],
        pins_sha256: own.pin_sha256.iter().cloned().collect(),
        dns: boot.dns.clone(),
        consoles: boot.consoles.clone(),
        extra: boot.kernel_append.clone(),
        ..RamdiskParams::default()
    };
    ramdisk_cmdline(&ramdisk).context("boot")?;
    let leases = SharedLeases::default();
    let base_url = format!("http://{address}:{}", boot.http_port);
    let http = HttpConfig {
        listen: SocketAddr::new(IpAddr::V4(address), boot.http_port),
        base_url: base_url.clone(),
        kernel: boot.kernel.clone(),
        initramfs: boot.initramfs.clone(),
        rescue: boot.rescue.clone(),
        loader_dir: boot.loader_dir.clone(),
        medium: MediumConfig {
            loader_dir: boot.medium_loader_dir.clone(),
            arguments: kernel_arguments(&ramdisk).context("boot")?,
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
    let http = runtime.spawn(Http::bind(http, directory, clients)).await?.context("boot.http_port")?;
    let stopped = stop.clone();
    services.start_on(runtime, "boot HTTP", async move {
        http.run(stopped).await;
        Ok(())
    });
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
    let dhcp = DhcpConfig { interface: boot.interface.clone(), server: address, boot_url: base_url, mode };
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
            dns: boot.dns.clone(),
            lease: Duration::from_secs(u64::from(boot.dhcp_lease_s)),
        })),
        _ => None,
    }
}
