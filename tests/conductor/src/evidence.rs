//! What an agent signs is what is certified; what it does not sign, or signs wrongly, fails the step.

use crate::situation::{NOW, anneal, heard, issued, node, snapshot};
use agent_protocol::command::{CommandStatus, Status};
use agent_protocol::record::RequiredVerification;
use certificate::{Certificate, EVIDENCE, Evidence, PowerOff, Signed, SigningKey};
use conductor::decision::{Action, Change, Outcome};
use conductor::stages::apply_outcome;
use conductor::{CertificateIssuer, Previous, Settings};
use model::boot_proof::BootProof;
use model::{Node, ProvisionState};
use room::{command, failed};
use serde_json::{Value, json};

struct Scene {
    node: Node,
    step: &'static str,
    key: SigningKey,
    reported_key: Option<String>,
}

impl Scene {
    fn new() -> Self {
        Self::at("erase_devices")
    }

    /// The second of two steps runs: this one.
    fn at(step: &'static str) -> Self {
        let mut node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
        node.run.as_mut().unwrap().plan.as_mut().unwrap()[1].step.step = step.to_owned();
        let key = SigningKey::generate().unwrap().0;
        let reported_key = Some(key.public().to_string());
        Self { node, step, key, reported_key }
    }

    fn evidence(&self, succeeded: bool) -> Evidence {
        let value = json!({
            "version": 1,
            "agent": {"version": "0.1.0", "boot_id": "boot-1", "process_id": "p"},
            "machine": {"manufacturer": "", "product_name": "", "serial_number": ""},
            "node": self.node.uuid, "command_id": "c0",
            "step": {"kind": "clean", "interface": "deploy", "step": self.step},
            "manager": {"name": "generic_hardware_manager", "version": "1.2"},
            "succeeded": succeeded,
            "disks": [{"device": "/dev/sda", "serial": "S1", "size": 8, "outcome": "erased",
                "method": "overwrite-zeroes", "level": "clear", "bytes_erased": 8,
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
        self.ends_with(evidence, result)
    }

    /// The command has ended as `evidence` says, with this result.
    fn ends_with(&self, evidence: &Evidence, result: Value) -> Change {
        self.ends_under(&Settings::default(), evidence, result)
    }

    /// The same under a controller with these settings.
    fn ends_under(&self, settings: &Settings, evidence: &Evidence, result: Value) -> Change {
        self.ends_after(None, settings, evidence, result)
    }

    /// The same, where the node's TPM has given this proof.
    fn ends_after(
        &self,
        proof: Option<BootProof>,
        settings: &Settings,
        evidence: &Evidence,
        result: Value,
    ) -> Change {
        let status = match evidence.succeeded {
            true => command("c0", Status::Succeeded),
            false => failed("c0", "CleaningError", "a disk was left"),
        };
        let status = CommandStatus { command_result: Some(result), ..status };
        let mut contact = heard("boot-1");
        anneal(&mut contact).evidence_key = self.reported_key.clone();
        contact.proof = proof.map(Box::new);
        let snapshot = snapshot(self.node.clone(), contact, NOW);
        let action = Action::AskCommand { command_id: "c0".into() };
        apply_outcome(&snapshot, &action, Outcome::Command(status), settings)
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
fn a_certificate_says_whether_the_node_was_seen_off() {
    let mut scene = Scene::new();
    let issuer = CertificateIssuer::new(SigningKey::generate().unwrap().0, "c1");
    for (off_unobserved, says) in [(false, PowerOff::Observed), (true, PowerOff::NotObserved)] {
        scene.node.run.as_mut().unwrap().off_unobserved = off_unobserved;
        let evidence = scene.evidence(true);
        let change = scene.ends(&evidence, scene.sign(&evidence));
        let (node, proof) = (&change.node, *change.evidence.clone().unwrap());
        let issued = issuer.certify(node, node.run.as_ref().unwrap(), 1, proof, Previous::default(), NOW);
        let file: Signed = serde_json::from_str(&issued.file).unwrap();
        let certificate: Certificate = serde_json::from_str(&file.payload).unwrap();
        assert_eq!(certificate.run.power_off, Some(says));
    }
}

/// A proof says something of the boot of this key alone.
#[test]
fn a_certificate_names_the_proof_of_the_boot_in_which_its_key_signed() {
    let scene = Scene::new();
    let issuer = CertificateIssuer::new(SigningKey::generate().unwrap().0, "c1");
    let own = scene.reported_key.clone().unwrap();
    let other = SigningKey::generate().unwrap().0.public().to_string();
    for (key, boot_id, is_named) in
        [(&own, "boot-1", true), (&other, "boot-1", false), (&own, "boot-0", false)]
    {
        let proof = BootProof {
            at: NOW,
            boot_id: boot_id.to_owned(),
            endorsement_key: "000bee".to_owned(),
            quote_sha256: "ab".repeat(32),
            tls_certificate: "cd".repeat(32),
            evidence_key: key.clone(),
        };
        let evidence = scene.evidence(true);
        let mut result = json!({"clean_result": {"disks": evidence.disks}});
        result[EVIDENCE] = scene.sign(&evidence).unwrap();
        let change = scene.ends_after(Some(proof), &Settings::default(), &evidence, result);
        let (node, proof) = (&change.node, *change.evidence.clone().unwrap());
        let issued = issuer.certify(node, node.run.as_ref().unwrap(), 1, proof, Previous::default(), NOW);
        let file: Signed = serde_json::from_str(&issued.file).unwrap();
        let certificate: Certificate = serde_json::from_str(&file.payload).unwrap();
        let named = certificate.boot_proof.map(|proof| (proof.quote_sha256, proof.endorsement_key));
        assert_eq!(named, is_named.then(|| ("ab".repeat(32), "000bee".to_owned())), "{key} {boot_id}");
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

/// The steps of an agent that erase disks.
const ERASES: [&str; 3] = ["erase_devices", "erase_devices_express", "erase_devices_metadata"];

#[test]
fn a_success_without_a_report_of_the_disks_fails_an_erase_step() {
    for step in ERASES {
        let mut scene = Scene::at(step);
        let evidence = scene.evidence(true);
        scene.node.properties.insert("diskless".into(), json!(true));
        for result in [Value::Null, json!({"clean_result": null}), json!({"clean_result": {"note": "done"}})]
        {
            let change = scene.ends_with(&evidence, result);
            let why = "was reported as a success without a report of the disks";
            assert!(error(&change).contains(step) && error(&change).contains(why), "{}", error(&change));
            assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
        }
        // A failure fails with its own reason.
        let change = scene.ends_with(&scene.evidence(false), Value::Null);
        assert!(error(&change).ends_with("a disk was left"), "{}", error(&change));
        // An agent that signs nothing is not held to it.
        scene.reported_key = None;
        assert_eq!(error(&scene.ends_with(&evidence, Value::Null)), "");
    }
    let other = Scene::at("verify_properties");
    assert_eq!(error(&other.ends_with(&other.evidence(true), Value::Null)), "", "it erases nothing");
}

#[test]
fn only_a_node_that_is_declared_diskless_passes_an_erase_without_disks() {
    for step in ERASES {
        let mut scene = Scene::at(step);
        let mut nothing = scene.evidence(true);
        nothing.disks.clear();
        let mut medium = scene.evidence(true);
        let record = json!({"device": "/dev/sdz", "size": 8, "outcome": "skipped", "reason": "virtual media",
                            "exempt": "boot-medium", "bytes_erased": 0});
        medium.disks = vec![serde_json::from_value(record).unwrap()];
        for evidence in [nothing, medium] {
            scene.node.properties.clear();
            let change = scene.ends(&evidence, scene.sign(&evidence));
            let why = error(&change);
            assert!(
                why.contains(step) && why.contains("no disk of the node") && why.contains("diskless"),
                "{why}"
            );
            assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
            scene.node.properties.insert("diskless".into(), json!(false));
            error(&scene.ends(&evidence, scene.sign(&evidence)));
            scene.node.properties.insert("diskless".into(), json!(true));
            let change = scene.ends(&evidence, scene.sign(&evidence));
            assert_eq!(change.evidence.expect("it is certified").evidence, evidence);
        }
    }
}

#[test]
fn each_erase_step_is_judged_by_its_own_level() {
    let metadata = json!({"device": "/dev/sdb", "serial": "S2", "size": 8, "outcome": "metadata_erased",
        "method": "erase-metadata", "bytes_erased": 4,
        "verification": {"kind": "signatures", "bytes_read": 4, "expected": "zeroes", "mismatched_bytes": 0,
            "unchanged_samples": 0, "samples": 1, "passed": true}});
    for step in ERASES {
        let scene = Scene::at(step);
        let mut evidence = scene.evidence(true);
        evidence.disks = vec![serde_json::from_value(metadata.clone()).unwrap()];
        let change = scene.ends(&evidence, scene.sign(&evidence));
        if step == "erase_devices" {
            let why = error(&change);
            assert!(why.contains("only the metadata of disk /dev/sdb (serial S2)"), "{why}");
        } else {
            assert_eq!(change.evidence.expect("it is certified").evidence, evidence);
        }
    }
}

#[test]
fn what_the_record_of_a_disk_does_not_show_fails_the_step_and_names_the_disk() {
    let scene = Scene::new();
    let mut lie = scene.evidence(true);
    lie.disks[0].verification.as_mut().unwrap().bytes_read = 0;
    let change = scene.ends(&lie, scene.sign(&lie));
    let why = error(&change);
    assert!(why.contains("disk /dev/sda (serial S1) is called verified, and was not read back"), "{why}");
    assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
}

#[test]
fn a_disk_that_was_verified_by_less_than_the_controller_requires_fails_the_step() {
    let scene = Scene::new();
    let mut evidence = scene.evidence(true);
    let attested = json!({"device": "/dev/sda", "serial": "S1", "size": 8, "outcome": "erased",
        "method": "opal-psid-revert", "level": "purge", "bytes_erased": 8,
        "verification": {"kind": "device-attested", "bytes_read": 1, "expected": "changed", "mismatched_bytes": 0,
            "unchanged_samples": 0, "samples": 0, "device_status": "neither owned nor locked", "passed": true}});
    evidence.disks = vec![serde_json::from_value(attested).unwrap()];
    let result = json!({"clean_result": {"disks": evidence.disks}, EVIDENCE: scene.sign(&evidence)});
    let under = |require_verification| {
        let settings = Settings { require_verification, ..Settings::default() };
        scene.ends_under(&settings, &evidence, result.clone())
    };
    assert!(under(RequiredVerification::Device).evidence.is_some(), "the default");
    let refused = under(RequiredVerification::Read);
    assert!(error(&refused).contains("require_verification is read"), "{}", error(&refused));
    assert_eq!(refused.node.provision_state, ProvisionState::CleanFail);
}
