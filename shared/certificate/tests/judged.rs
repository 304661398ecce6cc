//! What is believed and what is not: every wrong thing has its own name.

mod common;

use agent_protocol::record::{EraseReport, RequiredVerification};
use certificate::{
    Certificate, Document, Evidence, Expected, Finding, PowerOff, PublicKey, Refused, Signed, Wanted, judge,
    sign_evidence, verify,
};
use common::{NODE, certificate, evidence, key, other_key};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

fn refused(text: &str, wanted: &Wanted) -> &'static str {
    verify(text, &key().public(), wanted).expect_err("it is refused").name()
}

fn of(change: impl FnOnce(&mut Certificate)) -> String {
    let mut made = certificate(evidence());
    change(&mut made);
    made.sign(key()).write()
}

/// With other evidence, signed as it is to be.
fn with(change: impl FnOnce(&mut Evidence)) -> Certificate {
    let mut sample = evidence();
    change(&mut sample);
    certificate(sample)
}

#[test]
fn a_good_one_is_believed_with_the_public_key_alone() {
    let text = of(|_| ());
    let wanted = Wanted { node: Some(NODE), disk: Some("S1"), ..Wanted::default() };
    let verified = verify(&text, &key().public(), &wanted).unwrap();
    assert_eq!(verified.certificate.finding, Finding::ErasedWithExceptions);
    assert_eq!(verified.id, Signed::read(Document::Certificate, &text).unwrap().digest());
    assert_eq!(verified.evidence, evidence());
    verify(&text, &key().public(), &Wanted { disk: Some("0x5000c500a1b2c3d4"), ..wanted }).unwrap();
    // However the file is laid out.
    let pretty = format!("{:#}", serde_json::from_str::<Value>(&text).unwrap());
    verify(&pretty, &key().public(), &wanted).unwrap();
}

#[test]
fn a_process_that_alone_has_the_key_signs_as_the_key_does() {
    let signed = evidence().signed_by(&key().public(), |payload| Ok::<_, ()>(sign_evidence(payload, key())));
    assert_eq!(signed.unwrap().write(), evidence().sign(key()).write());
    assert_eq!(evidence().signed_by(&key().public(), |_| Err("gone")).unwrap_err(), "gone");
}

