//! Boots of machines that no node is known for.

use crate::config::AfterDiscovery;
use boot::{BootAnswer, CmdlineError, Mac, RamdiskParams, inspection_callback, ramdisk_cmdline};
use http_server::address_key;
use model::boot::BootNonce;
use model::discovery::{UnknownBoot, machine_to_boot};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use store::{Store, StoreError, UnknownBootGrant};
use tokio::time::Instant;

/// Which of them are booted, and how.
pub struct DiscoveryBoots {
    /// Where they are and how many there may be.
    pub settings: api::DiscoverySettings,
    /// What they do after their wait.
    pub after: AfterDiscovery,
    /// How many scripts an address may ask for.
    pub asked: Arc<api::Rates>,
}

impl DiscoveryBoots {
    /// The script of the one boot of a machine, if it gets one; else it boots as it would without us. `lease`: the address that this
    /// controller gave its NIC. `ramdisk`: the parameters of every ramdisk.
    pub async fn answer(
        &self,
        store: &dyn Store,
        boot: UnknownBoot,
        lease: Option<Ipv4Addr>,
        ramdisk: RamdiskParams,
    ) -> BootAnswer {
        let UnknownBoot { mac, from, .. } = boot;
        if !self.may_ask(mac, from, lease) {
            return BootAnswer::Unknown;
        }
        let nonce = match self.granted(store, boot).await {
            Ok(Ok(nonce)) => nonce,
            Ok(Err(why)) => {
                tracing::info!(%mac, %from, "discovery: this machine is not booted: {why}");
                return BootAnswer::Unknown;
            }
            Err(error) => {
                tracing::error!(%mac, %from, error = %error.chain(), "discovery: cannot read or store a machine");
                return BootAnswer::Unknown;
            }
        };
        match self.kernel_args(&nonce, ramdisk) {
            Ok(kernel_args) => {
                tracing::info!(%mac, %from, "discovery: a machine that no node is known for boots");
                BootAnswer::Ramdisk { kernel_args, rescue: false, firmware: Vec::new() }
            }
            Err(error) => {
                tracing::error!(%mac, %error, "discovery: no kernel command line");
                BootAnswer::Unknown
            }
        }
    }

    fn may_ask(&self, mac: Mac, from: IpAddr, lease: Option<Ipv4Addr>) -> bool {
        if !self.settings.covers(Some(from)) {
            return false;
        }
        if let Some(lease) = lease.filter(|lease| IpAddr::V4(*lease) != from) {
            tracing::warn!(%mac, %from, %lease, "discovery: withheld a boot script: the lease of this MAC is another address");
            return false;
        }
        let accepted = self.asked.accepts(address_key(from), Instant::now());
        if !accepted {
            tracing::warn!(%mac, %from, "discovery: withheld a boot script: this address asks too often");
        }
        accepted
    }

    /// Every client can ask. A machine that gets nothing costs a read and no write.
    async fn granted(&self, store: &dyn Store, boot: UnknownBoot) -> Result<UnknownBootGrant, StoreError> {
        let known = store.discovered_machines().await?;
        match machine_to_boot(&known, &boot, &self.settings.limits) {
            Ok(_) => store.boot_unknown(boot, self.settings.limits).await,
            Err(why) => Ok(Err(why)),
        }
    }

