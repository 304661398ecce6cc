//! Which keys are accepted, and what a real TPM makes of a credential.

use crate::scene::prover;
use software_tpm::SoftwareTpm;
use tpm::{AttestationKey, EndorsementKey, KeyError, make_credential};

/// Where the attributes of a public part are.
const ATTRIBUTES: std::ops::Range<usize> = 4..8;

fn with_attributes(public: &[u8], change: impl Fn(u32) -> u32) -> Vec<u8> {
    let mut public = public.to_vec();
    let attributes = u32::from_be_bytes(public[ATTRIBUTES].try_into().expect("four"));
    public[ATTRIBUTES].copy_from_slice(&change(attributes).to_be_bytes());
    public
}

#[test]
fn an_attestation_key_must_be_restricted_fixed_and_sign() {
    let tpm = SoftwareTpm::new();
    let public = prover(&tpm).attestation_key().public().to_vec();
    let without =
        |bit: u32| AttestationKey::parse(&with_attributes(&public, |attributes| attributes & !(1 << bit)));
    assert!(AttestationKey::parse(&public).is_ok());
    assert_eq!(without(16), Err(KeyError::NotRestricted));
    assert_eq!(without(18), Err(KeyError::DoesNotSign));
    for bit in [1, 4, 5] {
        assert_eq!(without(bit), Err(KeyError::NotFixed), "{bit}");
    }
    let decrypts = with_attributes(&public, |attributes| attributes | 1 << 17);
    assert_eq!(AttestationKey::parse(&decrypts), Err(KeyError::DoesNotSign));
    let endorsement = prover(&tpm).endorsement_key().public().to_vec();
    assert_eq!(AttestationKey::parse(&endorsement), Err(KeyError::DoesNotSign));
}

#[test]
fn an_endorsement_key_is_of_the_default_template() {
    let tpm = SoftwareTpm::new();
    let public = prover(&tpm).endorsement_key().public().to_vec();
    assert!(EndorsementKey::parse(&public).is_ok());
    for bit in [1, 4, 5, 6, 7, 16, 17, 18] {
        let other = with_attributes(&public, |attributes| attributes ^ (1 << bit));
        assert_eq!(EndorsementKey::parse(&other), Err(KeyError::Template), "{bit}");
    }
    let mut policy = public.clone();
    policy[12] ^= 1;
    assert_eq!(EndorsementKey::parse(&policy), Err(KeyError::Template));
    assert!(matches!(EndorsementKey::parse(&public[..public.len() - 1]), Err(KeyError::Malformed(_))));
    assert!(matches!(EndorsementKey::parse(&[&public[..], &[0]].concat()), Err(KeyError::Malformed(_))));
}

#[test]
fn a_tpm_decrypts_what_was_encrypted_for_it() {
    let tpm = SoftwareTpm::new();
    let mut prover = prover(&tpm);
    for secret in [[0; 32], [0xff; 32], std::array::from_fn(|index| u8::try_from(index).expect("small"))] {
        let made =
            make_credential(prover.endorsement_key(), prover.attestation_key(), &secret).expect("encrypted");
        assert_eq!(prover.activate(&made.credential, &made.secret).expect("decrypted"), secret);
    }
}

#[test]
fn keys_that_are_no_points_get_no_credential() {
    let tpm = SoftwareTpm::new();
    let prover = prover(&tpm);
    let mut public = prover.endorsement_key().public().to_vec();
    *public.last_mut().expect("bytes") ^= 1;
    let off_the_curve = EndorsementKey::parse(&public).expect("its form is right");
    assert!(make_credential(&off_the_curve, prover.attestation_key(), &[0; 32]).is_err());
}

#[test]
fn each_boot_has_another_attestation_key_and_the_same_endorsement_key() {
    let tpm = SoftwareTpm::new();
    let keys = |random: u8| {
        let prover = tpm::Prover::new(tpm::Tpm::new(tpm.connect()), &[random; 32]).expect("keys");
        (*prover.endorsement_key().name(), *prover.attestation_key().name())
    };
    let (first, second) = (keys(1), keys(2));
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
}
