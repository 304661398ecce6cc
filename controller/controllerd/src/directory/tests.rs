use super::*;
use crate::firmware_choices::FirmwareChoices;
use crate::predictions::Predictions;
use boot::medium::{Content, MediumConfig, RamdiskFiles, SHIM, SYSTEMD_BOOT};
use boot::{Overlay, RamdiskParams};
use model::boot::{AGENT_KIND, Boot, BootNonce};
use model::{AgentApi, ConductorReport, Cursor, Resource, Run, RunKind, Timestamp};
use serde_json::json;
use std::path::PathBuf;
use store::memory::MemoryStore;
use store::prelude::*;
use store::{Members, Remarks};
use store::{ResourceWrite, SystemClock};
use uuid::Uuid;

const NODE: [u8; 4] = [10, 9, 0, 10];
const STRANGER: [u8; 4] = [10, 9, 0, 66];

fn agent_api(url: &str, pin: &str) -> AgentApi {
    AgentApi { url: url.to_owned(), url_ipv6: None, pin_sha256: Some(pin.repeat(32)), gives_addresses: false }
}

fn contents(store: Arc<dyn Store>) -> BootContents {
    let none = PathBuf::new;
    BootContents {
        store,
        clock: Arc::new(SystemClock::default()),
        ramdisk: RamdiskParams::default(),
        own: agent_api("https://10.9.0.1:6385", "01"),
        members: Members::alone("c1"),
        remarks: Remarks::default(),
        firmware: FirmwareChoices::of(&crate::config::Boot::default()),
        medium: MediumConfig { loader_dir: none(), arguments: String::new(), signed_uki: None },
        files: RamdiskFiles { kernel: none(), initramfs: none(), rescue: none(), firmware: None },
        predictions: Predictions::default(),
    }
}

