//! The agent proves its boot by a real software TPM to a small controller that judges as the real one does.

use crate::common;

use agent_protocol::boot_proof::{ANSWER_PATH, Answer, Challenge, START_PATH, Start};
use agentd::boot_proof::{BootProof, Bound, ProofError, Sources, prove};
use agentd::config::{self, Environment};
use agentd::http::{ApiUrl, Client};
use agentd::lookup;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use software_tpm::{Boot, Ramdisk, SoftwareTpm};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tpm::{
    AttestationKey, Digest, EndorsementKey, Expected, PCRS, Pcrs, Proof, Refusal, SECRET, Shown, binding,
    judge, make_credential, predict,
};

const NONCE: [u8; 32] = [8; 32];
const SECRET_OF_TEST: [u8; SECRET] = [9; SECRET];

/// What the controller does and has seen.
struct Controller {
    ramdisk: Ramdisk,
    boot_proof: u32,
    /// PCRs that it asks for.
    pcrs: Vec<u8>,
    /// Turns a challenge into another one before it is sent.
    forge: fn(&mut Challenge),
    judged: Mutex<Vec<Result<Proof, Refusal>>>,
    answers: Mutex<Vec<Answer>>,
    /// Path and query of each request.
    requests: watch::Sender<Vec<String>>,
}

fn bytes(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("base64")
}

fn keys(start: &Start) -> (EndorsementKey, AttestationKey) {
    let endorsement = EndorsementKey::parse(&bytes(&start.endorsement_key)).expect("an endorsement key");
    (endorsement, AttestationKey::parse(&bytes(&start.attestation_key)).expect("an attestation key"))
}

async fn start(State(controller): State<Arc<Controller>>, Json(start): Json<Start>) -> Json<Challenge> {
    let (endorsement, attestation) = keys(&start);
    let made = make_credential(&endorsement, &attestation, &SECRET_OF_TEST).expect("encrypted");
    let mut challenge = Challenge {
        nonce: STANDARD.encode(NONCE),
        credential: STANDARD.encode(made.credential),
        secret: STANDARD.encode(made.secret),
        pcrs: controller.pcrs.clone(),
    };
    (controller.forge)(&mut challenge);
    Json(challenge)
}

async fn answer(
    State(controller): State<Arc<Controller>>,
    Json(answer): Json<Answer>,
) -> Result<StatusCode, (StatusCode, String)> {
    let (endorsement, attestation) = keys(&answer.start);
    let values: Option<BTreeMap<u8, Digest>> =
        answer.pcrs.iter().map(|(pcr, value)| Some((*pcr, value.parse().ok()?))).collect();
    let certificate = answer.tls_certificate.parse().expect("a digest");
    let judged = judge(
        &Shown {
            endorsement_key: &endorsement,
            endorsement_certificate: answer.start.endorsement_certificate.as_deref().map(bytes).as_deref(),
            attestation_key: &attestation,
            activated: &bytes(&answer.activated),
            quote: &bytes(&answer.quote),
            signature: &bytes(&answer.signature),
            pcrs: &Pcrs(values.expect("digests")),
            event_log: &bytes(&answer.event_log),
        },
        &Expected {
            endorsement_key: None,
            secret: &SECRET_OF_TEST,
            binding: &binding(&NONCE, &certificate, &answer.evidence_key, &answer.start.boot_id),
            program: &predict(&controller.ramdisk.file).expect("a ramdisk"),
            recorded: None,
        },
    );
    controller.answers.lock().expect("no panic").push(answer);
    let said = judged.as_ref().map(|_| StatusCode::NO_CONTENT);
    let said = said.map_err(|refusal| (StatusCode::FORBIDDEN, refusal.to_string()));
    controller.judged.lock().expect("no panic").push(judged);
    said
}

async fn root(State(controller): State<Arc<Controller>>) -> Json<serde_json::Value> {
    Json(json!({
        "default_version": {"version": "1.95"},
        "anneal": {"extension": 1, "boot_proof": controller.boot_proof},
    }))
}

async fn count(State(controller): State<Arc<Controller>>, request: Request, next: Next) -> Response {
    let asked = request.uri().to_string();
    controller.requests.send_modify(|requests| requests.push(asked));
    next.run(request).await
}

