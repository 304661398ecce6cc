//! What the NIC with a MAC address boots: the ramdisk while the node's run needs it, the disk otherwise.

use async_trait::async_trait;
use boot::{BootAnswer, BootDirectory, HelloAnswer, Mac, RamdiskParams, ramdisk_cmdline};
use http_server::address_key;
use model::boot::{BootNonce, RamdiskAgent};
use model::hello::HelloNonce;
use model::ramdisk_deploy::{RamdiskDeploy, boots_instance};
use model::{AgentApi, Node, ResourceKind, RunKind};
use std::iter;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use store::{Clock, Members, ScriptFetch, ScriptGrant, Store};
use tokio::time::Instant;

/// Which address a NIC has been given, if any.
pub type LeaseOf = Arc<dyn Fn(Mac) -> Option<Ipv4Addr> + Send + Sync>;

/// How many other controllers a boot script names: Linux takes 2048 bytes of arguments on x86, and each is a URL and a
/// fingerprint.
const OTHERS: usize = 4;

/// Looks nodes up in the store.
pub struct Directory {
    /// Where nodes and ports are kept.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Parameters of every ramdisk.
    pub ramdisk: RamdiskParams,
    /// Where agents reach this controller.
    pub own: AgentApi,
    /// The others, to which they turn when it is gone.
    pub members: Members,
    /// The lease of a NIC, where this controller gives nodes their addresses.
    pub lease_of: LeaseOf,
    /// How many hellos an address may send.
    pub hellos: Arc<api::Rates>,
}

#[async_trait]
impl BootDirectory for Directory {
    async fn boot_for(&self, mac: Mac, from: IpAddr) -> BootAnswer {
        let port = self.store.resource_by_key(ResourceKind::Port, &mac.to_string()).await;
        let Some(node) = port.ok().and_then(|port| port.node) else { return BootAnswer::Unknown };
        match self.store.node(node).await {
            Ok(node) if node.boots_ramdisk() => self.ramdisk(&node, mac, from).await,
            Ok(node) if boots_instance(&node) => instance(&node, mac),
            Ok(_) => BootAnswer::LocalDisk,
            Err(error) => {
                tracing::error!(%mac, error = %error.chain(), "cannot read the node; it boots from its disk");
                BootAnswer::LocalDisk
            }
        }
    }