fn changed(directory: &mut Directory) -> &mut BootContents {
    Arc::get_mut(&mut directory.contents).unwrap()
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
    store.write_resource(ResourceWrite::Create(port), None, vec![]).await.unwrap();
    let boot = Boot::fresh();
    let nonce = boot.nonce.expose().to_owned();
    store.forget_agent(node, Some(boot), None).await.unwrap();
    let directory = Directory {
        contents: Arc::new(contents(store)),
        lease_of: Arc::new(move |_| lease.map(Ipv4Addr::from)),
        hellos: api::Rates::new(api::RequestRate { per_s: 1, burst: 3 }),
        discovery: None,
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
    assert!(line.ends_with(&format!("ipa-inspection-callback-url={url}/v1/continue_inspection")), "{line}");
}

fn report(hostname: &str, pin: &str) -> ConductorReport {
    let at = Timestamp(0);
    ConductorReport {
        hostname: hostname.to_owned(),
        group: None,
        drivers: Vec::new(),
        version: String::new(),
        agent_api: Some(agent_api(&format!("https://{hostname}"), pin)),
        bmc_request_timeout_s: None,
        started_at: at,
        reported_at: at,
        alive_until: at,
    }
}

#[tokio::test]
async fn a_boot_script_names_the_other_controllers() {
    for (agent, suffix) in [("anneal", false), ("ironic-python-agent", true)] {
        let (directory, _, mac, nonce) = directory(RunKind::AutomatedClean, agent, None).await;
        directory.contents.members.replace(vec![report("c1", "99"), report("c2", "02")]);
        let line = arguments(directory.boot_for(mac, NODE.into()).await);
        let suffix = if suffix { format!("/boot-nonce/{nonce}") } else { String::new() };
        let urls = format!("ipa-api-url=https://10.9.0.1:6385{suffix},https://c2{suffix} ");
        let pins = format!("anneal.pin=sha256:{},sha256:{} ", "01".repeat(32), "02".repeat(32));
        assert!(line.starts_with(&format!("{urls}{pins}")), "{line}");
    }
}

#[tokio::test]
async fn a_boot_script_names_a_controller_by_its_addresses_of_both_families_and_its_pin_once() {
    let (mut directory, _, mac, _) = directory(RunKind::AutomatedClean, "anneal", None).await;
    changed(&mut directory).own.url_ipv6 = Some("https://[2001:db8::1]:6385".to_owned());
    let line = arguments(directory.boot_for(mac, NODE.into()).await);
    let expected = format!(
        "ipa-api-url=https://10.9.0.1:6385,https://[2001:db8::1]:6385 anneal.pin=sha256:{} ",
        "01".repeat(32)
    );
    assert!(line.starts_with(&expected), "{line}");
}

/// Linux would cut a longer line, and ironic-python-agent takes one time server.
#[tokio::test]
async fn a_boot_script_names_five_urls_and_as_many_time_servers_as_the_agent_takes() {
    for (agent, servers) in [("anneal", "a.example,b.example"), ("ironic-python-agent", "a.example")] {
        let (mut directory, _, mac, _) = directory(RunKind::AutomatedClean, agent, None).await;
        changed(&mut directory).own.url_ipv6 = Some("https://[2001:db8::1]:6385".to_owned());
        changed(&mut directory).ramdisk.ntp = ["a.example", "b.example"].map(str::to_owned).to_vec();
        let others = ["c2", "c3", "c4", "c5", "c6"].map(|name| report(name, "02"));
        directory.contents.members.replace([vec![report("c1", "99")], others.to_vec()].concat());
        let line = arguments(directory.boot_for(mac, NODE.into()).await);
        let urls = line.split(' ').find_map(|word| word.strip_prefix("ipa-api-url=")).unwrap();
        assert_eq!(urls.split(',').count(), 5, "{line}");
        assert!(line.contains(&format!(" ipa-ntp-server={servers} ")), "{line}");
    }
}

#[tokio::test]
async fn an_instance_of_the_ramdisk_interface_boots_its_own_kernel_unless_a_run_boots_ours() {
    let (directory, node, mac, nonce) = directory(RunKind::Service, "anneal", None).await;
    let ours = directory.contents.store.node(node).await.unwrap();
    let mut active = ours.clone();
    active.provision_state = model::ProvisionState::Active;
    active.interfaces.insert("deploy_interface".into(), "ramdisk".into());
    let info = json!({"kernel": "http://192.0.2.1/k", "ramdisk": "http://192.0.2.1/r", "kernel_append_params": "quiet"});
    active.instance_info = info.as_object().unwrap().clone();
    let stored = directory.contents.store.update_node(active.clone(), Vec::new(), None).await.unwrap();
    assert!(
        matches!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Ramdisk { .. }),
        "its run boots ours"
    );
    let mut done = Node { version: stored.version, ..active.clone() };
    done.run.as_mut().unwrap().cursor = Cursor::Done;
    let stored = directory.contents.store.update_node(done.clone(), Vec::new(), None).await.unwrap();
    for from in [NODE, STRANGER] {
        let answer = directory.boot_for(mac, from.into()).await;
        let (kernel, ramdisk) = ("http://192.0.2.1/k".to_owned(), "http://192.0.2.1/r".to_owned());
        assert_eq!(answer, BootAnswer::Instance { kernel, ramdisk, kernel_args: "quiet".to_owned() });
        assert!(!boot_script(&answer, mac).contains(&nonce));
    }
    done.version = stored.version;
    done.instance_info.remove("kernel");
    directory.contents.store.update_node(done, Vec::new(), None).await.unwrap();
    assert_eq!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Wait, "never its disk");
}

/// A node that boots by virtual media, with its medium inserted, and its file name.
async fn with_medium() -> (Directory, Uuid, Mac, String) {
    with_medium_by(boot_medium::VIRTUAL_MEDIA, None).await
}

/// The same with this boot interface, and a lease.
async fn with_medium_by(interface: &str, lease: Option<[u8; 4]>) -> (Directory, Uuid, Mac, String) {
    with_medium_of("anneal", interface, lease).await
}

/// The same with this agent.
async fn with_medium_of(
    agent: &str,
    interface: &str,
    lease: Option<[u8; 4]>,
) -> (Directory, Uuid, Mac, String) {
    let (directory, node, mac, nonce) = directory(RunKind::Inspect, agent, lease).await;
    let mut stored = directory.contents.store.node(node).await.unwrap();
    stored.driver = "redfish".to_owned();
    stored.driver_info.insert("redfish_address".to_owned(), json!("https://10.7.0.9"));
    stored.interfaces.insert("boot_interface".into(), interface.into());
    stored.medium_inserted = true;
    directory.contents.store.update_node(stored, Vec::new(), None).await.unwrap();
    let name = boot_medium::file_name(node, &BootNonce::shown(&nonce), MediumFormat::Image);
    (directory, node, mac, name)
}

