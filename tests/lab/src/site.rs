//! A whole site in a few lines: a network, a controller, and nodes behind BMCs.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::controller::{Controller, ControllerConfig};
use crate::disk::DiskSpec;
use crate::machine::Machine;
use crate::net::{self, Bridge, Netns};
use crate::node::{Firmware, NodeSpec};
use crate::redfish::media::MediaQuirks;
use crate::redfish::{BmcConfig, RedfishBmc};
use crate::timeline::Timeline;

/// The controller's address on the bridge.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(172, 22, 0, 1);
/// The network of the nodes of [`Site::routed`].
pub const ROUTED: &str = "172.23.0.0/24";
/// Their router.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(172, 23, 0, 1);
/// The router on the controller's network.
const NEAR: Ipv4Addr = Ipv4Addr::new(172, 22, 0, 254);
/// The controller's address on the bridge in [`Site::ipv6`] and [`Site::routed_ipv6`].
pub const ADDRESS_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x22, 0, 0, 0, 0, 0, 1);
/// The network of its nodes.
pub const ROUTED_IPV6: &str = "fd00:23::/64";
/// Their router.
pub const ROUTER_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x23, 0, 0, 0, 0, 0, 1);
/// The router on the controller's network.
const NEAR_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x22, 0, 0, 0, 0, 0, 0xfe);
/// User of every BMC here.
pub const BMC_USER: &str = "admin";
/// Password of every BMC here.
pub const BMC_PASSWORD: &str = "calvin-of-the-lab";

/// A network with a controller on it.
#[derive(Debug)]
pub struct Site {
    /// Everything that is written goes below.
    pub dir: PathBuf,
    /// What happened when.
    pub timeline: Timeline,
    /// The controller.
    pub controller: Controller,
    /// That of the nodes.
    bridge: Bridge,
    nodes: u8,
    _router: Option<Netns>,
}

/// A server and its BMC.
#[derive(Debug)]
pub struct SiteNode {
    /// Name of the node, in the lab and in the controller.
    pub name: String,
    /// The server.
    pub machine: Machine,
    /// Its BMC.
    pub bmc: RedfishBmc,
}

/// Runs `story` in a network namespace of its own, inside an async runtime.
///
/// # Errors
/// When the namespace cannot be made, or what the story says.
pub fn in_namespace<T, F>(name: &str, story: impl FnOnce() -> F + Send) -> Result<T>
where
    T: Send,
    F: Future<Output = Result<T>>,
{
    let netns = Netns::create(name)?;
    netns.run(|| {
        let runtime = tokio::runtime::Runtime::new().context("no runtime")?;
        let result = runtime.block_on(story());
        // Machines and services still running end here, before the namespace goes.
        drop(runtime);
        result
    })
}

