//! What the NIC with a MAC address boots: the ramdisk while the node's run needs it, the disk otherwise.

use crate::boot_contents::{BootContents, gets_login, laid_out};
use crate::discovery_boots::DiscoveryBoots;
use async_trait::async_trait;
use boot::medium::Content;
use boot::{BootAnswer, BootDirectory, HelloAnswer, Mac, MediumAnswer, Overlay};
use http_server::address_key;
use model::boot::Boot;
use model::boot_medium::{MediumFormat, MediumKind};
use model::discovery::UnknownBoot;
use model::hello::HelloNonce;
use model::ramdisk_deploy::{RamdiskDeploy, boots_instance};
use model::{Node, ResourceKind, boot_medium};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use store::{FetchSource, ScriptFetch, ScriptGrant, StoreError};
use subtle::ConstantTimeEq;
use tokio::time::{Instant, timeout};

/// Which address a NIC has been given, if any.
pub type LeaseOf = Arc<dyn Fn(Mac) -> Option<Ipv4Addr> + Send + Sync>;

/// Looks nodes up in the store.
pub struct Directory {
    /// What the boots of nodes consist of.
    pub contents: Arc<BootContents>,
    /// The lease of a NIC, where this controller gives nodes their addresses.
    pub lease_of: LeaseOf,
    /// How many hellos an address may send.
    pub hellos: Arc<api::Rates>,
    /// Boots of machines that no node is known for; `None`: there are none.
    pub discovery: Option<DiscoveryBoots>,
}

/// How long the name of a BMC is looked up.
const RESOLVE: Duration = Duration::from_secs(5);

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, mac: Mac, from: IpAddr) -> BootAnswer {
        let node = match self.contents.store.resource_by_key(ResourceKind::Port, &mac.to_string()).await {
            Ok(port) => port.node,
            Err(StoreError::NotFound { .. }) => return self.unknown(mac, from).await,
            Err(_) => None,
        };
        let Some(node) = node else { return BootAnswer::Unknown };
        match self.contents.store.node(node).await {
            // It boots from its medium, or not at all: a script would give the nonce to the network.
            Ok(node) if node.boots_ramdisk() && boot_medium::way(&node).is_some() => BootAnswer::Wait,
            Ok(node) if node.boots_ramdisk() => self.ramdisk(&node, mac, from).await,
            Ok(node) if boots_instance(&node) => instance(&node, mac),
            Ok(_) => BootAnswer::LocalDisk,
            Err(error) => {
                tracing::error!(%mac, error = %error.chain(), "cannot read the node; it boots from its disk");
                BootAnswer::LocalDisk
            }
        }
    }

    async fn medium(&self, file_name: &str, from: Option<IpAddr>) -> MediumAnswer {
        let Some(node) = boot_medium::node_of(file_name) else { return MediumAnswer::NotThere };
        let node = match self.contents.store.node(node).await {
            Ok(node) => node,
            Err(StoreError::NotFound { .. }) => return MediumAnswer::NotThere,
            Err(error) => {
                tracing::error!(node_uuid = %node, error = %error.chain(), "cannot read the node of a boot medium");
                return MediumAnswer::Failed;
            }
        };
        match self.medium_of(&node, file_name, from).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(node_uuid = %node.uuid, error = %error.chain(), "cannot read or store who reads a boot medium");
                MediumAnswer::Failed
            }
        }
    }

    async fn hello(&self, nonce: &str, from: Option<IpAddr>) -> HelloAnswer {
        if let Some(address) = from.map(address_key)
            && !self.hellos.accepts(address, Instant::now())
        {
            return HelloAnswer::TooMany;
        }
        match store::hello::hear(&*self.contents.store, &HelloNonce::shown(nonce), self.contents.clock.now())
            .await
        {
            Ok(true) => HelloAnswer::Heard,
            Ok(false) => {
                tracing::warn!(?from, "rejected a hello: no deployment awaits it");
                HelloAnswer::NotAwaited
            }
            Err(error) => {
                tracing::error!(?from, error = %error.chain(), "cannot store a hello");
                HelloAnswer::Failed
            }
        }
    }
}

impl Directory {
    /// What a machine boots that no node is known for.
    async fn unknown(&self, mac: Mac, from: IpAddr) -> BootAnswer {
        let Some(discovery) = &self.discovery else { return BootAnswer::Unknown };
        let boot = UnknownBoot { mac, from: from.to_canonical(), at: self.contents.clock.now() };
        let answer = discovery
            .answer(&*self.contents.store, boot, (self.lease_of)(mac), self.contents.controllers(""))
            .await;
        match answer {
            BootAnswer::Ramdisk { kernel_args, rescue, .. } => BootAnswer::Ramdisk {
                kernel_args,
                rescue,
                firmware: self.contents.firmware.of_unknown_machine().await,
            },
            other => other,
        }
    }

