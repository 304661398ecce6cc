//! What the TPM of a node proves of its boots, by a real TPM (Debian's swtpm), and what it does not.

use crate::common::{Answer, Api};
use agent_protocol::boot_proof as wire;
use api::Settings;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use model::boot::{Boot, BootNonce};
use model::{Cursor, Node, ProvisionState, Run, RunKind};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use software_tpm::{Boot as Measurements, Measured, Ramdisk, SoftwareTpm};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use tpm::{AttestationKey, Channel, Digest, Prover, Tpm};

const MAC: &str = "52:54:00:12:34:56";
const EVIDENCE: &str = "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const OTHER_EVIDENCE: &str = "ed25519:3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
const LINE: &str = "anneal.obeys=sha256:00 quiet";
const BOOT_ID: &str = "8f3e4d5a-0000-4000-8000-000000000001";
/// Of a certificate whose DER is three zeros: `AAAA`.
const DER: [u8; 3] = [0; 3];

/// A controller with a signed ramdisk, a node whose boots must be proved, and its machine.
struct Scene {
    api: Api,
    node: Node,
    nonce: BootNonce,
    tpm: SoftwareTpm,
    ramdisk: Ramdisk,
}

fn settings(require_tpm: bool) -> Settings {
    Settings { boot_proofs: true, require_tpm, lookup_without_nonce: false, ..Settings::default() }
}

impl Scene {
    /// A node without a record of its TPM, in the boot of an inspection.
    async fn inspecting(require_tpm: bool) -> Self {
        let api = Api::having(settings(require_tpm));
        let ramdisk = Ramdisk::new(LINE, b"an initramfs");
        *api.drivers.signed.lock().unwrap() = Some(Arc::new(tpm::predict(&ramdisk.file).unwrap()));
        let node = api
            .node_with("n", ProvisionState::InspectWait, |node| {
                node.interfaces.insert("boot_interface".into(), "redfish-virtual-media".into());
            })
            .await;
        api.port(&node, MAC).await;
        let mut scene = Self { api, node, nonce: BootNonce::shown(""), tpm: SoftwareTpm::new(), ramdisk };
        scene.boots(RunKind::Inspect).await;
        scene
    }

    /// A node whose TPM an inspection has recorded, in the boot of a cleaning.
    async fn enrolled() -> Self {
        let mut scene = Self::inspecting(true).await;
        scene.measured().measure(&scene.tpm);
        scene.proves().await.is(204);
        scene.reboots().await;
        scene
    }

    /// The controller orders a boot for a run of this kind.
    async fn boots(&mut self, kind: RunKind) {
        let mut node = self.api.store_node(&self.node).await;
        let (state, cursor) = match kind {
            RunKind::Inspect => (ProvisionState::InspectWait, Cursor::AwaitInventory),
            _ => (ProvisionState::CleanWait, Cursor::AwaitAgent),
        };
        node.provision_state = state;
        node.run = Some(Run { cursor, booted: true, ..Run::new(kind, node.created_at) });
        self.node = self.api.store.update_node(node, Vec::new(), None).await.unwrap();
        let boot = Boot::fresh();
        self.nonce = boot.nonce.clone();
        self.api.store.forget_agent(self.node.uuid, Some(boot), None).await.unwrap();
    }

    /// The node is cleaned: power off, power on, and nothing measured yet.
    async fn reboots(&mut self) {
        self.boots(RunKind::AutomatedClean).await;
        self.tpm.cut_power();
    }

    /// A boot of the signed ramdisk as it is.
    fn measured(&self) -> Measurements {
        Measurements::of(&self.ramdisk, b"")
    }

    fn prover(&self) -> Prover<Channel<UnixStream>> {
        Prover::new(Tpm::new(self.tpm.connect()), &[7; 32]).unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.api.post(&format!("/boot-nonce/{}{path}", self.nonce.expose()), body).await
    }

    async fn start(&self, start: &wire::Start) -> Answer {
        self.post(wire::START_PATH, json!(start)).await
    }

    /// The answer of an honest agent to the challenge of this controller, after this log.
    async fn answer(&self, prover: &mut Prover<Channel<UnixStream>>, log: &Measurements) -> wire::Answer {
        let start = start_of(prover);
        let challenge: wire::Challenge =
            serde_json::from_value(self.start(&start).await.is(200).body).unwrap();
        answer_to(prover, &start, &challenge, log)
    }

    async fn proves_with(&self, log: &Measurements) -> Answer {
        let answer = self.answer(&mut self.prover(), log).await;
        self.sends(&answer).await
    }