impl Site {
    /// A bridge, and the controller with its boot services on it. `extra` is more TOML for
    /// the controller's configuration.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start(dir: &Path, extra: &str) -> Result<Self> {
        Self::start_with(dir, None, extra).await
    }

    /// As [`Site::start`], with a kernel and an initramfs in a directory of the caller's.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn start_with(dir: &Path, image: Option<PathBuf>, extra: &str) -> Result<Self> {
        let bridge = Bridge::create("br0", &format!("{ADDRESS}/24"))?;
        let (dir, extra) = (dir.to_owned(), extra.to_owned());
        let address = Some(ADDRESS);
        let config = ControllerConfig { dir, address, ipv6_address: None, dhcp: true, image, extra };
        Self::of(config, bridge, None).await
    }

    /// A bridge without IPv4, and the controller with its boot services on it, at [`ADDRESS_IPV6`].
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn ipv6(dir: &Path, extra: &str) -> Result<Self> {
        let bridge = Bridge::plain("br0")?;
        bridge.add_address_at_once(&format!("{ADDRESS_IPV6}/64"))?;
        let (dir, extra) = (dir.to_owned(), extra.to_owned());
        let ipv6_address = Some(ADDRESS_IPV6);
        let config = ControllerConfig { dir, address: None, ipv6_address, dhcp: true, image: None, extra };
        Self::of(config, bridge, None).await
    }

    /// A controller whose nodes are behind a router, on a network of their own, [`ROUTED`]. Neither DHCP nor TFTP is served.
    /// BMCs are on the controller's side. `name`: of the router, unlike that of any other namespace.
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn routed(dir: &Path, name: &str, extra: &str) -> Result<Self> {
        Self::routed_with(dir, name, None, extra).await
    }

    /// As [`Site::routed`], where nodes, router and controller have IPv6, too: [`ADDRESS_IPV6`], [`ROUTED_IPV6`].
    ///
    /// # Errors
    /// When a part does not start.
    pub async fn routed_ipv6(dir: &Path, name: &str, extra: &str) -> Result<Self> {
        Self::routed_with(dir, name, Some(ADDRESS_IPV6), extra).await
    }

    async fn routed_with(
        dir: &Path,
        name: &str,
        ipv6_address: Option<Ipv6Addr>,
        extra: &str,
    ) -> Result<Self> {
        let router = Netns::create(name)?;
        let near = Bridge::create("br0", &format!("{ADDRESS}/24"))?;
        let bridge = Bridge::plain("br1")?;
        near.connect(&router, "near", &format!("{NEAR}/24"))?;
        bridge.connect(&router, "far", &format!("{ROUTER}/24"))?;
        router.run(net::forward)?;
        net::route(ROUTED, &NEAR.to_string())?;
        if let Some(address) = ipv6_address {
            near.add_address_at_once(&format!("{address}/64"))?;
            router.run(|| {
                net::forward_ipv6()?;
                Bridge::named("near").add_address_at_once(&format!("{NEAR_IPV6}/64"))?;
                Bridge::named("far").add_address_at_once(&format!("{ROUTER_IPV6}/64"))
            })?;
            net::route(ROUTED_IPV6, &NEAR_IPV6.to_string())?;
        }
        let (dir, extra) = (dir.to_owned(), extra.to_owned());
        let address = Some(ADDRESS);
        let config = ControllerConfig { dir, address, ipv6_address, dhcp: false, image: None, extra };
        Self::of(config, bridge, Some(router)).await
    }

    /// A controller with this configuration, and no nodes yet. `bridge`: that of the nodes.
    async fn of(config: ControllerConfig, bridge: Bridge, router: Option<Netns>) -> Result<Self> {
        let dir = config.dir.clone();
        let controller = Controller::start(config).await?;
        Ok(Self { dir, timeline: Timeline::default(), controller, bridge, nodes: 0, _router: router })
    }

    /// Makes a server that is off, with a BMC that speaks HTTPS, unknown to the controller.
    ///
    /// # Errors
    /// When a part cannot be made.
    pub async fn node(&mut self, name: &str, firmware: Firmware, disks: Vec<DiskSpec>) -> Result<SiteNode> {
        self.node_with(name, firmware, disks, &[]).await
    }

    /// As [`Site::node`], with more QEMU options.
    ///
    /// # Errors
    /// When a part cannot be made.
    pub async fn node_with(
        &mut self,
        name: &str,
        firmware: Firmware,
        disks: Vec<DiskSpec>,
        extra: &[&str],
    ) -> Result<SiteNode> {
        let change = |spec: &mut NodeSpec| spec.extra.extend(extra.iter().map(|&word| word.to_owned()));
        self.node_like(name, firmware, disks, change, MediaQuirks::default()).await
    }

    /// As [`Site::node`], with its hardware changed, and a BMC with virtual media like this.
    ///
    /// # Errors
    /// When a part cannot be made.
    pub async fn node_like(
        &mut self,
        name: &str,
        firmware: Firmware,
        disks: Vec<DiskSpec>,
        change: impl FnOnce(&mut NodeSpec),
        media: MediaQuirks,
    ) -> Result<SiteNode> {
        self.nodes += 1;
        let tap = format!("tap{}", self.nodes);
        self.bridge.tap(&tap)?;
        let mac = format!("52:54:00:a4:ea:{:02x}", self.nodes);
        let mut spec = NodeSpec::new(name, firmware, &mac, &tap, self.dir.join(name))?;
        spec.disks = disks;
        change(&mut spec);
        let machine = Machine::new(spec, self.timeline.clone());
        let config = BmcConfig {
            address: (self.bmc_address(), 8000 + u16::from(self.nodes)).into(),
            username: BMC_USER.to_owned(),
            password: BMC_PASSWORD.to_owned(),
            tls: true,
        };
        let bmc = RedfishBmc::start_with(machine.clone(), config, media).await?;
        Ok(SiteNode { name: name.to_owned(), machine, bmc })
    }

    /// All BMCs are at the controller's address, each at a port of its own.
    fn bmc_address(&self) -> IpAddr {
        self.controller.config().addresses().next().unwrap_or(ADDRESS.into())
    }

    /// Another address on the controller's network, where the nodes are behind a router.
    ///
    /// # Errors
    /// When the network has it.
    pub fn add_controller_side_address(&self, address: Ipv4Addr) -> Result<()> {
        Bridge::named("br0").add_address(&format!("{address}/24"))
    }

    /// Another address on the nodes' network, for a program of the test.
    ///
    /// # Errors
    /// When the network has it.
    pub fn add_address(&self, address: Ipv4Addr) -> Result<()> {
        self.bridge.add_address(&format!("{address}/24"))
    }

    /// Enrols a server by the `anneal` command: node and port.
    ///
    /// # Errors
    /// When the controller refuses.
    pub async fn enrol(&self, node: &SiteNode) -> Result<()> {
        let password = self.dir.join("bmc-password");
        std::fs::write(&password, BMC_PASSWORD)
            .with_context(|| format!("cannot write {}", password.display()))?;
        // The controller shall speak to this BMC and to none that pretends to be it.
        let certificate = format!("{}.pem", node.name);
        let place = self.controller.config().bmc_ca().join(&certificate);
        std::fs::write(&place, node.bmc.certificate().unwrap_or_default())
            .with_context(|| format!("cannot write {}", place.display()))?;
        let info = [
            format!("redfish_address={}", node.bmc.url()),
            format!("redfish_system_id={}", RedfishBmc::system_id()),
            format!("redfish_username={BMC_USER}"),
            format!("redfish_password=@{}", password.display()),
            format!("redfish_verify_ca={certificate}"),
        ];
        let mut words = vec!["node", "create", "--driver", "redfish", "--name", &node.name];
        for item in &info {
            words.extend(["--driver-info", item]);
        }
        self.controller.anneal(&words).await?;
        let mac = node.machine.spec().mac.clone();
        self.controller.anneal(&["port", "create", &mac, "--node", &node.name]).await?;
        Ok(())
    }
}