const BMC: [u8; 4] = [10, 7, 0, 9];

/// How often the node's history says this.
async fn count(directory: &Directory, node: Uuid, text: &str) -> usize {
    let history = directory.contents.store.history(node).await.unwrap();
    history.iter().filter(|event| event.text == text).count()
}

async fn reads(directory: &Directory, name: &str, from: [u8; 4]) -> MediumAnswer {
    directory.medium(name, Some(from.into())).await
}

#[tokio::test]
async fn only_the_bmc_reads_the_medium_and_the_history_names_others() {
    let (directory, node, mac, name) = with_medium().await;
    for _ in 0..2 {
        assert_eq!(reads(&directory, &name, STRANGER).await, MediumAnswer::NotThere);
    }
    assert_eq!(directory.medium(&name, None).await, MediumAnswer::NotThere);
    let says = "a read of the boot medium from 10.9.0.66 was refused: the node's BMC is at 10.7.0.9";
    assert_eq!(count(&directory, node, says).await, 1);
    assert_eq!(directory.contents.store.contact(node).await.unwrap().boot.unwrap().medium_read_by, None);

    for _ in 0..2 {
        let answer = reads(&directory, &name, BMC).await;
        let MediumAnswer::Medium { content, .. } = &answer else { panic!("{answer:?}") };
        assert_eq!(*content, Content::default());
    }
    let contact = directory.contents.store.contact(node).await.unwrap();
    let boot = contact.boot.unwrap();
    assert_eq!(boot.medium_read_by, Some(BMC.into()));
    assert!(boot.fetched_from.is_none() && boot.macs.is_empty() && contact.rival.is_none());
    assert_eq!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Wait, "no nonce by the network");
}

#[tokio::test]
async fn a_node_with_secure_boot_gets_a_medium_with_a_shim() {
    for (capabilities, expected) in [("boot_mode:uefi", false), ("boot_mode:uefi,secure_boot:true", true)] {
        let (directory, node, _, name) = with_medium().await;
        let mut stored = directory.contents.store.node(node).await.unwrap();
        stored.properties.insert("capabilities".to_owned(), json!(capabilities));
        directory.contents.store.update_node(stored, Vec::new(), None).await.unwrap();
        let answer = reads(&directory, &name, BMC).await;
        let MediumAnswer::Medium { content, .. } = &answer else { panic!("{answer:?}") };
        assert_eq!(content.through_shim, expected, "{capabilities}");
    }
}

#[tokio::test]
async fn the_medium_of_ironic_python_agent_has_its_parameters_as_a_text() {
    for (agent, is_text) in [("anneal", false), ("ironic-python-agent", true)] {
        let (directory, node, _, name) = with_medium_of(agent, boot_medium::VIRTUAL_MEDIA, None).await;
        let MediumAnswer::Medium { overlay, .. } = reads(&directory, &name, BMC).await else {
            panic!("no medium for {agent}")
        };
        let nonce = directory.contents.store.contact(node).await.unwrap().boot.unwrap().nonce;
        let url = format!("https://10.9.0.1:6385/boot-nonce/{}", nonce.expose());
        let expected = format!(
            "ipa-api-url={url} anneal.pin=sha256:{} ipa-inspection-callback-url={url}/v1/continue_inspection",
            "01".repeat(32)
        );
        let text = Overlay::for_ironic_python_agent(&expected).unwrap();
        assert_eq!(overlay == text, is_text, "{agent}");
    }
}