    async fn proves(&self) -> Answer {
        self.proves_with(&self.measured()).await
    }

    async fn sends(&self, answer: &wire::Answer) -> Answer {
        self.post(wire::ANSWER_PATH, json!(answer)).await
    }

    async fn looks_up(&self, boot_id: &str) -> Answer {
        let prefix = format!("/boot-nonce/{}", self.nonce.expose());
        let path = format!("{prefix}/v1/lookup?addresses={MAC}&anneal_boot_id={boot_id}");
        self.api.at(68, "GET", &path, None).await
    }

    /// Refused with these words, which the history has; and no token.
    async fn is_refused(&self, answer: Answer, words: &str) {
        let fault = answer.is(403).fault();
        assert!(fault.contains(words), "{words}: {fault}");
        self.is_named(words).await;
        self.looks_up(BOOT_ID).await.is(404);
        assert_eq!(self.api.store.contact(self.node.uuid).await.unwrap().token, None, "{words}");
    }

    async fn is_named(&self, words: &str) {
        let history = self.api.store.history(self.node.uuid).await.unwrap();
        assert!(history.iter().any(|event| event.text.contains(words)), "{words}: {history:#?}");
    }
}

fn start_of(prover: &mut Prover<Channel<UnixStream>>) -> wire::Start {
    wire::Start {
        addresses: vec![MAC.to_owned()],
        boot_id: BOOT_ID.to_owned(),
        endorsement_key: BASE64.encode(prover.endorsement_key().public()),
        endorsement_certificate: prover.certificate().map(|der| BASE64.encode(der)),
        attestation_key: BASE64.encode(prover.attestation_key().public()),
    }
}

fn answer_to(
    prover: &mut Prover<Channel<UnixStream>>,
    start: &wire::Start,
    challenge: &wire::Challenge,
    log: &Measurements,
) -> wire::Answer {
    let bytes = |text: &str| BASE64.decode(text).unwrap();
    let activated = prover.activate(&bytes(&challenge.credential), &bytes(&challenge.secret)).unwrap();
    let nonce: [u8; 32] = bytes(&challenge.nonce).try_into().unwrap();
    let tls = Digest::of(&DER);
    let binding = tpm::binding(&nonce, &tls, EVIDENCE, &start.boot_id);
    let quoted = prover.quote(&challenge.pcrs, &binding).unwrap();
    wire::Answer {
        start: start.clone(),
        nonce: challenge.nonce.clone(),
        activated: BASE64.encode(activated),
        quote: BASE64.encode(quoted.quote),
        signature: BASE64.encode(quoted.signature),
        pcrs: quoted.pcrs.0.iter().map(|(pcr, value)| (*pcr, value.to_string())).collect(),
        event_log: BASE64.encode(log.log()),
        tls_certificate: tls.to_string(),
        evidence_key: EVIDENCE.to_owned(),
    }
}

/// A heartbeat of the agent that was proved.
fn beat(token: &str) -> Value {
    let pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    json!({
        "callback_url": "https://192.0.2.7:9999", "agent_token": token, "agent_version": "1", "agent_verify_ca": pem,
        "anneal": {"extension": 1, "boot_id": BOOT_ID, "process_id": "p", "evidence_key": EVIDENCE},
    })
}

