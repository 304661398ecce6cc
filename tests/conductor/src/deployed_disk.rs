//! What an agent signs of a deployment is held against what was asked for, and certified next to the erases.

use crate::situation::{NOW, anneal, at, heard, issued, node, snapshot};
use crate::world::{World, step};
use agent_protocol::command::{CommandStatus, Status};
use agent_protocol::deployment::WrittenDisk;
use bmc::{Builtin, Drivers};
use certificate::{Certificate, EVIDENCE, Evidence, Finding, Signed, SigningKey, Wanted, verify};
use conductor::Settings;
use conductor::decision::{Action, Change, Outcome};
use conductor::stages::apply_outcome;
use model::plan::automated_plan;
use model::{CatalogueStep, DiskIdentity, Node, ProvisionState, Run, RunKind, StepKind, Verb};
use room::command;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{Clock, prelude::*};

const SHA: &str = "d3abad4080be9a88d34baa01be43afc84f4720c2c262cea679e6da8c4673f0c3";

/// The steps of `direct` that report something.
const STEPS: [&str; 2] = ["write_image", "prepare_instance_boot"];

fn with_image(node: &mut Node) {
    let info = json!({
        "image_source": "https://images/cloud.qcow2?signature=hunter2", "image_os_hash_algo": "sha256",
        "image_os_hash_value": SHA.to_uppercase(), "root_device": {"serial": "s1"},
    });
    node.instance_info = info.as_object().unwrap().clone();
}

/// A change that makes a record wrong.
type Lie = fn(&mut WrittenDisk);

/// A deployment at one of its steps.
struct Scene {
    node: Node,
    step: usize,
    key: SigningKey,
    signs: bool,
}

impl Scene {
    fn at(step: usize) -> Self {
        let mut node = node(ProvisionState::DeployWait, issued("boot-1", true), step);
        with_image(&mut node);
        let planned = |name: &&str| -> CatalogueStep {
            let step = json!({"interface": "deploy", "step": name, "priority": 80, "provider": "direct"});
            serde_json::from_value(step).unwrap()
        };
        let mut run = Run::new(RunKind::Deploy, NOW);
        run.plan = Some(automated_plan(&STEPS.iter().map(planned).collect::<Vec<_>>()));
        run.plan.as_mut().unwrap().sort_by_key(|planned| planned.step.step != STEPS[0]);
        (run.index, run.cursor, run.booted) = (Some(step), issued("boot-1", true), true);
        node.run = Some(run);
        Self { node, step, key: SigningKey::generate().unwrap().0, signs: true }
    }

    fn evidence(&self) -> Evidence {
        let names = match self.step {
            0 => ["deploy", "deploy", "write_image"],
            _ => certificate::INSTALL_BOOTLOADER,
        };
        let value = json!({
            "version": 1,
            "agent": {"version": "0.1.0", "boot_id": "boot-1", "process_id": "p"},
            "machine": {"manufacturer": "", "product_name": "", "serial_number": ""},
            "node": self.node.uuid, "command_id": "c0",
            "step": {"kind": names[0], "interface": names[1], "step": names[2]},
            "manager": {"name": "m", "version": "1"}, "succeeded": true, "disks": [],
        });
        let mut evidence: Evidence = serde_json::from_value(value).unwrap();
        match self.step {
            0 => evidence.deployed = Some(room::deployed("/dev/sda", "S1", 1 << 30, SHA)),
            _ => evidence.boot_entries = Some(serde_json::from_value(entries("S1")).unwrap()),
        }
        evidence
    }

    /// The command has succeeded with the report of `evidence`, signed.
    fn ends(&self, evidence: &Evidence) -> Change {
        let mut result = self.result(evidence);
        result[EVIDENCE] = serde_json::to_value(evidence.sign(&self.key)).unwrap();
        self.ends_with(result)
    }

    fn result(&self, evidence: &Evidence) -> Value {
        match self.step {
            0 => json!({"deploy_result": {"result": "done", "image": evidence.deployed}}),
            _ => json!({"result": "done", "boot_entries": evidence.boot_entries}),
        }
    }

    fn ends_with(&self, result: Value) -> Change {
        let status = CommandStatus { command_result: Some(result), ..command("c0", Status::Succeeded) };
        let mut contact = heard("boot-1");
        anneal(&mut contact).evidence_key = self.signs.then(|| self.key.public().to_string());
        let snapshot = snapshot(self.node.clone(), contact, NOW);
        let action = Action::AskCommand { command_id: "c0".into() };
        apply_outcome(&snapshot, &action, Outcome::Command(status), &Settings::default())
    }
}

