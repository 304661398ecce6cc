//! What the record of a disk must show before the disk counts as erased.

mod common;

use agent_protocol::record::{DiskRecord, EraseReport, Outcome, RequiredVerification};
use block::{ExpectedContent, Method};
use certificate::{Evidence, Expected, Finding, Refused, judge};
use common::{NODE, evidence, key};
use serde_json::{Value, json};

const SIZE: u64 = 1 << 40;

/// The record of a disk that `method` erased, read back as far as its promise allows.
fn erased(method: Method, rotational: bool) -> Value {
    let sampled = method.expected_content() == ExpectedContent::Changed;
    let (kind, bytes_read) = if sampled { ("sampled", 512) } else { ("full", SIZE) };
    json!({
        "device": "/dev/sdb", "serial": "S7", "size": SIZE, "outcome": "erased", "method": method.as_str(),
        "level": method.level(rotational).as_str(), "bytes_erased": SIZE,
        "verification": {"kind": kind, "bytes_read": bytes_read, "expected": method.expected_content().as_str(),
            "mismatched_bytes": 0, "unchanged_samples": 0, "samples": 1, "passed": true},
    })
}

fn metadata_erased() -> Value {
    json!({
        "device": "/dev/sdb", "serial": "S7", "size": SIZE, "outcome": "metadata_erased", "method": "erase-metadata",
        "bytes_erased": 4096,
        "verification": {"kind": "signatures", "bytes_read": 4096, "expected": "zeroes", "mismatched_bytes": 0,
            "unchanged_samples": 0, "samples": 0, "passed": true},
    })
}

/// What the controller says of evidence with a good disk and then this one.
fn judged(disk: &Value) -> Result<Evidence, Refused> {
    required(disk, RequiredVerification::None)
}

/// The same of a controller with this policy.
fn required(disk: &Value, required: RequiredVerification) -> Result<Evidence, Refused> {
    let mut sample = evidence();
    sample.disks.truncate(1);
    sample.disks.push(serde_json::from_value(disk.clone()).unwrap());
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
        required,
    };
    judge(&sample.sign(key()), &key().public(), &expected)
}

/// The name of the refusal, whose text names the disk.
fn refused(good: &Value, pointer: &str, value: Value) -> &'static str {
    judged(good).unwrap();
    let mut changed = good.clone();
    *changed.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    let refused = judged(&changed).expect_err(pointer);
    assert!(refused.to_string().contains("/dev/sdb (serial S7)"), "{refused}");
    refused.name()
}

#[test]
fn every_method_of_the_agent_is_believed_with_its_own_level_alone() {
    for method in Method::ALL {
        let levels = [false, true].map(|rotational| method.level(rotational).as_str());
        for rotational in [false, true] {
            let good = erased(method, rotational);
            judged(&good).unwrap();
            for level in [json!("clear"), json!("purge"), json!("destroy"), Value::Null] {
                if !levels.iter().any(|known| level == *known) {
                    assert_eq!(refused(&good, "/level", level), "wrong-level", "{method:?}");
                }
            }
        }
    }
    let good = erased(Method::Overwrite, false);
    for word in ["shred", "erase-metadata", ""] {
        assert_eq!(refused(&good, "/method", json!(word)), "unknown-method", "{word}");
    }
}

#[test]
fn what_was_not_erased_from_end_to_end_is_not_erased() {
    for method in [Method::Overwrite, Method::AtaErase, Method::NvmeFormatCrypto] {
        let good = erased(method, false);
        for bytes in [0, SIZE - 1, SIZE + 1] {
            assert_eq!(refused(&good, "/bytes_erased", json!(bytes)), "wrong-extent", "{method:?} {bytes}");
        }
    }
    let mut empty = erased(Method::Overwrite, false);
    for pointer in ["/size", "/bytes_erased", "/verification/bytes_read"] {
        *empty.pointer_mut(pointer).unwrap() = json!(0);
    }
    assert_eq!(judged(&empty).unwrap_err().name(), "wrong-extent", "a disk without bytes");
}

#[test]
fn what_was_not_read_back_is_not_verified() {
    let (full, sampled) = (erased(Method::Overwrite, false), erased(Method::NvmeFormatCrypto, false));
    for bytes in [0, SIZE - 1, SIZE + 1] {
        assert_eq!(refused(&full, "/verification/bytes_read", json!(bytes)), "not-read-back", "{bytes}");
    }
    assert_eq!(refused(&sampled, "/verification/samples", json!(0)), "not-read-back");
    assert_eq!(
        refused(&full, "/verification/kind", json!("sampled")),
        "not-read-back",
        "zeroes were promised"
    );
    assert_eq!(refused(&full, "/verification/expected", json!("changed")), "not-read-back");
    // A claim that is whole in itself, for a method that promises zeroes.
    let mut samples = full.clone();
    samples["verification"] = sampled["verification"].clone();
    assert_eq!(judged(&samples).unwrap_err().name(), "not-read-back");
    assert_eq!(refused(&sampled, "/verification/expected", json!("zeroes")), "not-read-back");
    for kind in ["signatures", "looked"] {
        assert_eq!(refused(&full, "/verification/kind", json!(kind)), "not-read-back", "{kind}");
    }
    for (pointer, value) in
        [("unchanged_samples", json!(1)), ("mismatched_bytes", json!(1)), ("passed", json!(false))]
    {
        let pointer = format!("/verification/{pointer}");
        assert_eq!(refused(&full, &pointer, value.clone()), "unverified");
        assert_eq!(refused(&sampled, &pointer, value), "unverified");
    }
    // A method that promises no content is believed without samples where all of the disk reads as zeroes.
    let mut zeroes = sampled;
    zeroes["verification"] = full["verification"].clone();
    zeroes["verification"]["samples"] = json!(0);
    judged(&zeroes).unwrap();
}

