//! What a node's TPM proves of its boot: the proof in the contact, the TPM in the node.

use super::samples::{at, enrolled};
use model::boot::{Boot, BootNonce};
use model::boot_proof::{BootProof, EndorsementKey, Measurement, Measurements, Register, TpmRecord};
use model::{Cursor, Node};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Store, TokenGrant, TokenRequest};

fn proof(boot_id: &str) -> BootProof {
    BootProof {
        at: at(1),
        boot_id: boot_id.to_owned(),
        endorsement_key: "000b".to_owned(),
        quote_sha256: "11".repeat(32),
        tls_certificate: "22".repeat(32),
        evidence_key: "ed25519:33".to_owned(),
    }
}

/// A node whose run awaits the agent of a boot with this nonce.
async fn booting<S: Store>(store: &S) -> (Node, BootNonce) {
    let node = enrolled(store, "one").await;
    let boot = Boot::fresh();
    let nonce = boot.nonce.clone();
    store.forget_agent(node.uuid, Some(boot), None).await.unwrap();
    (node, nonce)
}

pub async fn a_token_is_for_the_boot_that_was_proved<S: Store>(store: Arc<S>) {
    let (node, nonce) = booting(&*store).await;
    let asks = |boot_id: Option<&str>| TokenRequest {
        proof_required: true,
        ..TokenRequest::with_nonce(nonce.clone(), "token", boot_id, at(2))
    };
    for boot_id in [Some("b"), None] {
        assert_eq!(store.grant_token(node.uuid, asks(boot_id)).await.unwrap(), TokenGrant::NotAwaited);
    }
    let before = store.contact(node.uuid).await.unwrap();
    assert!(!store.record_proof(node.uuid, &BootNonce::fresh(), proof("b")).await.unwrap());
    assert_eq!(store.contact(node.uuid).await.unwrap(), before, "of another boot");
    assert!(store.record_proof(node.uuid, &nonce, proof("b")).await.unwrap());
    assert_eq!(store.contact(node.uuid).await.unwrap().proof.as_deref(), Some(&proof("b")));
    for boot_id in [Some("a"), None] {
        assert_eq!(store.grant_token(node.uuid, asks(boot_id)).await.unwrap(), TokenGrant::NotAwaited);
    }
    assert_eq!(store.grant_token(node.uuid, asks(Some("b"))).await.unwrap(), TokenGrant::Given);
    assert_eq!(store.contact(node.uuid).await.unwrap().proof.as_deref(), Some(&proof("b")), "it is kept");
    // The agent with the token may prove its boot again, no other.
    assert!(!store.record_proof(node.uuid, &nonce, proof("a")).await.unwrap());
    assert!(store.record_proof(node.uuid, &nonce, BootProof { at: at(3), ..proof("b") }).await.unwrap());
    store.forget_agent(node.uuid, Some(Boot::fresh()), None).await.unwrap();
    assert_eq!(store.contact(node.uuid).await.unwrap().proof, None, "it is of one boot");
}

/// Where no proof is required, one of another boot says nothing about the agent that gets the token.
pub async fn a_proof_of_another_agent_is_dropped<S: Store>(store: Arc<S>) {
    let (node, nonce) = booting(&*store).await;
    assert!(store.record_proof(node.uuid, &nonce, proof("b")).await.unwrap());
    let request = TokenRequest::with_nonce(nonce, "token", Some("a"), at(2));
    assert_eq!(store.grant_token(node.uuid, request).await.unwrap(), TokenGrant::Given);
    assert_eq!(store.contact(node.uuid).await.unwrap().proof, None);
}

pub async fn no_proof_without_a_run_that_awaits_it<S: Store>(store: Arc<S>) {
    let (mut node, nonce) = booting(&*store).await;
    if let Some(run) = &mut node.run {
        run.cursor = Cursor::NextStep;
    }
    let node = store.update_node(node, vec![], None).await.unwrap();
    assert!(!store.record_proof(node.uuid, &nonce, proof("b")).await.unwrap());
    assert_eq!(store.contact(node.uuid).await.unwrap().proof, None);
}

pub async fn the_tpm_of_a_node_is_kept<S: Store>(store: Arc<S>) {
    let mut node = enrolled(&*store, "one").await;
    let key = EndorsementKey { public: "AA".into(), name: "000b".into(), certificate: Some("AQ".into()) };
    let event = Measurement { name: "EV_SEPARATOR".into(), digest: "44".repeat(32) };
    let measured = |digest: &str| Measurements {
        registers: BTreeMap::from([(7, Register::new(digest.repeat(32), [event.clone()].into_iter()))]),
        programs: vec!["55".repeat(32)],
    };
    let mut record = TpmRecord::new(key, measured("66"), at(1));
    record.note_change(measured("77"), at(2));
    node.tpm = Some(Box::new(record.clone()));
    let written = store.update_node(node, vec![], None).await.unwrap();
    assert_eq!(store.node(written.uuid).await.unwrap().tpm.as_deref(), Some(&record));
}