#[tokio::test]
async fn an_inspection_records_the_tpm_and_every_boot_proves_itself_by_it() {
    let mut scene = Scene::inspecting(true).await;
    let root = scene.api.get("/").await.is(200).body;
    assert_eq!(root["anneal"], json!({"extension": 1, "boot_proof": 1}));
    scene.looks_up(BOOT_ID).await.is(404);
    scene.measured().measure(&scene.tpm);
    scene.proves().await.is(204);
    let record = scene.api.store_node(&scene.node).await.tpm.unwrap();
    let name = scene.prover().endorsement_key().name().to_string();
    assert_eq!(record.endorsement_key.name, name);
    assert_eq!(record.measurements.registers.keys().copied().collect::<Vec<_>>(), [0, 2, 3, 7]);
    assert!(!record.measurements.registers[&7].events.is_empty());
    scene.is_named("its TPM was recorded by an inspection").await;
    // The report, too, is taken from the boot that was proved alone.
    let report = json!({"inventory": {"interfaces": [{"mac_address": MAC}]}});
    scene.post("/v1/continue_inspection", report.clone()).await.is(404);
    scene.post(&format!("/v1/continue_inspection?anneal_boot_id={BOOT_ID}"), report).await.is(202);

    scene.reboots().await;
    scene.measured().measure(&scene.tpm);
    scene.looks_up(BOOT_ID).await.is(404);
    scene.is_named("the node's TPM has not proved its boot").await;
    scene.proves().await.is(204);
    let stored = scene.api.store.contact(scene.node.uuid).await.unwrap().proof.unwrap();
    assert_eq!((stored.boot_id.as_str(), stored.endorsement_key), (BOOT_ID, name));
    // No other agent gets the token, though it shows the nonce.
    scene.looks_up("another").await.is(404);
    let found = scene.looks_up(BOOT_ID).await.is(200).body;
    let token = found["config"]["agent_token"].as_str().unwrap().to_owned();
    assert!(scene.api.store.contact(scene.node.uuid).await.unwrap().proof.is_some(), "it is kept");
    let path = format!("/v1/heartbeat/{}", scene.node.uuid);
    for (pointer, value, words) in [
        (
            "/agent_verify_ca",
            json!("-----BEGIN CERTIFICATE-----\nBBBB\n-----END CERTIFICATE-----\n"),
            "another certificate",
        ),
        ("/agent_verify_ca", Value::Null, "no certificate"),
        ("/anneal/evidence_key", json!(OTHER_EVIDENCE), "another evidence key"),
        ("/anneal/boot_id", json!("another"), "another boot id"),
    ] {
        let mut body = beat(&token);
        *body.pointer_mut(pointer).unwrap() = value;
        let fault = scene.post(&path, body).await.is(400).fault();
        assert!(fault.contains(words), "{fault}");
    }
    scene.is_named("a heartbeat from an unknown address was refused: it shows another certificate").await;
    assert_eq!(scene.api.store.contact(scene.node.uuid).await.unwrap().callback_url, None);
    scene.post(&path, beat(&token)).await.is(202);
    // Its boot is over for proofs.
    scene.start(&start_of(&mut scene.prover())).await.is(404);
}

#[tokio::test]
async fn a_proof_counts_for_its_challenge_its_boot_and_its_keys_alone() {
    let mut scene = Scene::enrolled().await;
    scene.measured().measure(&scene.tpm);
    let log = scene.measured();
    let good = scene.answer(&mut scene.prover(), &log).await;
    // Another nonce, which has not expired.
    let mut nonce = BASE64.decode(&good.nonce).unwrap();
    nonce[31] ^= 1;
    let other_nonce = wire::Answer { nonce: BASE64.encode(&nonce), ..good.clone() };
    scene.is_refused(scene.sends(&other_nonce).await, "was not activated").await;
    nonce[..8].copy_from_slice(&0_i64.to_be_bytes());
    let expired = wire::Answer { nonce: BASE64.encode(&nonce), ..good.clone() };
    scene.is_refused(scene.sends(&expired).await, "has expired").await;
    // Other keys of the agent: an impostor passes on what the machine proves.
    for answer in [
        wire::Answer { tls_certificate: Digest::of(b"other").to_string(), ..good.clone() },
        wire::Answer { evidence_key: OTHER_EVIDENCE.to_owned(), ..good.clone() },
    ] {
        scene.is_refused(scene.sends(&answer).await, "not of this challenge, this boot and these keys").await;
    }
    let mut other_boot = good.clone();
    other_boot.start.boot_id = "another".to_owned();
    scene.is_refused(scene.sends(&other_boot).await, "was not activated").await;
    // An older quote of the same keys, with a new challenge.
    let newer = scene.answer(&mut scene.prover(), &log).await;
    let replayed =
        wire::Answer { quote: good.quote.clone(), signature: good.signature.clone(), ..newer.clone() };
    scene.is_refused(scene.sends(&replayed).await, "not of this challenge, this boot and these keys").await;
    let forged = wire::Answer { signature: good.signature.clone(), ..newer.clone() };
    scene.is_refused(scene.sends(&forged).await, "has not signed the quote").await;
    let mut values = newer.clone();
    values.pcrs.insert(7, "11".repeat(32));
    scene.is_refused(scene.sends(&values).await, "are not those that were quoted").await;
    // The whole answer, in the node's next boot within the minute.
    scene.boots(RunKind::AutomatedClean).await;
    scene.is_refused(scene.sends(&newer).await, "was not activated").await;
    scene.proves().await.is(204);
}

