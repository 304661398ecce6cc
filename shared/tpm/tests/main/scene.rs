//! A machine that has booted a signed ramdisk, and the controller's half of a proof.

use software_tpm::{Boot, Ramdisk, SoftwareTpm};
use std::os::unix::net::UnixStream;
use tpm::{
    AttestationKey, Channel, Digest, EndorsementKey, Expected, Measurements, PCRS, Prediction, Proof, Prover,
    Quoted, Refusal, SECRET, Shown, Tpm, binding, judge, make_credential, predict,
};

pub const EVIDENCE: &str = "ed25519:00";
pub const BOOT_ID: &str = "8f3e4d5a-0000-4000-8000-000000000001";
pub const LINE: &str = "anneal.obeys=sha256:00 anneal.ramdisk quiet";

pub fn ramdisk() -> Ramdisk {
    Ramdisk::new(LINE, b"an initramfs")
}

/// A TPM into which this boot was measured.
pub fn booted(boot: &Boot) -> SoftwareTpm {
    let tpm = SoftwareTpm::new();
    boot.measure(&tpm);
    tpm
}

pub fn prover(tpm: &SoftwareTpm) -> Prover<Channel<UnixStream>> {
    Prover::new(Tpm::new(tpm.connect()), &[7; 32]).expect("keys")
}

/// The challenge of a controller.
#[derive(Debug, Clone)]
pub struct Challenge {
    pub nonce: [u8; 32],
    pub secret: [u8; SECRET],
    pub tls: Digest,
    pub boot_id: &'static str,
}

impl Default for Challenge {
    fn default() -> Self {
        Self { nonce: [1; 32], secret: [2; SECRET], tls: Digest::of(b"certificate"), boot_id: BOOT_ID }
    }
}

impl Challenge {
    pub fn binding(&self) -> Digest {
        binding(&self.nonce, &self.tls, EVIDENCE, self.boot_id)
    }
}

/// What an agent shows, to be changed by an attack.
#[derive(Debug, Clone)]
pub struct Exhibit {
    pub endorsement_key: EndorsementKey,
    pub certificate: Option<Vec<u8>>,
    pub attestation_key: AttestationKey,
    pub activated: Vec<u8>,
    pub quoted: Quoted,
    pub log: Vec<u8>,
}

/// As an honest agent shows it.
pub fn exhibit(tpm: &SoftwareTpm, log: Vec<u8>, challenge: &Challenge) -> Exhibit {
    let mut prover = prover(tpm);
    let credential = make_credential(prover.endorsement_key(), prover.attestation_key(), &challenge.secret)
        .expect("encrypted");
    let activated = prover.activate(&credential.credential, &credential.secret).expect("decrypted");
    let quoted = prover.quote(&PCRS, &challenge.binding()).expect("quoted");
    Exhibit {
        endorsement_key: prover.endorsement_key().clone(),
        certificate: None,
        attestation_key: prover.attestation_key().clone(),
        activated,
        quoted,
        log,
    }
}

/// What the controller knows of the node.
#[derive(Debug, Clone)]
pub struct Known {
    pub program: Prediction,
    pub enrolled: Option<(EndorsementKey, Measurements)>,
}

impl Known {
    pub fn nothing_but(ramdisk: &Ramdisk) -> Self {
        Self { program: predict(&ramdisk.file).expect("a ramdisk"), enrolled: None }
    }
}

pub fn judged(exhibit: &Exhibit, challenge: &Challenge, known: &Known) -> Result<Proof, Refusal> {
    let shown = Shown {
        endorsement_key: &exhibit.endorsement_key,
        endorsement_certificate: exhibit.certificate.as_deref(),
        attestation_key: &exhibit.attestation_key,
        activated: &exhibit.activated,
        quote: &exhibit.quoted.quote,
        signature: &exhibit.quoted.signature,
        pcrs: &exhibit.quoted.pcrs,
        event_log: &exhibit.log,
    };
    let enrolled = known.enrolled.as_ref();
    let expected = Expected {
        endorsement_key: enrolled.map(|(key, _)| key.name()),
        secret: &challenge.secret,
        binding: &challenge.binding(),
        program: &known.program,
        recorded: enrolled.map(|(_, measurements)| measurements),
    };
    judge(&shown, &expected)
}
