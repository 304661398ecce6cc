//! Each attack, with what names it.

use crate::scene::{Challenge, Exhibit, Known, LINE, booted, exhibit, judged, prover, ramdisk};
use software_tpm::{ACTION, APPLICATION, Boot, Measured, Ramdisk, SoftwareTpm};
use tpm::{Change, Digest, PCRS, QuoteError, Refusal, make_credential};

/// An honest boot, what it shows, and what is known after its enrolment.
fn enrolled() -> (SoftwareTpm, Boot, Exhibit, Known) {
    let boot = Boot::of(&ramdisk(), b"overlay");
    let tpm = booted(&boot);
    let shown = exhibit(&tpm, boot.log(), &Challenge::default());
    let mut known = Known::nothing_but(&ramdisk());
    let proof = judged(&shown, &Challenge::default(), &known).expect("an honest boot");
    assert_eq!(proof.changes, []);
    assert_eq!(proof.quote, Digest::of(&shown.quoted.quote));
    known.enrolled = Some((shown.endorsement_key.clone(), proof.measurements));
    (tpm, boot, shown, known)
}

/// What the controller says of this boot of the same machine.
fn refusal_of(boot: &Boot, known: &Known, mut tpm: SoftwareTpm) -> Refusal {
    tpm.cut_power();
    boot.measure(&tpm);
    judged(&exhibit(&tpm, boot.log(), &Challenge::default()), &Challenge::default(), known)
        .expect_err("an attack")
}

#[test]
fn an_honest_boot_is_proved_again_and_again_also_with_another_overlay_and_after_power_cuts() {
    let (mut tpm, _, first, known) = enrolled();
    let boot = Boot::of(&ramdisk(), b"another overlay");
    // More power cuts than failed tries until a TPM locks itself, each while the attestation key was in use.
    for _ in 0..40 {
        let mut held = prover(&tpm);
        held.quote(&PCRS, &Digest::ZERO).expect("quoted");
        tpm.cut_power();
        drop(held);
    }
    tpm.cut_power();
    boot.measure(&tpm);
    let challenge = Challenge { nonce: [3; 32], secret: [4; 32], ..Challenge::default() };
    let shown = exhibit(&tpm, boot.log(), &challenge);
    assert_eq!(shown.endorsement_key, first.endorsement_key);
    let proof = judged(&shown, &challenge, &known).expect("an honest boot");
    assert_eq!(proof.changes, []);
}

#[test]
fn a_quote_counts_only_for_its_challenge_its_boot_and_its_keys() {
    let (_tpm, _, shown, known) = enrolled();
    let of = Challenge::default;
    for challenge in [
        Challenge { nonce: [9; 32], ..of() },
        Challenge { tls: Digest::of(b"an impostor's"), ..of() },
        Challenge { boot_id: "another boot", ..of() },
    ] {
        assert_eq!(judged(&shown, &challenge, &known), Err(Refusal::OtherChallenge));
    }
}

#[test]
fn a_quote_of_before_does_not_answer_a_new_challenge() {
    let (tpm, boot, before, known) = enrolled();
    let challenge = Challenge { nonce: [5; 32], secret: [6; 32], ..Challenge::default() };
    let mut replayed = exhibit(&tpm, boot.log(), &challenge);
    replayed.quoted = before.quoted.clone();
    assert_eq!(judged(&replayed, &challenge, &known), Err(Refusal::OtherChallenge));
    // Everything of before: the credential is not answered either.
    assert_eq!(judged(&before, &challenge, &known), Err(Refusal::NotActivated));
}

#[test]
fn another_tpm_is_not_the_nodes() {
    let (_tpm, boot, shown, known) = enrolled();
    let other = booted(&boot);
    let forged = exhibit(&other, boot.log(), &Challenge::default());
    let refusal = judged(&forged, &Challenge::default(), &known).expect_err("another TPM");
    assert!(matches!(refusal, Refusal::OtherTpm { .. }), "{refusal}");
    // With the node's endorsement key it does not decrypt the credential.
    let mut borrowed = prover(&other);
    let credential =
        make_credential(&shown.endorsement_key, borrowed.attestation_key(), &[2; 32]).expect("encrypted");
    let refused = borrowed.activate(&credential.credential, &credential.secret).expect_err("another TPM");
    assert!(refused.to_string().contains("TPM2_ActivateCredential"), "{refused}");
}