    /// The script with the nonce of this boot, for the one address that may have it.
    async fn ramdisk(&self, node: &Node, mac: Mac, from: IpAddr) -> BootAnswer {
        let node_uuid = node.uuid;
        // A client that asks from elsewhere is not this NIC. It gets no script, so it is no claim: it cannot make the node boot
        // again either.
        if let Some(lease) = (self.lease_of)(mac)
            && IpAddr::V4(lease) != from
        {
            tracing::warn!(%node_uuid, %mac, %from, %lease, "withheld a boot script: the lease of this MAC is another address");
            let text = format!(
                "the boot script for {mac} was withheld from {from}: the lease of this MAC is {lease}"
            );
            self.contents.remark(node, "boot script", &text).await;
            return BootAnswer::Wait;
        }
        let fetch =
            ScriptFetch { by: FetchSource::Nic(mac), from, at: self.contents.clock.now(), medium: None };
        match self.contents.store.fetch_script(node_uuid, fetch).await {
            Ok(ScriptGrant::Given(nonce)) => match self.contents.kernel_args(node, &nonce) {
                Ok(kernel_args) => BootAnswer::Ramdisk {
                    kernel_args,
                    rescue: gets_login(node),
                    firmware: self.contents.firmware_of(node).await,
                },
                Err(error) => {
                    tracing::error!(%node_uuid, %error, "no kernel command line");
                    BootAnswer::Wait
                }
            },
            Ok(ScriptGrant::Withheld) => {
                tracing::warn!(%node_uuid, %mac, %from, "withheld a boot script: the node is not powered on yet, its agent has been heard, or another address has the script");
                BootAnswer::Wait
            }
            Err(error) => {
                tracing::error!(%node_uuid, error = %error.chain(), "cannot read who fetched the boot script");
                BootAnswer::Wait
            }
        }
    }

    /// The medium of the node's present boot, while it may be inserted: for the node's BMC alone, or by HTTP boot for its firmware.
    async fn medium_of(
        &self,
        node: &Node,
        file_name: &str,
        from: Option<IpAddr>,
    ) -> Result<MediumAnswer, StoreError> {
        if boot_medium::way(node).is_none() {
            tracing::warn!(node_uuid = %node.uuid, ?from, "refused a boot medium: the node boots from none");
            return Ok(MediumAnswer::NotThere);
        }
        let boot = self.contents.store.contact(node.uuid).await?.boot.filter(|_| node.medium_inserted);
        let reader = self.reader(node, boot.as_ref(), from).await?;
        let (by, from) = match reader {
            Reader::Is(by, from) => (by, from),
            Reader::Unknown => return Ok(MediumAnswer::Failed),
            Reader::Stranger(why) => {
                let place = from.map_or_else(|| "an unknown address".to_owned(), |from| from.to_string());
                tracing::warn!(node_uuid = %node.uuid, place, why, "refused a boot medium");
                let text = format!("a read of the boot medium from {place} was refused: {why}");
                self.contents.remark(node, "boot medium", &text).await;
                return Ok(MediumAnswer::NotThere);
            }
        };
        let Some(boot) = boot else {
            tracing::warn!(node_uuid = %node.uuid, %from, "refused a boot medium: none of the node's is inserted");
            return Ok(MediumAnswer::NotThere);
        };
        let form = MediumFormat::of(file_name);
        let name = boot_medium::file_name(node.uuid, &boot.nonce, form);
        if !bool::from(name.as_bytes().ct_eq(file_name.as_bytes())) {
            tracing::warn!(node_uuid = %node.uuid, %from, "refused a boot medium: it is not that of the node's present boot");
            return Ok(MediumAnswer::NotThere);
        }
        match self.content(node, boot, by, from).await {
            Ok(Some((overlay, content))) => {
                Ok(MediumAnswer::Medium { overlay, content, program_alone: form == MediumFormat::Program })
            }
            Ok(None) => {
                tracing::warn!(node_uuid = %node.uuid, %from, "withheld a boot medium: the node is not powered on yet, its agent has been heard, or another address has it");
                Ok(MediumAnswer::NotThere)
            }
            Err(error) => {
                tracing::error!(node_uuid = %node.uuid, error, "no boot medium");
                Ok(MediumAnswer::Failed)
            }
        }
    }