#[test]
fn every_wrong_thing_has_its_own_name() {
    let any = Wanted::default();
    let good = of(|_| ());
    assert_eq!(verify(&good, &other_key().public(), &any).unwrap_err().name(), "wrong-key");
    assert_eq!(refused(&good.replace("rack1-u2", "rack1-u3"), &any), "tampered");
    assert_eq!(refused(&good.replace(r#""key":"ed25519:"#, r#""key":"rsa:"#), &any), "wrong-key");
    assert_eq!(refused("{}", &any), "unreadable");
    assert_eq!(refused(&good.replacen('{', r#"{"note":"erased","#, 1), &any), "unreadable");
    assert_eq!(refused(&evidence().sign(key()).write(), &any), "tampered", "evidence is no certificate");
    assert_eq!(refused(&of(|made| made.version = 2), &any), "unknown-version");

    let node = Wanted { node: Some("11111111-1111-4111-8111-111111111111"), ..any };
    assert_eq!(refused(&good, &node), "another-node");
    assert_eq!(refused(&of(|made| made.node.uuid = "other".to_owned()), &any), "another-node");
    for (disk, name) in [("S9", "another-disk"), ("", "another-disk"), ("S2", "not-erased")] {
        assert_eq!(refused(&good, &Wanted { disk: Some(disk), ..any }), name, "{disk}");
    }

    // A claim without the proof of it, signed by everybody.
    let lies: [fn(&mut Evidence); 4] = [
        |sample| sample.disks[0].verification = None,
        |sample| sample.disks[0].verification.as_mut().unwrap().passed = false,
        |sample| sample.disks[0].verification.as_mut().unwrap().mismatched_bytes = 1,
        |sample| sample.disks[0].method = None,
    ];
    for lie in lies {
        assert_eq!(refused(&with(lie).sign(key()).write(), &any), "unverified");
    }
    assert_eq!(refused(&of(|made| made.finding = Finding::Erased), &any), "contradiction");

    // Evidence that the agent did not sign, put there by an attacker with the controller's key.
    let mut forged = evidence();
    forged.disks[1].serial = Some("S3".to_owned());
    assert_eq!(refused(&of(|made| made.evidence = forged.sign(other_key())), &any), "evidence-wrong-key");
    let changed = of(|made| made.evidence.payload = made.evidence.payload.replace("S2", "S3"));
    assert_eq!(refused(&changed, &any), "evidence-tampered");
    assert_eq!(refused(&of(|made| made.evidence.payload.clear()), &any), "evidence-tampered");
}

#[test]
fn the_chain_of_a_node_has_no_gap() {
    let first = of(|_| ());
    let id = Signed::read(Document::Certificate, &first).unwrap().digest();
    let second = |change: fn(&mut Certificate)| {
        of(|made| {
            (made.number, made.previous) = (2, Some(id.clone()));
            change(made);
        })
    };
    let after = Wanted { previous: Some(&first), ..Wanted::default() };
    verify(&second(|_| ()), &key().public(), &after).unwrap();
    for (broken, what) in [
        (first.clone(), "the first follows nothing"),
        (second(|made| made.number = 3), "a number is left out"),
        (second(|made| made.previous = Some("0".repeat(64))), "another one is named"),
    ] {
        assert_eq!(refused(&broken, &after), "broken-chain", "{what}");
    }
    for broken in [second(|made| made.previous = None), second(|made| made.number = 1)] {
        assert_eq!(refused(&broken, &Wanted::default()), "broken-chain");
    }
    let mut foreign = with(|sample| sample.node = "another".to_owned());
    foreign.node.uuid = "another".to_owned();
    (foreign.number, foreign.previous) = (2, Some(id.clone()));
    assert_eq!(refused(&foreign.sign(key()).write(), &after), "broken-chain");
    // The one before is held to the same.
    let forged = first.replace("rack1-u2", "rack1-u3");
    let error = verify(&second(|_| ()), &key().public(), &Wanted { previous: Some(&forged), ..after });
    assert_eq!(error.unwrap_err(), Refused::Tampered(Document::Previous));
}

#[test]
fn evidence_is_of_the_step_that_was_asked_for_and_says_what_its_result_says() {
    let sample = evidence();
    let report =
        EraseReport { disks: sample.disks.clone(), ignored_controllers: sample.ignored_controllers.clone() };
    let expected = Expected {
        node: NODE,
        command_id: "run-0-0-0",
        boot_id: "boot",
        step: sample.step.clone(),
        succeeded: true,
        report: &report,
        deployed: None,
        boot_entries: None,
        required: RequiredVerification::Device,
    };
    let signed = sample.sign(key());
    let name = |signed: &Signed, key: &PublicKey, expected: &Expected| {
        judge(signed, key, expected).expect_err("it is refused").name()
    };
    assert_eq!(judge(&signed, &key().public(), &expected).unwrap(), sample);
    assert_eq!(name(&signed, &other_key().public(), &expected), "evidence-wrong-key");
    let mut changed = signed.clone();
    changed.payload = changed.payload.replace("S1", "S9");
    assert_eq!(name(&changed, &key().public(), &expected), "evidence-tampered");
    let certificate = certificate(evidence()).sign(key());
    assert_eq!(name(&certificate, &key().public(), &expected), "evidence-tampered");

    let (mut fewer, mut step, mut ignoring) = (report.clone(), sample.step.clone(), report.clone());
    fewer.disks.pop();
    ignoring.ignored_controllers.pop();
    step.step = "erase_devices_metadata".to_owned();
    for (wrong, reason) in [
        (Expected { node: "other", ..expected.clone() }, "another-node"),
        (Expected { command_id: "run-0-0-1", ..expected.clone() }, "another-command"),
        (Expected { boot_id: "earlier", ..expected.clone() }, "another-command"),
        (Expected { step, ..expected.clone() }, "another-command"),
        (Expected { succeeded: false, ..expected.clone() }, "another-result"),
        (Expected { report: &fewer, ..expected.clone() }, "another-result"),
        (Expected { report: &ignoring, ..expected.clone() }, "another-result"),
    ] {
        assert_eq!(name(&signed, &key().public(), &wrong), reason, "{wrong:?}");
    }
    let mut lie = sample.clone();
    lie.disks[0].verification = None;
    let reported = EraseReport { disks: lie.disks.clone(), ..report.clone() };
    let wrong = Expected { report: &reported, ..expected };
    assert_eq!(name(&lie.sign(key()), &key().public(), &wrong), "unverified");
}

#[test]
fn the_finding_follows_from_the_records() {
    let finding = |change: fn(&mut Evidence)| with(change).finding.as_str();
    let one = |sample: &mut Evidence| sample.disks.truncate(1);
    assert_eq!(with(one).finding, Finding::ErasedWithExceptions, "a controller was ignored");
    assert_eq!(
        finding(|sample| {
            sample.disks.truncate(1);
            sample.ignored_controllers.clear();
        }),
        "erased"
    );
    assert_eq!(finding(|_| ()), "erased_with_exceptions");
    assert_eq!(finding(|sample| drop(sample.disks.remove(0))), "metadata_erased");
    assert_eq!(finding(|sample| sample.disks = sample.disks.split_off(2)), "nothing_erased");
    assert_eq!(finding(|sample| sample.disks.clear()), "nothing_erased");
    assert_eq!(finding(|sample| sample.succeeded = false), "failed");
    let failed = json!({"device": "/dev/sdd", "size": 1, "outcome": "failed", "bytes_erased": 0});
    let mut sample = evidence();
    sample.disks.push(serde_json::from_value(failed).unwrap());
    assert_eq!(Finding::of(&sample), Finding::Failed, "whatever the step says of itself");
}

proptest! {
    /// One bit of the file, anywhere: refused, or still the very same certificate (JSON has two spellings of some
    /// letters).
    #[test]
    fn any_flipped_bit_is_refused(place: Index, bit in 0..8_u32) {
        let good = of(|_| ());
        let mut bytes = good.clone().into_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        let text = String::from_utf8_lossy(&bytes);
        if verify(&text, &key().public(), &Wanted::default()).is_ok() {
            prop_assert_eq!(Signed::read(Document::Certificate, &text), Signed::read(Document::Certificate, &good));
        }
    }

    #[test]
    fn nothing_that_is_read_makes_it_panic(text in ".{0,200}", payload in ".{0,200}", signature in "[0-9a-fé]{0,130}") {
        let signed = Signed { payload, key: key().public().to_string(), signature };
        for text in [text, signed.write()] {
            prop_assert!(verify(&text, &key().public(), &Wanted::default()).is_err());
        }
    }
}

/// Certificates of earlier versions do not say how boots began: that is never read as an observed power-off.
#[test]
fn what_a_certificate_does_not_say_of_the_power_is_not_stated() {
    let mut certificate = with(|_| {});
    for (said, words) in [
        (Some(PowerOff::Observed), "power-off observed"),
        (Some(PowerOff::NotObserved), "power-off not observed"),
        (None, "not stated"),
    ] {
        certificate.run.power_off = said;
        let file = certificate.sign(key()).write();
        let read = verify(&file, &key().public(), &Wanted::default()).unwrap().certificate;
        assert_eq!((read.run.power_off, PowerOff::in_words(read.run.power_off)), (said, words));
        assert_eq!(file.contains("power_off"), said.is_some(), "{file}");
    }
}