fn entries(serial: &str) -> Value {
    json!({"device": "/dev/sda", "serial": serial, "entry": "Boot0001", "label": "debian", "loader": "\\x.efi",
           "added": true, "removed": [], "order": ["0001"]})
}

fn error(change: &Change) -> &str {
    assert_eq!(change.evidence, None, "nothing is certified");
    assert_eq!(change.node.provision_state, ProvisionState::DeployFail);
    assert_eq!(change.node.root_disk, None, "the disk is not remembered");
    change.node.run.as_ref().unwrap().results.last().unwrap().error.as_deref().unwrap_or_default()
}

#[test]
fn the_record_of_what_was_asked_for_is_certified_and_kept_once() {
    for step in [0, 1] {
        let scene = Scene::at(step);
        let evidence = scene.evidence();
        let change = scene.ends(&evidence);
        assert_eq!(change.evidence.expect("it is proven").evidence, evidence);
        let result = change.node.run.as_ref().unwrap().results.last().unwrap();
        assert_eq!((result.error.as_deref(), result.result.get(EVIDENCE)), (None, None));
        assert_eq!(result.finding.as_deref(), Some(["deployed", "boot_entries_made"][step]));
    }
}

#[test]
fn a_record_of_something_else_than_was_asked_for_fails_the_step() {
    let mut scene = Scene::at(0);
    let changed = |change: Lie| {
        let mut evidence =
            Scene { node: scene.node.clone(), key: SigningKey::generate().unwrap().0, ..scene }.evidence();
        change(evidence.deployed.as_mut().unwrap());
        evidence
    };
    let lies: [(Lie, &str); 7] = [
        (|disk| disk.record.download_digest = "0".repeat(64), "of an image with the digest 000"),
        (|disk| disk.serial = Some("S2".into()), "of disk S2, and root_device asks for serial s1"),
        (|disk| disk.serial = None, "of disk without identity, and root_device asks for serial s1"),
        (|disk| disk.record.read_back_sum = "0".repeat(64), "did not return what was written"),
        (|disk| disk.record.read_back -= 1, "bytes were read back"),
        (|disk| disk.record.size = 2 << 30, "the image has"),
        (|disk| disk.record.source = "https://images/cloud.qcow2?signature=x".into(), "not masked"),
    ];
    for (lie, why) in lies {
        let change = scene.ends(&changed(lie));
        assert!(error(&change).contains(why), "{why}: {}", error(&change));
    }
    // Not as it was signed.
    let good = scene.evidence();
    let mut result = scene.result(&changed(|disk| disk.device = "/dev/sdb".into()));
    result[EVIDENCE] = serde_json::to_value(good.sign(&scene.key)).unwrap();
    let change = scene.ends_with(result);
    assert!(error(&change).contains("the evidence of the deployment is refused"), "{}", error(&change));
    // Hints with an operator are for the agent to compare.
    scene
        .node
        .instance_info
        .insert("root_device".into(), json!({"serial": "s!= S1", "wwn": "<or> 0x1 <or> 0x2"}));
    assert!(scene.ends(&good).evidence.is_some());
    scene.node.instance_info.insert("root_device".into(), json!({"wwn": "0x5"}));
    assert!(error(&scene.ends(&good)).contains("root_device asks for wwn 0x5"));
    // Of a list of digests the controller does not know the one.
    scene.node.instance_info.remove("root_device");
    scene.node.instance_info.insert("image_os_hash_value".into(), json!("https://images/SHA256SUMS"));
    assert!(scene.ends(&good).evidence.is_some());
}

#[test]
fn a_rebuild_is_of_the_disk_of_the_deployment_before() {
    let mut scene = Scene::at(0);
    scene.node.instance_info.remove("root_device");
    scene.node.run.as_mut().unwrap().kind = RunKind::Rebuild;
    for (serial, wwn, passes) in
        [(Some("S1"), None, true), (Some("S2"), None, false), (Some("S1"), Some("0x5"), false)]
    {
        let text = |text: Option<&str>| text.map(str::to_owned);
        scene.node.root_disk = Some(DiskIdentity { serial: text(serial), wwn: text(wwn) });
        let change = scene.ends(&scene.evidence());
        assert_eq!(change.evidence.is_some(), passes, "{serial:?} {wwn:?}");
    }
}