/// By HTTP boot the medium is the secret of the boot, as a script is: for the lease, or the first address that asks.
#[tokio::test]
async fn one_firmware_reads_the_medium_of_http_boot() {
    let (leased, node, mac, name) = with_medium_by(boot_medium::HTTP_BOOT, Some(NODE)).await;
    for from in [STRANGER, BMC] {
        assert_eq!(reads(&leased, &name, from).await, MediumAnswer::NotThere, "{from:?}");
    }
    assert_eq!(leased.medium(&name, None).await, MediumAnswer::NotThere);
    let says = "a read of the boot medium from 10.9.0.66 was refused: the leases of the node are 10.9.0.10";
    assert_eq!(count(&leased, node, says).await, 1);
    let contact = leased.contents.store.contact(node).await.unwrap();
    assert!(contact.rival.is_none() && contact.boot.unwrap().fetched_from.is_none(), "no claim");
    let program = name.replace(".iso", ".efi");
    for (name, alone) in [(&name, false), (&program, true), (&name, false)] {
        let answer = reads(&leased, name, NODE).await;
        assert!(
            matches!(answer, MediumAnswer::Medium { program_alone, .. } if program_alone == alone),
            "{answer:?}"
        );
    }
    assert_eq!(reads(&leased, &program, STRANGER).await, MediumAnswer::NotThere);
    assert_eq!(leased.boot_for(mac, NODE.into()).await, BootAnswer::Wait, "no script besides");

    let (free, node, _, name) = with_medium_by(boot_medium::HTTP_BOOT, None).await;
    assert!(matches!(reads(&free, &name, NODE).await, MediumAnswer::Medium { .. }));
    assert_eq!(reads(&free, &name, STRANGER).await, MediumAnswer::NotThere);
    let contact = free.contents.store.contact(node).await.unwrap();
    assert_eq!(contact.rival.unwrap().address, Some(STRANGER.into()));
    let boot = contact.boot.unwrap();
    assert_eq!((boot.fetched_from, boot.medium_read_by), (Some(NODE.into()), None));
}

/// An ISO of an earlier boot, of another node, and one that is ejected.
#[tokio::test]
async fn a_medium_is_there_for_its_boot_alone() {
    let (directory, node, _, name) = with_medium().await;
    let old = boot_medium::file_name(node, &BootNonce::fresh(), MediumFormat::Image);
    let other = name.replacen(&node.to_string(), &Uuid::new_v4().to_string(), 1);
    for wrong in [old.as_str(), other.as_str(), "", "anneal-", &name[..name.len() - 1]] {
        assert_eq!(reads(&directory, wrong, BMC).await, MediumAnswer::NotThere, "{wrong}");
    }
    directory.contents.store.forget_agent(node, Some(Boot::fresh()), None).await.unwrap();
    assert_eq!(reads(&directory, &name, BMC).await, MediumAnswer::NotThere, "of the boot before");
    let says = "a read of the boot medium from 10.9.0.66 was refused: the node's BMC is at 10.7.0.9";
    assert_eq!(reads(&directory, &name, STRANGER).await, MediumAnswer::NotThere);
    assert_eq!(count(&directory, node, says).await, 1, "who reads that of an earlier boot is named");
    let (directory, node, _, name) = with_medium().await;
    let mut stored = directory.contents.store.node(node).await.unwrap();
    stored.medium_inserted = false;
    directory.contents.store.update_node(stored, Vec::new(), None).await.unwrap();
    assert_eq!(reads(&directory, &name, BMC).await, MediumAnswer::NotThere, "it is ejected");
    assert_eq!(reads(&directory, &name, STRANGER).await, MediumAnswer::NotThere);
    assert_eq!(count(&directory, node, says).await, 1);
    let mut stored = directory.contents.store.node(node).await.unwrap();
    stored.medium_inserted = true;
    stored.interfaces.insert("boot_interface".into(), boot_medium::IPXE.into());
    directory.contents.store.update_node(stored, Vec::new(), None).await.unwrap();
    assert_eq!(reads(&directory, &name, BMC).await, MediumAnswer::NotThere, "the node boots from none");
}