#[tokio::test]
async fn another_tpm_and_a_software_key_prove_nothing() {
    let mut scene = Scene::enrolled().await;
    scene.measured().measure(&scene.tpm);
    // Another machine, which boots the same ramdisk.
    let own = std::mem::replace(&mut scene.tpm, SoftwareTpm::new());
    scene.measured().measure(&scene.tpm);
    let start = start_of(&mut scene.prover());
    scene.is_refused(scene.start(&start).await, "another TPM than the node's").await;
    scene.tpm = own;
    // A key of software, next to the node's endorsement key: the TPM does not decrypt for it.
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let software =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let mut public = AttestationKey::template(&[7; 32]);
    let (end, point) = (public.len(), software.public_key().as_ref());
    public[end - 66..end - 34].copy_from_slice(&point[1..33]);
    public[end - 32..].copy_from_slice(&point[33..65]);
    assert!(AttestationKey::parse(&public).is_ok(), "it says of itself what a key of a TPM does");
    let mut prover = scene.prover();
    let honest = start_of(&mut prover);
    let start = wire::Start { attestation_key: BASE64.encode(&public), ..honest.clone() };
    let challenge: wire::Challenge = serde_json::from_value(scene.start(&start).await.is(200).body).unwrap();
    let bytes = |text: &str| BASE64.decode(text).unwrap();
    prover.activate(&bytes(&challenge.credential), &bytes(&challenge.secret)).unwrap_err();
    let answer = scene.answer(&mut prover, &scene.measured()).await;
    let guessed = wire::Answer { start, nonce: challenge.nonce, ..answer };
    drop(prover);
    scene.is_refused(scene.sends(&guessed).await, "was not activated").await;
    // A key that signs anything.
    public[5] &= 0xfe;
    let loose = wire::Start { attestation_key: BASE64.encode(&public), ..honest };
    scene.is_refused(scene.start(&loose).await, "it is not restricted").await;
    scene.proves().await.is(204);
}

#[tokio::test]
async fn what_was_not_signed_or_not_recorded_is_named() {
    let mut scene = Scene::enrolled().await;
    let other_line = Ramdisk::new("anneal.obeys=sha256:ff quiet", b"an initramfs");
    let other_initramfs = Ramdisk::new(LINE, b"another");
    for (ramdisk, words) in [
        (other_line, "the kernel command line is not"),
        (other_initramfs, "did not start a program of the ramdisk"),
    ] {
        let log = Measurements::of(&ramdisk, b"");
        log.measure(&scene.tpm);
        scene.is_refused(scene.proves_with(&log).await, words).await;
        scene.reboots().await;
    }
    // The right program, and parts that are not of it.
    let mut parts = scene.measured();
    let part = parts.events.iter_mut().rfind(|event| event.pcr == 11).unwrap();
    part.digest = Digest::of(b"another");
    parts.measure(&scene.tpm);
    scene.is_refused(scene.proves_with(&parts).await, "parts of the ramdisk are not those").await;
    scene.reboots().await;
    // The log hides a measurement.
    let hidden = Measured::data(4, software_tpm::APPLICATION, &[1]);
    scene.measured().measure(&scene.tpm);
    scene.tpm.extend(4, hidden.digest);
    scene.is_refused(scene.proves().await, "does not give the quoted PCR 4").await;
}

