//! What an agent signs is what is certified; what it does not sign, or signs wrongly, fails the step.

use crate::situation::{NOW, anneal, heard, issued, node, snapshot};
use agent_protocol::command::{CommandStatus, Status};
use certificate::{EVIDENCE, Evidence, SigningKey};
use conductor::Settings;
use conductor::decision::{Action, Change, Outcome};
use conductor::stages::apply_outcome;
use model::{Node, ProvisionState};
use room::{command, failed};
use serde_json::{Value, json};

struct Scene {
    node: Node,
    key: SigningKey,
    reported_key: Option<String>,
}

impl Scene {
    fn new() -> Self {
        let node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
        let key = SigningKey::generate().unwrap().0;
        let reported_key = Some(key.public().to_string());
        Self { node, key, reported_key }
    }

    fn evidence(&self, succeeded: bool) -> Evidence {
        let value = json!({
            "version": 1,
            "agent": {"version": "0.1.0", "boot_id": "boot-1", "process_id": "p"},
            "machine": {"manufacturer": "", "product_name": "", "serial_number": ""},
            "node": self.node.uuid, "command_id": "c0",
            "step": {"kind": "clean", "interface": "deploy", "step": "erase_devices"},
            "manager": {"name": "generic_hardware_manager", "version": "1.2"},
            "succeeded": succeeded,
            "disks": [{"device": "/dev/sda", "serial": "S1", "size": 8, "outcome": "erased",
                "method": "overwrite-zeroes", "bytes_erased": 8,
                "verification": {"kind": "full", "bytes_read": 8, "expected": "zeroes", "mismatched_bytes": 0,
                    "unchanged_samples": 0, "samples": 1, "passed": true}}],
        });
        serde_json::from_value(value).unwrap()
    }

    /// The command has ended with the report of `evidence`, and with `signed` added to its result.
    fn ends(&self, evidence: &Evidence, signed: Option<Value>) -> Change {
        let mut result = json!({"clean_result": {"disks": evidence.disks}});
        if let Some(signed) = signed {
            result[EVIDENCE] = signed;
        }
        let status = match evidence.succeeded {
            true => command("c0", Status::Succeeded),
            false => failed("c0", "CleaningError", "a disk was left"),
        };
        let status = CommandStatus { command_result: Some(result), ..status };
        let mut contact = heard("boot-1");
        anneal(&mut contact).evidence_key = self.reported_key.clone();
        let snapshot = snapshot(self.node.clone(), contact, NOW);
        let action = Action::AskCommand { command_id: "c0".into() };
        apply_outcome(&snapshot, &action, Outcome::Command(status), &Settings::default())
    }

    fn sign(&self, evidence: &Evidence) -> Option<Value> {
        Some(serde_json::to_value(evidence.sign(&self.key)).unwrap())
    }
}

fn error(change: &Change) -> &str {
    assert_eq!(change.evidence, None, "nothing is certified");
    change.node.run.as_ref().unwrap().results.last().unwrap().error.as_deref().unwrap_or_default()
}

#[test]
fn what_is_signed_is_certified_and_kept_once() {
    let scene = Scene::new();
    for succeeded in [true, false] {
        let evidence = scene.evidence(succeeded);
        let change = scene.ends(&evidence, scene.sign(&evidence));
        assert_eq!(change.evidence.as_ref().expect("it is proven").evidence, evidence);
        let result = change.node.run.as_ref().unwrap().results.last().unwrap();
        assert_eq!((result.error.is_none(), result.result.get(EVIDENCE)), (succeeded, None));
    }
}

#[test]
fn what_is_signed_wrongly_or_not_at_all_fails_the_step() {
    let mut scene = Scene::new();
    let good = scene.evidence(true);
    let mut old = good.clone();
    old.agent.boot_id = "boot-0".to_owned();
    let mut foreign = good.clone();
    foreign.node = "another".to_owned();
    let mut other = good.clone();
    other.disks[0].serial = Some("S2".to_owned());
    let stranger = SigningKey::generate().unwrap().0;
    for (signed, why) in [
        (None, "has not signed this report"),
        (Some(json!("garbage")), "cannot be read"),
        (Some(serde_json::to_value(good.sign(&stranger)).unwrap()), "is signed by key"),
        (scene.sign(&old), "is of boot"),
        (scene.sign(&foreign), "of node another"),
        (scene.sign(&other), "disagree about the disks"),
    ] {
        let change = scene.ends(&good, signed);
        assert!(error(&change).contains(why), "{why}: {}", error(&change));
        assert_eq!(change.node.provision_state, ProvisionState::CleanFail, "{why}");
    }
    // A failure stays one, and says so, too.
    let failed = scene.evidence(false);
    let change = scene.ends(&failed, scene.sign(&good));
    assert!(
        error(&change).contains("a disk was left; the evidence of the erase is refused"),
        "{}",
        error(&change)
    );
    scene.reported_key = None;
    let change = scene.ends(&good, scene.sign(&good));
    assert!(error(&change).contains("has reported no key"), "{}", error(&change));
}

#[test]
fn an_agent_that_does_not_sign_is_not_certified_and_not_hindered() {
    let mut scene = Scene::new();
    scene.reported_key = None;
    let change = scene.ends(&scene.evidence(true), None);
    assert_eq!(error(&change), "");
    let result = change.node.run.as_ref().unwrap().results.last().unwrap();
    assert_eq!((result.certificate.as_ref(), result.error.as_ref()), (None, None));
}