#[test]
fn a_key_that_was_not_activated_is_named() {
    let (tpm, boot, honest, known) = enrolled();
    // A key of another TPM signs; the credential is decrypted with the node's own, for the node's own key.
    let mut forged = exhibit(&booted(&boot), boot.log(), &Challenge::default());
    forged.endorsement_key = honest.endorsement_key.clone();
    let credential =
        make_credential(&honest.endorsement_key, &forged.attestation_key, &[2; 32]).expect("encrypted");
    assert!(prover(&tpm).activate(&credential.credential, &credential.secret).is_err());
    for guess in [vec![], vec![0; 32], vec![2; 31], vec![2; 33]] {
        forged.activated = guess;
        assert_eq!(judged(&forged, &Challenge::default(), &known), Err(Refusal::NotActivated));
    }
}

#[test]
fn what_another_key_signed_or_what_was_changed_after_it_was_signed_is_no_quote() {
    let (tpm, boot, honest, known) = enrolled();
    let mut other = honest.clone();
    other.quoted = exhibit(&booted(&boot), boot.log(), &Challenge::default()).quoted;
    assert_eq!(judged(&other, &Challenge::default(), &known), Err(Refusal::Quote(QuoteError::NotSigned)));
    let mut changed = honest.clone();
    *changed.quoted.quote.last_mut().expect("bytes") ^= 1;
    assert_eq!(judged(&changed, &Challenge::default(), &known), Err(Refusal::Quote(QuoteError::NotSigned)));
    let mut shown = honest.clone();
    shown.quoted.pcrs.0.insert(0, Digest::of(b"as recorded"));
    assert_eq!(judged(&shown, &Challenge::default(), &known), Err(Refusal::PcrValues));
    let mut fewer = honest;
    fewer.quoted = prover(&tpm).quote(&[0, 4], &Challenge::default().binding()).expect("quoted");
    assert_eq!(judged(&fewer, &Challenge::default(), &known), Err(Refusal::OtherPcrs(vec![0, 4])));
}

#[test]
fn a_changed_command_line_is_named_also_when_the_right_one_is_measured_later() {
    let (tpm, honest, _, known) = enrolled();
    let changed = Digest::of(b"init=/bin/sh");
    let mut boot = honest.clone();
    let at = boot.events.iter().position(|event| event.pcr == 9).expect("measured");
    let right = std::mem::replace(&mut boot.events[at].digest, changed);
    let mut later = boot.events[at].clone();
    later.digest = right;
    boot.events.push(later);
    let refusal = refusal_of(&boot, &known, tpm);
    assert_eq!(refusal, Refusal::CommandLine { measured: changed, predicted: right });
}

#[test]
fn a_changed_byte_of_the_ramdisk_is_named() {
    let (tpm, _, _, known) = enrolled();
    let other = Ramdisk::new(LINE, b"an Initramfs");
    let refusal = refusal_of(&Boot::of(&other, b""), &known, tpm);
    assert!(matches!(refusal, Refusal::Program { .. }), "{refusal}");
}

#[test]
fn parts_that_were_changed_behind_the_firmware_are_named() {
    let (tpm, honest, _, known) = enrolled();
    let mut boot = honest;
    boot.events.iter_mut().filter(|event| event.pcr == 11).last().expect("measured").digest =
        Digest::of(b"other");
    let refusal = refusal_of(&boot, &known, tpm);
    assert!(matches!(refusal, Refusal::Parts { .. }), "{refusal}");
}