    /// What makes the agent report, wait and end.
    fn kernel_args(&self, nonce: &BootNonce, ramdisk: RamdiskParams) -> Result<String, CmdlineError> {
        let ramdisk = RamdiskParams { nonce: Some(nonce.expose().to_owned()), ..ramdisk };
        let (wait, after) = (self.settings.limits.wait.as_secs(), self.after.parameter());
        Ok(format!(
            "{}{} anneal.discovery={wait} anneal.discovery-after={after}",
            ramdisk_cmdline(&ramdisk)?,
            inspection_callback(&ramdisk)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::discovery::{DiscoveryLimits, DiscoveryState};
    use model::interface::AddPorts;
    use model::{Node, Resource, Timestamp};
    use std::time::Duration;
    use store::memory::MemoryStore;
    use store::prelude::*;
    use store::{NodeChange, ResourceWrite};
    use uuid::Uuid;

    const INSIDE: [u8; 4] = [10, 9, 0, 7];

    fn boots(per_minute: usize) -> DiscoveryBoots {
        let limits = DiscoveryLimits { wait: Duration::from_secs(3600), per_minute, waiting: 10 };
        let networks = vec!["10.9.0.0/24".parse().unwrap()];
        let settings = api::DiscoverySettings {
            networks,
            limits,
            driver: "redfish".to_owned(),
            add_ports: AddPorts::Pxe,
        };
        let asked = api::Rates::new(api::RequestRate { per_s: 1, burst: 4 });
        DiscoveryBoots { settings, after: AfterDiscovery::BootDisk, asked }
    }

    fn boot(last: u8, from: [u8; 4], seconds: u64) -> UnknownBoot {
        let at = Timestamp(0).after(Duration::from_secs(seconds));
        UnknownBoot { mac: Mac::new([2, 0, 0, 0, 0, last]), from: from.into(), at }
    }

    async fn asks(boots: &DiscoveryBoots, store: &MemoryStore, boot: UnknownBoot) -> BootAnswer {
        let ramdisk = RamdiskParams {
            api_urls: vec!["https://10.9.0.1:6385".to_owned()],
            pins_sha256: vec!["ab".repeat(32)],
            ..RamdiskParams::default()
        };
        boots.answer(store, boot, None, ramdisk).await
    }

    #[tokio::test]
    async fn an_unknown_machine_gets_the_script_of_a_boot_that_waits() {
        let (boots, store) = (boots(9), MemoryStore::new());
        let BootAnswer::Ramdisk { kernel_args, rescue: false, .. } =
            asks(&boots, &store, boot(1, INSIDE, 0)).await
        else {
            panic!("it is booted")
        };
        let [machine] = &store.discovered_machines().await.unwrap()[..] else { panic!("one machine") };
        let nonce = machine.nonce.expose();
        let begin = format!(
            "ipa-api-url=https://10.9.0.1:6385 anneal.pin=sha256:{} anneal.boot-nonce={nonce} ",
            "ab".repeat(32)
        );
        assert!(kernel_args.starts_with(&begin), "{kernel_args}");
        let end = " ipa-inspection-callback-url=https://10.9.0.1:6385/v1/continue_inspection anneal.discovery=3600 \
                   anneal.discovery-after=boot-disk";
        assert!(kernel_args.ends_with(end), "{kernel_args}");
        // Its loader may ask again; a power-on later on that day is another boot.
        assert!(matches!(asks(&boots, &store, boot(1, INSIDE, 9)).await, BootAnswer::Ramdisk { .. }));
        assert_eq!(asks(&boots, &store, boot(1, INSIDE, 7200)).await, BootAnswer::Unknown);
    }

    #[tokio::test]
    async fn only_the_networks_and_only_the_lease_are_answered() {
        let (boots, store) = (boots(9), MemoryStore::new());
        for outside in [[10, 9, 1, 7], [0, 0, 0, 0], [192, 0, 2, 1]] {
            assert_eq!(asks(&boots, &store, boot(1, outside, 0)).await, BootAnswer::Unknown, "{outside:?}");
        }
        let ramdisk =
            || RamdiskParams { api_urls: vec!["http://10.9.0.1".to_owned()], ..RamdiskParams::default() };
        let stolen = boots.answer(&store, boot(1, INSIDE, 0), Some([10, 9, 0, 8].into()), ramdisk()).await;
        assert_eq!(stolen, BootAnswer::Unknown);
        assert_eq!(store.discovered_machines().await.unwrap(), []);
        let leased = boots.answer(&store, boot(1, INSIDE, 0), Some(INSIDE.into()), ramdisk()).await;
        assert!(matches!(leased, BootAnswer::Ramdisk { .. }));
    }

    #[tokio::test]
    async fn a_known_or_rejected_mac_address_and_too_many_get_nothing() {
        let (boots, store) = (boots(2), MemoryStore::new());
        let node = Node::enrolled(Uuid::new_v4(), "redfish", Timestamp(0));
        let node = store.create_node(node, Vec::new()).await.unwrap().uuid;
        let port = Resource::port(Uuid::new_v4(), node, boot(1, INSIDE, 0).mac, Timestamp(0));
        store.write_resource(ResourceWrite::Create(port), None, vec![]).await.unwrap();
        assert_eq!(asks(&boots, &store, boot(1, INSIDE, 0)).await, BootAnswer::Unknown, "a node's");
        for last in [2, 3] {
            let from = [10, 9, 0, last];
            assert!(matches!(asks(&boots, &store, boot(last, from, 0)).await, BootAnswer::Ramdisk { .. }));
        }
        assert_eq!(asks(&boots, &store, boot(4, [10, 9, 0, 4], 59)).await, BootAnswer::Unknown, "too many");
        let mut machine = store.discovered_machines().await.unwrap().remove(0);
        machine.state = DiscoveryState::Rejected;
        let (last, from) = (machine.mac.octets()[5], [10, 9, 0, 77]);
        store.write_discovered(machine, NodeChange::None, vec![]).await.unwrap();
        assert_eq!(asks(&boots, &store, boot(last, from, 1_000_000)).await, BootAnswer::Unknown, "rejected");
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_asks_too_often_is_not_looked_up() {
        let (boots, store) = (boots(100), MemoryStore::new());
        let mut given = 0;
        for last in 1..=6 {
            given += usize::from(asks(&boots, &store, boot(last, INSIDE, 0)).await != BootAnswer::Unknown);
        }
        assert_eq!(given, 4, "as many as an address may ask at once");
    }
}