#[test]
fn a_success_without_a_record_fails_the_step_of_an_agent_that_signs() {
    let mut scene = Scene::at(0);
    for result in [Value::Null, json!({"deploy_result": {"result": "done"}})] {
        let change = scene.ends_with(result);
        assert!(error(&change).contains("without a record of the disk"), "{}", error(&change));
    }
    let unsigned = scene.result(&scene.evidence());
    assert!(error(&scene.ends_with(unsigned)).contains("has not signed this report"));
    // Ironic-python-agent's result has no record.
    scene.signs = false;
    let change = scene.ends_with(json!({"deploy_result": {"result": "done"}}));
    assert_eq!((change.evidence, change.node.last_error), (None, None));
}

#[test]
fn boot_entries_are_of_the_disk_that_was_written() {
    let mut scene = Scene::at(1);
    let unsigned = scene.result(&scene.evidence());
    assert!(error(&scene.ends_with(unsigned)).contains("has not signed this report"));
    scene.node.root_disk = Some(DiskIdentity { serial: Some("S2".into()), wwn: None });
    let change = scene.ends(&scene.evidence());
    assert_eq!(change.evidence, None);
    let why = change.node.last_error.unwrap();
    assert!(why.contains("boot entries of step deploy.prepare_instance_boot are of disk S1"), "{why}");
    // On a node that boots by BIOS there are none.
    assert_eq!(scene.ends_with(json!({"result": "nothing was changed"})).node.last_error, None);
}

/// The certificates of the node, oldest first, each verified.
async fn certificates(world: &World) -> Vec<Certificate> {
    let stored = world.store.certificates(world.node).await.unwrap();
    let read = |one: &model::Certificate| {
        let signed: Signed = serde_json::from_str(&one.file).unwrap();
        let found = verify(&one.file, &signed.key.parse().unwrap(), &Wanted::default()).unwrap();
        found.certificate
    };
    stored.iter().map(read).collect()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_certified_next_to_the_erase_before_it_until_the_disk_was_written_again() {
    let world = World::new().await;
    *world.abilities.lock().unwrap() = Builtin::default().abilities("redfish", &BTreeMap::new()).unwrap();
    world.put(ProvisionState::Manageable, with_image).await;
    world.advertise(StepKind::Deploy, vec![step("write_image", 90, true)]);
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    let erase = world.store.newest_certificate(world.node).await.unwrap().expect("of the erase").id;
    world.verb(Verb::Deploy).await;
    assert_eq!(world.ended().await.provision_state, ProvisionState::Active);
    let erased_by =
        |made: &Certificate| made.disk_before.as_ref().and_then(|before| before.erased_by.clone());
    let made = certificates(&world).await.pop().unwrap();
    assert_eq!((made.finding, made.run.kind.as_str()), (Finding::Deployed, "deploy"));
    assert_eq!((made.previous.as_ref(), erased_by(&made)), (Some(&erase), Some(erase.clone())));
    let said = world.texts().await;
    assert!(
        said.iter().any(|text| text.contains("deployment certificate 3 of the node (deployed)")),
        "{said:?}"
    );

    world.verb(Verb::Rebuild).await;
    assert_eq!(world.ended().await.provision_state, ProvisionState::Active);
    let made = certificates(&world).await.pop().unwrap();
    assert_eq!((made.number, made.finding, erased_by(&made)), (4, Finding::Deployed, None));
}

/// By an agent that does not sign, for example.
#[tokio::test(start_paused = true)]
async fn an_erase_before_a_deployment_without_a_certificate_is_not_named() {
    let world = World::new().await;
    *world.abilities.lock().unwrap() = Builtin::default().abilities("redfish", &BTreeMap::new()).unwrap();
    world.put(ProvisionState::Manageable, with_image).await;
    world.advertise(StepKind::Deploy, vec![step("write_image", 90, true)]);
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::Available).await;
    let now = world.clock.now();
    world.put(ProvisionState::Available, |node| node.deployed_at = Some(now)).await;
    world.verb(Verb::Deploy).await;
    assert_eq!(world.ended().await.provision_state, ProvisionState::Active);
    let made = certificates(&world).await.pop().unwrap();
    assert_eq!(made.disk_before.expect("of a deployment").erased_by, None);
}

#[test]
fn the_end_of_each_deployment_and_adoption_is_remembered() {
    use ProvisionState::{Active, Adopting, DeployFail, DeployWait, Deploying};
    for (from, to, remembered) in [
        (Deploying, Active, true),
        (DeployWait, DeployFail, true),
        (Adopting, Active, true),
        (Deploying, DeployWait, false),
        (ProvisionState::Servicing, Active, false),
    ] {
        let mut node = Scene::at(0).node;
        node.provision_state = from;
        node.enter(to, None, at(9));
        assert_eq!(node.deployed_at, remembered.then(|| at(9)), "{from:?} {to:?}");
    }
}