    async fn hello(&self, nonce: &str, from: Option<IpAddr>) -> HelloAnswer {
        if let Some(address) = from.map(address_key)
            && !self.hellos.accepts(address, Instant::now())
        {
            return HelloAnswer::TooMany;
        }
        match store::hello::hear(&*self.store, &HelloNonce::shown(nonce), self.clock.now()).await {
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
    /// The script with the nonce of this boot, for the one address that may have it.
    async fn ramdisk(&self, node: &Node, mac: Mac, from: IpAddr) -> BootAnswer {
        let node_uuid = node.uuid;
        // A client that asks from elsewhere is not this NIC. It gets no script, so it is no claim: it cannot make the node boot
        // again either.
        if let Some(lease) = (self.lease_of)(mac)
            && IpAddr::V4(lease) != from
        {
            tracing::warn!(%node_uuid, %mac, %from, %lease, "withheld a boot script: the lease of this MAC is another address");
            return BootAnswer::Wait;
        }
        let fetch = ScriptFetch { mac, from, at: self.clock.now() };
        match self.store.fetch_script(node_uuid, fetch).await {
            Ok(ScriptGrant::Given(nonce)) => match self.kernel_args(node, &nonce) {
                Ok(kernel_args) => BootAnswer::Ramdisk { kernel_args, rescue: gets_login(node) },
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

    /// The kernel arguments; a node that is inspected also gets the URL to send its inventory to. Anneal's agent shows the
    /// nonce in a header; ironic-python-agent repeats what its URLs begin with.
    fn kernel_args(&self, node: &Node, nonce: &BootNonce) -> Result<String, boot::CmdlineError> {
        let mut ramdisk = self.ramdisk.clone();
        let mut suffix = String::new();
        match RamdiskAgent::of(&node.properties) {
            RamdiskAgent::Anneal => ramdisk.nonce = Some(nonce.expose().to_owned()),
            RamdiskAgent::IronicPythonAgent => suffix = format!("{}{}", api::NONCE_PATH, nonce.expose()),
        }
        let others = self.members.other_agent_apis(OTHERS);
        let all = || iter::once(&self.own).chain(&others);
        ramdisk.api_urls = all().map(|api| format!("{}{suffix}", api.url)).collect();
        ramdisk.pins_sha256 = all().filter_map(|api| api.pin_sha256.clone()).collect();
        let arguments = ramdisk_cmdline(&ramdisk)?;
        let api_url = &ramdisk.api_urls[0];
        let inspects = node.run.as_ref().is_some_and(|run| run.is_active() && run.kind == RunKind::Inspect);
        Ok(match inspects {
            true => format!("{arguments} ipa-inspection-callback-url={api_url}/v1/continue_inspection"),
            false => arguments,
        })
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

/// Whether this boot of the node gets the archive with a login: our agent's, while the node is being rescued.
/// ironic-python-agent's ramdisk has its own.
fn gets_login(node: &Node) -> bool {
    RamdiskAgent::of(&node.properties) == RamdiskAgent::Anneal
        && node.run.as_ref().is_some_and(|run| run.is_active() && run.kind == RunKind::Rescue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::boot::{AGENT_KIND, Boot};
    use model::{ConductorReport, Cursor, Resource, Run, Timestamp};
    use serde_json::json;
    use store::memory::MemoryStore;
    use store::prelude::*;
    use store::{ResourceWrite, SystemClock};
    use uuid::Uuid;

    const NODE: [u8; 4] = [10, 9, 0, 10];
    const STRANGER: [u8; 4] = [10, 9, 0, 66];

    fn agent_api(url: &str, pin: &str) -> AgentApi {
        AgentApi { url: url.to_owned(), pin_sha256: Some(pin.repeat(32)), gives_addresses: false }
    }

    /// The directory over a node that waits for its agent, with its port and the nonce of its boot.
    async fn directory(kind: RunKind, agent: &str, lease: Option<[u8; 4]>) -> (Directory, Uuid, Mac, String) {
        let store = Arc::new(MemoryStore::new());
        let mut node = Node::enrolled(Uuid::new_v4(), "fake-hardware", Timestamp(0));
        node.properties.insert(AGENT_KIND.to_owned(), json!(agent));
        node.run = Some(Run { cursor: Cursor::AwaitAgent, booted: true, ..Run::new(kind, Timestamp(0)) });
        let node = store.create_node(node, Vec::new()).await.unwrap().uuid;
        let mac = Mac::new([2, 0, 0, 0, 0, 1]);
        let port = Resource::port(Uuid::new_v4(), node, mac, Timestamp(0));
        store.write_resource(ResourceWrite::Create(port), None).await.unwrap();
        let boot = Boot::fresh();
        let nonce = boot.nonce.expose().to_owned();
        store.forget_agent(node, Some(boot), None).await.unwrap();
        let directory = Directory {
            store,
            clock: Arc::new(SystemClock::default()),
            ramdisk: RamdiskParams::default(),
            own: agent_api("https://10.9.0.1:6385", "01"),
            members: Members::alone("c1"),
            lease_of: Arc::new(move |_| lease.map(Ipv4Addr::from)),
            hellos: api::Rates::new(api::RequestRate { per_s: 1, burst: 3 }),
        };
        (directory, node, mac, nonce)
    }

    fn arguments(answer: BootAnswer) -> String {
        match answer {
            BootAnswer::Ramdisk { kernel_args, .. } => kernel_args,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn each_agent_gets_the_nonce_where_it_repeats_it() {
        let (ours, _, mac, nonce) = directory(RunKind::Inspect, "anneal", None).await;
        let line = arguments(ours.boot_for(mac, NODE.into()).await);
        assert!(line.starts_with("ipa-api-url=https://10.9.0.1:6385 "), "{line}");
        assert!(line.contains(&format!(" anneal.boot-nonce={nonce} ")), "{line}");
        assert!(
            line.ends_with("ipa-inspection-callback-url=https://10.9.0.1:6385/v1/continue_inspection"),
            "{line}"
        );

        let (theirs, _, mac, nonce) = directory(RunKind::Inspect, "ironic-python-agent", None).await;
        let line = arguments(theirs.boot_for(mac, NODE.into()).await);
        let url = format!("https://10.9.0.1:6385/boot-nonce/{nonce}");
        assert!(
            line.starts_with(&format!("ipa-api-url={url} ")) && !line.contains("anneal.boot-nonce"),
            "{line}"
        );
        assert!(
            line.ends_with(&format!("ipa-inspection-callback-url={url}/v1/continue_inspection")),
            "{line}"
        );
    }

    #[tokio::test]
    async fn a_boot_script_names_the_other_controllers() {
        let at = Timestamp(0);
        let report = |hostname: &str, pin: &str| ConductorReport {
            hostname: hostname.to_owned(),
            group: None,
            drivers: Vec::new(),
            version: String::new(),
            agent_api: Some(agent_api(&format!("https://{hostname}"), pin)),
            started_at: at,
            reported_at: at,
            alive_until: at,
        };
        for (agent, suffix) in [("anneal", false), ("ironic-python-agent", true)] {
            let (directory, _, mac, nonce) = directory(RunKind::AutomatedClean, agent, None).await;
            directory.members.replace(vec![report("c1", "99"), report("c2", "02")]);
            let line = arguments(directory.boot_for(mac, NODE.into()).await);
            let suffix = if suffix { format!("/boot-nonce/{nonce}") } else { String::new() };
            let urls = format!("ipa-api-url=https://10.9.0.1:6385{suffix},https://c2{suffix} ");
            let pins = format!("anneal.pin=sha256:{},sha256:{} ", "01".repeat(32), "02".repeat(32));
            assert!(line.starts_with(&format!("{urls}{pins}")), "{line}");
        }
    }

    #[tokio::test]
    async fn an_instance_of_the_ramdisk_interface_boots_its_own_kernel_unless_a_run_boots_ours() {
        let (directory, node, mac, nonce) = directory(RunKind::Service, "anneal", None).await;
        let ours = directory.store.node(node).await.unwrap();
        let mut active = ours.clone();
        active.provision_state = model::ProvisionState::Active;
        active.interfaces.insert("deploy_interface".into(), "ramdisk".into());
        let info = json!({"kernel": "http://192.0.2.1/k", "ramdisk": "http://192.0.2.1/r", "kernel_append_params": "quiet"});
        active.instance_info = info.as_object().unwrap().clone();
        let stored = directory.store.update_node(active.clone(), Vec::new(), None).await.unwrap();
        assert!(
            matches!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Ramdisk { .. }),
            "its run boots ours"
        );
        let mut done = Node { version: stored.version, ..active.clone() };
        done.run.as_mut().unwrap().cursor = Cursor::Done;
        let stored = directory.store.update_node(done.clone(), Vec::new(), None).await.unwrap();
        for from in [NODE, STRANGER] {
            let answer = directory.boot_for(mac, from.into()).await;
            let (kernel, ramdisk) = ("http://192.0.2.1/k".to_owned(), "http://192.0.2.1/r".to_owned());
            assert_eq!(answer, BootAnswer::Instance { kernel, ramdisk, kernel_args: "quiet".to_owned() });
            assert!(!boot_script(&answer, mac).contains(&nonce));
        }
        done.version = stored.version;
        done.instance_info.remove("kernel");
        directory.store.update_node(done, Vec::new(), None).await.unwrap();
        assert_eq!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Wait, "never its disk");
    }

    fn boot_script(answer: &BootAnswer, mac: Mac) -> String {
        format!("{answer:?} {mac}")
    }

    #[tokio::test]
    async fn only_a_rescue_boots_with_a_login() {
        for kind in RunKind::ALL {
            let (directory, node, mac, _) = directory(kind, "anneal", None).await;
            let found = directory.store.node(node).await.unwrap();
            assert_eq!(gets_login(&found), kind == RunKind::Rescue, "{kind:?}");
            let answer = directory.boot_for(mac, NODE.into()).await;
            let BootAnswer::Ramdisk { rescue, .. } = answer else { panic!("{kind:?}: {answer:?}") };
            assert_eq!(rescue, kind == RunKind::Rescue, "{kind:?}");
        }
        let (theirs, _, mac, _) = directory(RunKind::Rescue, "ironic-python-agent", None).await;
        let answer = theirs.boot_for(mac, NODE.into()).await;
        assert!(matches!(answer, BootAnswer::Ramdisk { rescue: false, .. }), "{answer:?}");
    }

    #[tokio::test]
    async fn a_second_address_gets_a_script_that_waits() {
        let (directory, node, mac, _) = directory(RunKind::AutomatedClean, "anneal", None).await;
        assert!(matches!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Ramdisk { .. }));
        assert_eq!(directory.boot_for(mac, STRANGER.into()).await, BootAnswer::Wait);
        assert!(directory.store.contact(node).await.unwrap().rival.is_some());
    }

    /// What can be known by asking is the same for every nonce that is not awaited.
    #[tokio::test]
    async fn a_hello_is_heard_once_and_an_address_may_guess_a_few_times() {
        let (directory, node, _, _) = directory(RunKind::Deploy, "anneal", None).await;
        let mut node = directory.store.node(node).await.unwrap();
        let info = serde_json::Map::from_iter([(model::hello::WAIT_FOR_HELLO.to_owned(), json!(60))]);
        let hello = model::hello::Hello::wanted(&info).unwrap();
        let cursor = Cursor::AwaitHello { command_id: "c".into(), since: Timestamp(0) };
        node.run =
            Some(Run { cursor, hello: Some(hello.clone()), ..Run::new(RunKind::Deploy, Timestamp(0)) });
        node.provision_state = model::ProvisionState::DeployWait;
        directory.store.update_node(node, Vec::new(), None).await.unwrap();
        let say = async |nonce: &str, from: [u8; 4]| directory.hello(nonce, Some(from.into())).await;
        let wrong = HelloNonce::fresh();
        for guess in [wrong.expose(), "", &hello.nonce.expose()[1..]] {
            assert_eq!(say(guess, STRANGER).await, HelloAnswer::NotAwaited);
        }
        assert_eq!(say(wrong.expose(), STRANGER).await, HelloAnswer::TooMany);
        assert_eq!(say(hello.nonce.expose(), NODE).await, HelloAnswer::Heard);
        assert_eq!(say(hello.nonce.expose(), NODE).await, HelloAnswer::NotAwaited, "a second time");
    }

    #[tokio::test]
    async fn another_address_than_the_lease_gets_no_script_and_is_no_claim() {
        let (directory, node, mac, _) = directory(RunKind::AutomatedClean, "anneal", Some(NODE)).await;
        let before = directory.store.contact(node).await.unwrap();
        assert_eq!(directory.boot_for(mac, STRANGER.into()).await, BootAnswer::Wait);
        assert_eq!(directory.store.contact(node).await.unwrap(), before);
        assert!(matches!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Ramdisk { .. }));
        assert_eq!(directory.boot_for(mac, STRANGER.into()).await, BootAnswer::Wait);
        assert_eq!(directory.store.contact(node).await.unwrap().rival, None);
    }
}