#[tokio::test]
async fn changed_measurements_wait_for_an_operator() {
    let mut scene = Scene::enrolled().await;
    let changed = |scene: &Scene| {
        let mut log = scene.measured();
        let event = log.events.iter_mut().find(|event| event.pcr == 7).unwrap();
        *event = Measured::data(7, event.kind, b"SecureBoot is off");
        log
    };
    let path = "/v1/anneal/nodes/n/measurements";
    let log = changed(&scene);
    log.measure(&scene.tpm);
    scene
        .is_refused(scene.proves_with(&log).await, "measures something else than what is recorded: PCR 7")
        .await;
    let shown = scene.api.get(path).await.is(200).body;
    let difference = &shown["changed"]["differences"][0];
    assert_eq!((&difference["pcr"], &difference["what"]), (&json!(7), &json!("Secure Boot")));
    assert_eq!(
        (difference["gone"].as_array().unwrap().len(), difference["new"].as_array().unwrap().len()),
        (1, 1)
    );
    let why = scene.api.get("/v1/anneal/nodes/n/why").await.is(200).body;
    assert_eq!(why["waits_for"]["what"], "user", "{why}");
    assert_eq!(why["help"]["commands"][0]["command"], "anneal node measurements accept n");

    scene.api.post(&format!("{path}/accept"), json!({"id": "0"})).await.is(409);
    scene.is_refused(scene.proves_with(&log).await, "measures something else").await;
    let accept = json!({"id": shown["changed"]["id"]});
    let accepted = scene.api.post(&format!("{path}/accept"), accept.clone()).await.is(200).body;
    assert_eq!((&accepted["changed"], &accepted["recorded"]["id"]), (&Value::Null, &accept["id"]));
    scene.is_named("what its boots measure was accepted by a user").await;
    scene.api.post(&format!("{path}/accept"), accept).await.is(409);
    scene.proves_with(&log).await.is(204);
    scene.looks_up(BOOT_ID).await.is(200);

    // Back to what was before, and at once to what is accepted now: nothing waits any more.
    scene.reboots().await;
    scene.measured().measure(&scene.tpm);
    scene.is_refused(scene.proves().await, "measures something else").await;
    scene.reboots().await;
    log.measure(&scene.tpm);
    scene.proves_with(&log).await.is(204);
    assert!(scene.api.store_node(&scene.node).await.tpm.unwrap().changed.is_none());

    scene.api.delete(path).await.is(204);
    scene.api.delete(path).await.is(404);
    assert_eq!(scene.api.get(path).await.is(200).body["tpm"], Value::Null);
    // A cleaning does not record what it finds.
    scene.boots(RunKind::AutomatedClean).await;
    scene.is_refused(scene.proves_with(&log).await, "no TPM is recorded for the node").await;
    scene.boots(RunKind::Inspect).await;
    scene.proves_with(&log).await.is(204);
}

#[tokio::test]
async fn where_no_proof_is_required_one_is_recorded_and_none_is_missed() {
    let mut scene = Scene::inspecting(false).await;
    scene.boots(RunKind::AutomatedClean).await;
    scene.measured().measure(&scene.tpm);
    scene.proves().await.is(204);
    scene.is_named("its TPM was recorded by a boot of a node for which no proof is required").await;
    scene.looks_up(BOOT_ID).await.is(200);
    assert!(scene.api.store.contact(scene.node.uuid).await.unwrap().proof.is_some());

    scene.reboots().await;
    scene.looks_up("without").await.is(200);
    assert_eq!(scene.api.store.contact(scene.node.uuid).await.unwrap().proof, None);
    // One word of the node decides, and a word that is none counts as yes.
    for (word, status) in [(json!(true), 404), (json!("maybe"), 404), (json!("no"), 200)] {
        let mut node = scene.api.store_node(&scene.node).await;
        node.driver_info.insert("require_tpm".into(), word);
        scene.api.update(node).await;
        scene.boots(RunKind::AutomatedClean).await;
        scene.looks_up(BOOT_ID).await.is(status);
    }
}

#[tokio::test]
async fn strangers_learn_nothing() {
    let scene = Scene::enrolled().await;
    let start = start_of(&mut scene.prover());
    // Without the nonce, with another one, for a machine that no node has, and where nothing is awaited.
    scene.api.post(wire::START_PATH, json!(start)).await.is(404);
    let other = format!("/boot-nonce/{}{}", BootNonce::fresh().expose(), wire::START_PATH);
    scene.api.post(&other, json!(start)).await.is(404);
    let unknown = wire::Start { addresses: vec!["52:54:00:ff:ff:ff".into()], ..start.clone() };
    scene.start(&unknown).await.is(404);
    for (member, value) in [("boot_id", json!("")), ("endorsement_key", json!("!")), ("addresses", json!(7))]
    {
        let mut body = json!(start);
        body[member] = value;
        let fault = scene.post(wire::START_PATH, body).await.is(400).fault();
        assert!(fault.contains(member) || fault.contains("expected a sequence"), "{fault}");
    }
    let many = wire::Start { addresses: vec![MAC.into(); 257], ..start.clone() };
    scene.start(&many).await.is(400);
    // A node that boots otherwise has nothing to prove, unless it has to.
    let mut node = scene.api.store_node(&scene.node).await;
    node.interfaces.insert("boot_interface".into(), "ipxe".into());
    node.driver_info.insert("require_tpm".into(), json!(false));
    scene.api.update(node).await;
    scene.start(&start).await.is(404);
    let mut node = scene.api.store_node(&scene.node).await;
    node.driver_info.remove("require_tpm");
    scene.api.update(node).await;
    scene.is_refused(scene.start(&start).await, "does not boot from a boot medium").await;
}