    /// What the medium carries, decided and stored at its first read; `None`: this reader must not have it.
    ///
    /// # Errors
    /// It cannot be made or stored, in words for an operator.
    async fn content(
        &self,
        node: &Node,
        boot: Boot,
        by: FetchSource,
        from: IpAddr,
    ) -> Result<Option<(Overlay, Content)>, String> {
        if let (FetchSource::Bmc, Some(known)) = (by, &boot.medium) {
            return laid_out(known).map(Some);
        }
        let decided = match boot.medium {
            Some(known) => *known,
            None => self.contents.decide(node, &boot.nonce).await?,
        };
        let medium = Some(Box::new(decided.clone()));
        let fetch = ScriptFetch { by, from, at: self.contents.clock.now(), medium };
        let chain = |error: StoreError| error.chain();
        let store = &self.contents.store;
        if store.fetch_script(node.uuid, fetch).await.map_err(chain)? == ScriptGrant::Withheld {
            return Ok(None);
        }
        // Another read may have been faster, with another content.
        let stored = store.contact(node.uuid).await.map_err(chain)?.boot.and_then(|boot| boot.medium);
        laid_out(&stored.map_or(decided, |stored| *stored)).map(Some)
    }

    /// The reader of a medium of the node.
    async fn reader(
        &self,
        node: &Node,
        boot: Option<&Boot>,
        from: Option<IpAddr>,
    ) -> Result<Reader, StoreError> {
        let Some(from) = from else { return Ok(Reader::Stranger("its address is not known".to_owned())) };
        if boot_medium::way(node) == Some(MediumKind::HttpBoot) {
            return self.is_firmware(node, from).await;
        }
        // Its name need not be looked up again for each of some hundred reads.
        if boot.is_some_and(|boot| boot.medium_read_by == Some(from)) {
            return Ok(Reader::Is(FetchSource::Bmc, from));
        }
        Ok(match addresses_of_bmc(node).await {
            Ok(bmc) if bmc.contains(&from) => Reader::Is(FetchSource::Bmc, from),
            Ok(bmc) => {
                let bmc: Vec<String> = bmc.iter().map(ToString::to_string).collect();
                let own =
                    if bmc.is_empty() { "an address that is not known".to_owned() } else { bmc.join(", ") };
                Reader::Stranger(format!("the node's BMC is at {own}"))
            }
            Err(why) => {
                tracing::error!(node_uuid = %node.uuid, %from, why, "cannot know whether it is the BMC that reads a boot medium");
                Reader::Unknown
            }
        })
    }

    /// Whether who reads the medium can be the node's firmware: as with a boot script, the lease of one of its NICs. The first address
    /// of these has the medium.
    async fn is_firmware(&self, node: &Node, from: IpAddr) -> Result<Reader, StoreError> {
        let leases: Vec<Ipv4Addr> =
            self.macs_of(node).await?.into_iter().filter_map(|mac| (self.lease_of)(mac)).collect();
        if leases.is_empty() || leases.iter().any(|lease| IpAddr::V4(*lease) == from) {
            return Ok(Reader::Is(FetchSource::Firmware, from));
        }
        let leases: Vec<String> = leases.iter().map(ToString::to_string).collect();
        Ok(Reader::Stranger(format!("the leases of the node are {}", leases.join(", "))))
    }

    /// The MAC addresses of the node's ports.
    async fn macs_of(&self, node: &Node) -> Result<Vec<Mac>, StoreError> {
        let ports = self.contents.store.resources(ResourceKind::Port, Some(node.uuid)).await?;
        Ok(ports.iter().filter_map(|port| port.key.as_deref()?.parse().ok()).collect())
    }
}

/// The client that reads a boot medium.
enum Reader {
    /// One that may, at this address.
    Is(FetchSource, IpAddr),
    /// One that must not, and why.
    Stranger(String),
    /// It cannot be known now.
    Unknown,
}

/// Where the node's BMC is.
///
/// # Errors
/// Why that is not known now.
async fn addresses_of_bmc(node: &Node) -> Result<Vec<IpAddr>, String> {
    let Some(host) = bmc::host(&node.driver, &node.driver_info) else { return Ok(Vec::new()) };
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    match timeout(RESOLVE, tokio::net::lookup_host((host.as_str(), 0))).await {
        Ok(Ok(found)) => Ok(found.map(|found| found.ip()).collect()),
        Ok(Err(error)) => Err(format!("{host}: {error}")),
        Err(_) => Err(format!("{host} has no address within {} s", RESOLVE.as_secs())),
    }
}

/// The user's kernel and ramdisk. Nothing in this script is ours, so every client may read it. What was changed since so that it
/// cannot be booted must not make the node boot its disk.
fn instance(node: &Node, mac: Mac) -> BootAnswer {
    match RamdiskDeploy::of(node) {
        Ok(RamdiskDeploy { kernel, ramdisk, kernel_args }) => {
            BootAnswer::Instance { kernel, ramdisk, kernel_args }
        }
        Err(error) => {
            tracing::error!(node_uuid = %node.uuid, %mac, %error, "the instance has no kernel and ramdisk to boot");
            BootAnswer::Wait
        }
    }
}

#[cfg(test)]
mod tests;