/// The record of a disk of which nothing could be compared.
fn unseen(method: Method, kind: &str, passed: bool) -> Value {
    let mut record = erased(method, false);
    let seen = &mut record["verification"];
    (seen["kind"], seen["samples"], seen["passed"]) = (json!(kind), json!(0), json!(passed));
    if kind == "device-attested" {
        seen["device_status"] = json!("completed");
    }
    record
}

#[test]
fn markers_count_as_samples_do_until_one_is_found() {
    let mut good = erased(Method::NvmeFormat, false);
    (good["verification"]["samples"], good["verification"]["markers"]) = (json!(0), json!(256));
    good["verification"]["markers_found"] = json!(0);
    assert_eq!(refused(&good, "/verification/markers_found", json!(1)), "unverified");
    assert_eq!(refused(&good, "/verification/markers", json!(0)), "not-read-back");
}

#[test]
fn a_drive_attests_what_its_log_reports_and_no_more() {
    for method in Method::ALL {
        let attested = judged(&unseen(method, "device-attested", true));
        let changed = method.expected_content() == ExpectedContent::Changed;
        assert_eq!(attested.is_ok(), changed && method.device_status().is_some(), "{method:?}");
        assert_eq!(judged(&unseen(method, "none", false)).is_ok(), changed, "{method:?}");
    }
    let good = unseen(Method::OpalRevert, "device-attested", true);
    assert_eq!(refused(&good, "/verification/device_status", Value::Null), "not-read-back");
    assert_eq!(refused(&good, "/verification/passed", json!(false)), "unverified");
    assert_eq!(refused(&good, "/verification/unchanged_samples", json!(1)), "unverified");
    // Nothing that was not looked at is called verified, nor does it make a disk one that was erased without exception.
    let unverified = unseen(Method::OpalRevert, "none", false);
    assert_eq!(refused(&unverified, "/verification/passed", json!(true)), "unverified");
    let finding = |disk: &Value| {
        let mut evidence = judged(disk).unwrap();
        evidence.ignored_controllers.clear();
        Finding::of(&evidence)
    };
    assert_eq!(finding(&good), Finding::Erased);
    assert_eq!(finding(&unverified), Finding::ErasedWithExceptions);
}

#[test]
fn a_controller_believes_no_less_than_it_requires() {
    use RequiredVerification::{Device, None, Read};
    let read = erased(Method::OpalRevert, false);
    let attested = unseen(Method::OpalRevert, "device-attested", true);
    let unverified = unseen(Method::OpalRevert, "none", false);
    for (record, believed) in
        [(&read, [true; 3]), (&attested, [true, true, false]), (&unverified, [true, false, false])]
    {
        let judged = [None, Device, Read].map(|policy| required(record, policy).is_ok());
        assert_eq!(judged, believed, "{record}");
    }
    let refused = required(&attested, Read).unwrap_err();
    assert_eq!(refused.name(), "not-read-back");
    assert!(refused.to_string().ends_with("require_verification is read"), "{refused}");
}

#[test]
fn the_erase_of_metadata_is_judged_by_its_own_level() {
    let good = metadata_erased();
    for (pointer, value, name) in [
        ("/method", json!("overwrite-zeroes"), "unknown-method"),
        ("/bytes_erased", json!(0), "wrong-extent"),
        ("/verification/bytes_read", json!(0), "not-read-back"),
        ("/verification/kind", json!("full"), "not-read-back"),
        ("/verification/unchanged_samples", json!(1), "unverified"),
        ("/outcome", json!("erased"), "unknown-method"),
    ] {
        assert_eq!(refused(&good, pointer, value), name, "{pointer}");
    }
    let mut better = good;
    better["level"] = json!("clear");
    assert_eq!(judged(&better).unwrap_err().name(), "wrong-level");
}

#[test]
fn a_disk_that_was_not_erased_claims_nothing() {
    for outcome in [Outcome::Skipped, Outcome::Failed] {
        let record = json!({"device": "/dev/sdb", "size": 8, "outcome": outcome, "reason": "why", "bytes_erased": 3,
                            "method": "unheard-of"});
        serde_json::from_value::<DiskRecord>(record.clone()).unwrap();
        judged(&record).unwrap();
    }
}