#[test]
fn a_log_that_does_not_give_the_quoted_pcrs_is_named() {
    let (_tpm, boot, honest, known) = enrolled();
    for pcr in [4, 9] {
        let mut forged = boot.clone();
        let at = forged.events.iter().rposition(|event| event.pcr == pcr).expect("measured");
        forged.events.remove(at);
        let shown = Exhibit { log: forged.log(), ..honest.clone() };
        let refusal = judged(&shown, &Challenge::default(), &known).expect_err("a forged log");
        assert!(matches!(refusal, Refusal::Replay { pcr: which, .. } if which == pcr), "{refusal}");
    }
    let cut = Exhibit { log: boot.log()[..200].to_vec(), ..honest };
    assert!(matches!(judged(&cut, &Challenge::default(), &known), Err(Refusal::Log(_))));
}

#[test]
fn a_boot_of_the_disk_proves_nothing_whatever_it_measures_afterwards() {
    let (tpm, honest, _, known) = enrolled();
    let loader = Digest::of(b"a tenant's boot loader");
    let mut boot = honest.clone();
    let program = known.program.programs[0];
    boot.events.iter_mut().find(|event| event.digest == program).expect("started").digest = loader;
    let refusal = refusal_of(&boot, &known, tpm);
    assert!(matches!(&refusal, Refusal::Program { started, .. } if started.contains(&loader)), "{refusal}");
}

#[test]
fn a_loader_before_the_ramdisk_is_a_change_whatever_the_log_calls_it() {
    let (mut tpm, honest, _, known) = enrolled();
    let bytes = b"MZ\0\0 the bytes of a loader";
    for kind in [APPLICATION, ACTION] {
        let mut boot = honest.clone();
        boot.events.insert(4, Measured::data(4, kind, bytes));
        tpm.cut_power();
        boot.measure(&tpm);
        let shown = exhibit(&tpm, boot.log(), &Challenge::default());
        let proof = judged(&shown, &Challenge::default(), &known).expect("the ramdisk was started");
        assert_eq!(proof.changes, [Change::Program { digest: Digest::of(bytes) }]);
        // A machine that is not enrolled, too.
        let unknown = Known { enrolled: None, ..known.clone() };
        let proof = judged(&shown, &Challenge::default(), &unknown).expect("the ramdisk was started");
        assert_eq!(proof.changes, [Change::Program { digest: Digest::of(bytes) }]);
        // Once accepted, it is none.
        let accepted =
            Known { enrolled: Some((shown.endorsement_key.clone(), proof.measurements)), ..known.clone() };
        let proof = judged(&shown, &Challenge::default(), &accepted).expect("the ramdisk was started");
        assert_eq!(proof.changes, []);
    }
}

#[test]
fn changed_firmware_is_a_change_with_both_values() {
    let (mut tpm, honest, before, known) = enrolled();
    let mut boot = honest;
    boot.events[0] = Measured::data(0, 8, b"firmware 2");
    tpm.cut_power();
    boot.measure(&tpm);
    let shown = exhibit(&tpm, boot.log(), &Challenge::default());
    let proof = judged(&shown, &Challenge::default(), &known).expect("the ramdisk was started");
    let (was, is) = (before.quoted.pcrs.value(0), shown.quoted.pcrs.value(0));
    assert_eq!(proof.changes, [Change::Pcr { pcr: 0, was: Some(was), is }]);
    assert_eq!(proof.changes[0].to_string(), format!("PCR 0 (firmware) is {is}, was {was}"));
}

#[test]
fn nothing_measured_is_no_boot_of_the_ramdisk() {
    let (tpm, _, _, known) = enrolled();
    assert_eq!(refusal_of(&Boot { events: Vec::new() }, &known, tpm), Refusal::NotMeasured);
}

#[test]
fn a_certificate_of_another_key_is_refused() {
    let (_tpm, _, mut shown, known) = enrolled();
    shown.certificate = Some(b"no certificate".to_vec());
    assert_eq!(judged(&shown, &Challenge::default(), &known), Err(Refusal::Certificate));
}