/// A machine that has booted, and a controller that awaits the boot of its signed ramdisk.
struct Room {
    tpm: SoftwareTpm,
    files: TempDir,
    controller: Arc<Controller>,
    url: ApiUrl,
    client: Client,
}

fn ramdisk() -> Ramdisk {
    Ramdisk::new("anneal.ramdisk", b"an initramfs")
}

impl Room {
    async fn new(booted: &Ramdisk, forge: fn(&mut Challenge)) -> Self {
        Self::with(booted, forge, 1, PCRS.to_vec()).await
    }

    async fn with(booted: &Ramdisk, forge: fn(&mut Challenge), boot_proof: u32, pcrs: Vec<u8>) -> Self {
        let tpm = SoftwareTpm::new();
        let boot = Boot::of(booted, b"overlay");
        boot.measure(&tpm);
        let files = tempfile::tempdir().expect("a directory");
        std::fs::write(files.path().join("log"), boot.log()).expect("written");
        let controller = Arc::new(Controller {
            ramdisk: ramdisk(),
            boot_proof,
            pcrs,
            forge,
            judged: Mutex::default(),
            answers: Mutex::default(),
            requests: watch::Sender::default(),
        });
        let router = Router::new()
            .route("/", get(root))
            .route(START_PATH, post(start))
            .route(ANSWER_PATH, post(answer))
            .route("/v1/continue_inspection", post(async || (StatusCode::ACCEPTED, Json(json!({})))))
            .layer(middleware::from_fn_with_state(controller.clone(), count))
            .with_state(controller.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound")).parse().expect("a URL");
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { tpm, files, controller, url, client: Client::new(None).expect("a client") }
    }

    fn sources(&self) -> Sources {
        Sources { device: self.tpm.socket(), log: self.files.path().join("log") }
    }

    async fn proves(&self) -> Result<(), ProofError> {
        prove(&self.sources(), &bound(), &self.client, &self.url).await
    }
}

fn bound() -> Bound {
    Bound {
        addresses: vec!["52:54:00:00:00:01".into()],
        boot_id: "a boot".into(),
        tls_certificate: Digest::of(b"a certificate"),
        evidence_key: "ed25519:00".into(),
    }
}

#[tokio::test]
async fn a_boot_of_the_signed_ramdisk_is_proved_and_bound_to_the_agents_keys() {
    let room = Room::new(&ramdisk(), |_| {}).await;
    room.proves().await.expect("proved");
    // Once more, as after a lookup that failed: another attestation key, the same endorsement key.
    room.proves().await.expect("proved");
    let judged = room.controller.judged.lock().expect("no panic");
    assert!(judged.iter().all(|judged| judged.as_ref().is_ok_and(|proof| proof.changes.is_empty())));
    let answers = room.controller.answers.lock().expect("no panic");
    let [first, second] = answers.as_slice() else { panic!("two answers") };
    assert_eq!(first.start.endorsement_key, second.start.endorsement_key);
    assert_ne!(first.start.attestation_key, second.start.attestation_key);
    assert_eq!(first.start.addresses, ["52:54:00:00:00:01"]);
    assert_eq!(first.tls_certificate, Digest::of(b"a certificate").to_string());
}

#[tokio::test]
async fn another_ramdisk_is_refused_and_the_agent_says_why() {
    let room = Room::new(&Ramdisk::new("anneal.ramdisk", b"another"), |_| {}).await;
    let refused = room.proves().await.expect_err("another ramdisk");
    assert!(
        matches!(&refused, ProofError::Refused { status: 403, text } if text.contains("program of the ramdisk")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_challenge_for_another_tpm_or_another_nonce_is_not_answered() {
    let room = Room::new(&ramdisk(), |challenge| challenge.credential = STANDARD.encode([0; 68])).await;
    assert!(matches!(room.proves().await, Err(ProofError::Tpm(_))));
    let room = Room::new(&ramdisk(), |challenge| challenge.nonce = STANDARD.encode([8; 31])).await;
    assert!(matches!(room.proves().await, Err(ProofError::Challenge(_))));
    let room = Room::new(&ramdisk(), |challenge| challenge.pcrs = vec![24]).await;
    assert!(matches!(room.proves().await, Err(ProofError::Challenge(_))));
    let room = Room::new(&ramdisk(), |challenge| challenge.nonce = STANDARD.encode([7; 32])).await;
    let refused = room.proves().await.expect_err("another nonce");
    assert!(
        matches!(&refused, ProofError::Refused { text, .. } if text.contains("this challenge")),
        "{refused}"
    );
}

#[tokio::test]
async fn without_a_tpm_or_a_log_the_agent_says_what_is_missing() {
    let room = Room::new(&ramdisk(), |_| {}).await;
    let none = Sources { device: room.files.path().join("none"), ..room.sources() };
    assert!(matches!(prove(&none, &bound(), &room.client, &room.url).await, Err(ProofError::NoTpm)));
    let no_log = Sources { log: room.files.path().join("none"), ..room.sources() };
    let error = prove(&no_log, &bound(), &room.client, &room.url).await.expect_err("no log");
    assert!(matches!(&error, ProofError::Log(text) if text.contains("none")), "{error}");
    std::fs::write(room.files.path().join("log"), vec![0; 512 * 1024 + 1]).expect("written");
    assert!(matches!(room.proves().await, Err(ProofError::Log(text)) if text.contains("longer")));
}

#[tokio::test]
async fn only_a_controller_that_takes_proofs_is_shown_one() {
    for (boot_proof, expected) in [(0, 0), (1, 1)] {
        let room = Room::with(&ramdisk(), |_| {}, boot_proof, PCRS.to_vec()).await;
        let found = lookup::greet(&room.client, std::slice::from_ref(&room.url)).await.expect("an API");
        assert_eq!(found.takes_boot_proof, boot_proof == 1);
        assert!(found.takes_boot_id);
        let proving = BootProof { sources: room.sources(), bound: bound() };
        assert_eq!(proving.show(&room.client, &found).await, boot_proof == 1);
        assert_eq!(room.controller.answers.lock().expect("no panic").len(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_proves_its_boot_before_an_inspection_and_again_before_a_lookup_that_failed() {
    let room = Room::new(&ramdisk(), |_| {}).await;
    let arguments = vec![
        format!("--api-url={}", room.url),
        format!("--inspection-callback-url={}/v1/continue_inspection", room.url),
        "--listen=127.0.0.1:0".into(),
    ];
    let mut config = config::parse(&Environment { arguments, ..Environment::default() }).expect("valid");
    assert!(config.tpm.is_none(), "outside the ramdisk the machine's TPM is left alone");
    config.tpm = Some(room.sources());
    let agent = common::agent(&Arc::default());
    let boot_id = agent.state().identity().boot_id.clone();
    let key = agent.state().heartbeat().evidence_key.expect("a key");
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let life = tokio::spawn(async move { agentd::run::run(&config, agent, stopped).await });
    let mut requests = room.controller.requests.subscribe();
    let lookups =
        |requests: &Vec<String>| requests.iter().filter(|request| request.starts_with("/v1/lookup")).count();
    let twice = requests.wait_for(|requests| lookups(requests) == 2);
    let requests = tokio::time::timeout(Duration::from_secs(60), twice)
        .await
        .expect("in time")
        .expect("it lives")
        .clone();
    stop.cancel();
    life.await.expect("no panic").expect("ends well");
    let paths: Vec<&str> =
        requests.iter().map(|request| request.split('?').next().unwrap_or_default()).collect();
    let proof = [START_PATH, ANSWER_PATH];
    let expected =
        [&["/"], &proof[..], &["/v1/continue_inspection", "/v1/lookup"], &proof, &["/v1/lookup"]].concat();
    assert_eq!(paths, expected);
    assert_eq!(requests[3], format!("/v1/continue_inspection?anneal_boot_id={boot_id}"));
    let answers = room.controller.answers.lock().expect("no panic");
    assert!(answers.iter().all(|answer| answer.evidence_key == key && answer.start.boot_id == boot_id));
    assert!(room.controller.judged.lock().expect("no panic").iter().all(Result::is_ok));
}