/// A medium is read in parts. Whatever changes meanwhile, also at another controller, these are parts of one medium.
#[tokio::test]
async fn what_a_medium_carries_is_decided_at_its_first_read() {
    let (directory, node, _, name) = with_medium().await;
    let first = reads(&directory, &name, BMC).await;
    assert!(matches!(first, MediumAnswer::Medium { .. }), "{first:?}");
    let mut stored = directory.contents.store.node(node).await.unwrap();
    stored.properties.insert("capabilities".to_owned(), json!("secure_boot:true"));
    let link = json!({"id": "l", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01"});
    let network = json!({"id": "n", "link": "l", "network_id": "x", "type": "ipv6_dhcp"});
    stored.other.insert("network_data".to_owned(), json!({"links": [link], "networks": [network]}));
    directory.contents.store.update_node(stored, Vec::new(), None).await.unwrap();
    directory.contents.members.replace(vec![report("c1", "99"), report("c2", "02")]);
    assert_eq!(reads(&directory, &name, BMC).await, first);

    let mut second = contents(directory.contents.store.clone());
    second.own = agent_api("https://10.9.0.2:6385", "02");
    let second = Directory { contents: Arc::new(second), ..directory };
    assert_eq!(reads(&second, &name, BMC).await, first, "after a restart with another configuration");
    let boot = Boot::fresh();
    let name = boot_medium::file_name(node, &boot.nonce, MediumFormat::Image);
    second.contents.store.forget_agent(node, Some(boot), None).await.unwrap();
    assert_eq!(
        reads(&second, &name, BMC).await,
        MediumAnswer::Failed,
        "the next boot is made of what is now"
    );
}

/// What the TPM has to have measured is the medium that was read, not the one that would be made now or at the controller that judges.
#[tokio::test]
async fn every_controller_predicts_the_boot_through_a_shim_from_the_medium_that_was_read() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [(SHIM, "shim"), (SYSTEMD_BOOT, "loader"), ("vmlinuz", "kernel")] {
        let program = software_tpm::program(&[(".text", text.as_bytes())]);
        std::fs::write(dir.path().join(name), program).unwrap();
    }
    std::fs::write(dir.path().join("initramfs"), "archive").unwrap();
    let with_files = |contents: &mut BootContents| {
        contents.medium.loader_dir = dir.path().to_owned();
        (contents.files.kernel, contents.files.initramfs) =
            (dir.path().join("vmlinuz"), dir.path().join("initramfs"));
    };
    let (mut directory, node, _, name) = with_medium().await;
    with_files(changed(&mut directory));
    let mut other = contents(directory.contents.store.clone());
    with_files(&mut other);
    other.own = agent_api("https://10.9.0.2:6385", "02");
    let stored = directory.contents.store.node(node).await.unwrap();
    let nonce = directory.contents.store.contact(node).await.unwrap().boot.unwrap().nonce;
    let predictions = async || {
        let first = directory.contents.measured_through_shim(&stored, &nonce).await.unwrap();
        (first, other.measured_through_shim(&stored, &nonce).await.unwrap())
    };
    let (here, there) = predictions().await;
    assert_ne!(here, there, "before it is read each would make another one");
    assert!(matches!(reads(&directory, &name, BMC).await, MediumAnswer::Medium { .. }));
    directory.contents.members.replace(vec![report("c1", "99"), report("c2", "02")]);
    assert_eq!(predictions().await, (here.clone(), here));
}

/// One lookup of a name that fails does not break a boot.
#[tokio::test]
async fn a_bmc_whose_name_cannot_be_resolved_is_asked_to_try_again_and_is_known_once_it_has_read() {
    let (directory, node, _, name) = with_medium().await;
    let named = async |address: &str| {
        let mut stored = directory.contents.store.node(node).await.unwrap();
        stored.driver_info.insert("redfish_address".to_owned(), json!(address));
        directory.contents.store.update_node(stored, Vec::new(), None).await.unwrap();
    };
    // A label of 64 letters is looked up nowhere.
    let unknown = format!("https://{}.invalid", "x".repeat(64));
    named(&unknown).await;
    assert_eq!(reads(&directory, &name, BMC).await, MediumAnswer::Failed);
    assert!(directory.contents.store.history(node).await.unwrap().is_empty(), "it is no stranger");
    named("https://10.7.0.9").await;
    assert!(matches!(reads(&directory, &name, BMC).await, MediumAnswer::Medium { .. }));
    named(&unknown).await;
    assert!(matches!(reads(&directory, &name, BMC).await, MediumAnswer::Medium { .. }));
}

fn boot_script(answer: &BootAnswer, mac: Mac) -> String {
    format!("{answer:?} {mac}")
}

#[tokio::test]
async fn only_a_rescue_boots_with_a_login() {
    for kind in RunKind::ALL {
        let (directory, node, mac, _) = directory(kind, "anneal", None).await;
        let found = directory.contents.store.node(node).await.unwrap();
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
    assert!(directory.contents.store.contact(node).await.unwrap().rival.is_some());
}

/// What can be known by asking is the same for every nonce that is not awaited.
#[tokio::test]
async fn a_hello_is_heard_once_and_an_address_may_guess_a_few_times() {
    let (directory, node, _, _) = directory(RunKind::Deploy, "anneal", None).await;
    let mut node = directory.contents.store.node(node).await.unwrap();
    let info = serde_json::Map::from_iter([(model::hello::WAIT_FOR_HELLO.to_owned(), json!(60))]);
    let hello = model::hello::Hello::wanted(&info).unwrap();
    let cursor = Cursor::AwaitHello { command_id: "c".into(), since: Timestamp(0) };
    node.run = Some(Run { cursor, hello: Some(hello.clone()), ..Run::new(RunKind::Deploy, Timestamp(0)) });
    node.provision_state = model::ProvisionState::DeployWait;
    directory.contents.store.update_node(node, Vec::new(), None).await.unwrap();
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
    let before = directory.contents.store.contact(node).await.unwrap();
    assert_eq!(directory.boot_for(mac, STRANGER.into()).await, BootAnswer::Wait);
    assert_eq!(directory.contents.store.contact(node).await.unwrap(), before);
    let says = "the boot script for 02:00:00:00:00:01 was withheld from 10.9.0.66: the lease of this MAC is 10.9.0.10";
    assert_eq!(count(&directory, node, says).await, 1);
    assert!(matches!(directory.boot_for(mac, NODE.into()).await, BootAnswer::Ramdisk { .. }));
    assert_eq!(directory.boot_for(mac, STRANGER.into()).await, BootAnswer::Wait);
    assert_eq!(directory.contents.store.contact(node).await.unwrap().rival, None);
}

/// A directory of add-on firmware whose only archive is for all machines of which nothing is known.
fn firmware(dir: &std::path::Path) -> FirmwareChoices {
    let index = json!({"pieces": [{"module": "qed", "file": "qed.cpio.zst", "bytes": 1, "modaliases": []}]});
    std::fs::write(dir.join("index.json"), index.to_string()).unwrap();
    std::fs::write(dir.join("qed.cpio.zst"), "x").unwrap();
    FirmwareChoices::of(&crate::config::Boot { firmware_dir: dir.into(), ..Default::default() })
}

#[tokio::test]
async fn scripts_and_media_carry_add_on_firmware_and_the_history_says_why_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let (mut by_script, _, mac, _) = directory(RunKind::AutomatedClean, "anneal", None).await;
    changed(&mut by_script).firmware = firmware(dir.path());
    let answer = by_script.boot_for(mac, NODE.into()).await;
    assert!(
        matches!(&answer, BootAnswer::Ramdisk { firmware, .. } if *firmware == ["qed.cpio.zst"]),
        "{answer:?}"
    );
    let (mut by_medium, node, _, name) = with_medium().await;
    changed(&mut by_medium).firmware = firmware(dir.path());
    std::fs::remove_file(dir.path().join("qed.cpio.zst")).unwrap();
    for _ in 0..2 {
        let answer = reads(&by_medium, &name, BMC).await;
        assert!(
            matches!(&answer, MediumAnswer::Medium { content, .. } if content.firmware.is_empty()),
            "{answer:?}"
        );
    }
    let says = |event: &model::Event| {
        event.text.contains("without add-on firmware") && event.text.contains("qed.cpio.zst")
    };
    let history = by_medium.contents.store.history(node).await.unwrap();
    assert_eq!(history.iter().filter(|event| says(event)).count(), 1, "{history:?}");
    std::fs::write(dir.path().join("qed.cpio.zst"), "x").unwrap();
    let answer = reads(&by_medium, &name, BMC).await;
    assert!(
        matches!(&answer, MediumAnswer::Medium { content, .. } if content.firmware.is_empty()),
        "of the same boot: {answer:?}"
    );
}
