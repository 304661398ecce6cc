//! What the record of a deployment must show, and what the certificates before it say of its disk.

mod common;

use agent_protocol::deployment::WrittenDisk;
use agent_protocol::record::{EraseReport, RequiredVerification};
use certificate::{Certificate, DiskBefore, Evidence, Expected, Finding, Refused, Wanted, judge};
use certificate::{LogEntry, erased_by, verify, verify_chains};
use common::{NODE, boot_entries, certificate, deployment, evidence, key, other_key};
use serde_json::{Value, json};

/// The file of a certificate of this evidence.
fn file(evidence: Evidence) -> String {
    certificate(evidence).sign(key()).write()
}

fn refused(text: &str, wanted: &Wanted) -> &'static str {
    verify(text, &key().public(), wanted).expect_err("it is refused").name()
}

/// The evidence with one field of the disk changed.
fn changed(pointer: &str, value: Value) -> Evidence {
    let mut disk = serde_json::to_value(deployment().deployed).unwrap();
    *disk.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    Evidence { deployed: Some(serde_json::from_value(disk).unwrap()), ..deployment() }
}

#[test]
fn a_deployment_is_verified_by_its_disk_and_its_image() {
    let good = file(deployment());
    let digest = "C".repeat(64);
    for disk in ["S1", "0x5000c500a1b2c3d4"] {
        let wanted = Wanted { disk: Some(disk), image: Some(&digest), ..Wanted::default() };
        let verified = verify(&good, &key().public(), &wanted).unwrap();
        assert_eq!((verified.certificate.finding, verified.evidence), (Finding::Deployed, deployment()));
    }
    let other = "e".repeat(64);
    for (disk, image, name) in [
        (Some("S2"), Some(digest.as_str()), "another-disk"),
        (Some("S1"), Some(other.as_str()), "another-image"),
        (None, Some(other.as_str()), "another-image"),
        (None, Some(""), "another-image"),
        // The question whether the disk was erased is another one.
        (Some("S1"), None, "not-erased"),
        (Some("S2"), None, "another-disk"),
    ] {
        assert_eq!(refused(&good, &Wanted { disk, image, ..Wanted::default() }), name, "{disk:?} {image:?}");
    }
    let wanted = Wanted { disk: Some("S1"), image: Some(&digest), ..Wanted::default() };
    for none in [evidence(), boot_entries(), Evidence { succeeded: false, ..deployment() }] {
        assert_eq!(refused(&file(none), &wanted), "another-image", "no image was written");
    }
    // The digest of a compressed image is not that of its content; both are its.
    let packed = changed("/record/compression", json!("zstd"));
    let mut packed = packed.deployed.unwrap();
    packed.record.download_digest = "a".repeat(64);
    let packed = file(Evidence { deployed: Some(packed), ..deployment() });
    for image in ["a".repeat(64), "c".repeat(64)] {
        verify(&packed, &key().public(), &Wanted { image: Some(&image), ..Wanted::default() }).unwrap();
    }
}

#[test]
fn a_record_that_was_changed_is_refused() {
    let good = certificate(deployment()).sign(key());
    let mut tampered = good.clone();
    tampered.payload = tampered.payload.replace("cloud.raw", "other.raw");
    assert_eq!(refused(&tampered.write(), &Wanted::default()), "tampered");
    // By a thief of the controller's key.
    let mut forged = certificate(deployment());
    forged.evidence = changed("/serial", json!("S2")).sign(other_key());
    assert_eq!(refused(&forged.sign(key()).write(), &Wanted::default()), "evidence-wrong-key");
}

#[test]
fn a_record_shows_that_the_disk_returned_the_image() {
    let of = |evidence: Evidence| refused(&file(evidence), &Wanted::default());
    for (pointer, value) in [
        ("/size", json!(15)),
        ("/record/size", json!(0)),
        ("/record/size", json!(17)),
        ("/record/downloaded", json!(17)),
        ("/record/read_back", json!(15)),
        ("/record/read_back_sum", json!("6".repeat(64))),
        ("/record/written_sum", json!("6".repeat(64))),
        ("/record/read_back_sha256", json!("e".repeat(64))),
        ("/record/download_digest", json!("e".repeat(64))),
        ("/record/download_digest", json!("C".repeat(64))),
        ("/record/download_digest", json!("c".repeat(63))),
        ("/record/algorithm", json!("md5")),
        ("/record/algorithm", json!("sha512")),
        ("/record/edits/0/offset", json!(57)),
        ("/record/edits/0/length", json!(u64::MAX)),
        ("/record/source", json!("https://me:word@images/cloud.raw?******")),
        ("/record/source", json!("https://images/cloud.raw?token=x")),
        ("/record/source", json!("cloud.raw")),
    ] {
        assert_eq!(of(changed(pointer, value.clone())), "not-written", "{pointer} {value}");
    }
    // Of an image that is compressed the size of the file says nothing.
    let mut packed = changed("/record/compression", json!("xz")).deployed.unwrap();
    packed.record.downloaded = 3;
    packed.record.download_digest = "a".repeat(64);
    let packed = Evidence { deployed: Some(packed), ..deployment() };
    verify(&file(packed), &key().public(), &Wanted::default()).unwrap();
    // One step does one thing.
    assert_eq!(of(Evidence { disks: evidence().disks, ..deployment() }), "another-result");
    let both = Evidence { boot_entries: boot_entries().boot_entries, ..deployment() };
    assert_eq!(of(both), "another-result");
}

#[test]
fn the_finding_of_a_deployment_is_no_finding_of_an_erase() {
    assert_eq!(Finding::of(&deployment()), Finding::Deployed);
    assert_eq!(Finding::of(&boot_entries()), Finding::BootEntriesMade);
    assert_eq!(Finding::of(&Evidence { succeeded: false, ..deployment() }), Finding::Failed);
    let said = Certificate { finding: Finding::NothingErased, ..certificate(deployment()) };
    assert_eq!(refused(&said.sign(key()).write(), &Wanted::default()), "contradiction");
    let silent = Certificate { disk_before: None, ..certificate(deployment()) };
    assert_eq!(refused(&silent.sign(key()).write(), &Wanted::default()), "unreadable");
    let erase = Certificate { disk_before: Some(DiskBefore::default()), ..certificate(evidence()) };
    assert_eq!(refused(&erase.sign(key()).write(), &Wanted::default()), "unreadable");
}

#[test]
fn a_controller_takes_the_record_of_the_result_and_no_other() {
    let (written, entries) = (deployment(), boot_entries());
    let report = EraseReport::default();
    let of = |evidence: &Evidence, deployed: Option<&WrittenDisk>, boots: bool| {
        let expected = Expected {
            node: NODE,
            command_id: "run-0-0-0",
            boot_id: "boot",
            step: evidence.step.clone(),
            succeeded: true,
            report: &report,
            deployed,
            boot_entries: entries.boot_entries.as_ref().filter(|_| boots),
            required: RequiredVerification::Device,
        };
        judge(&evidence.sign(key()), &key().public(), &expected).map_err(|refused| refused.name())
    };
    let disk = written.deployed.as_ref();
    assert_eq!(of(&written, disk, false).unwrap(), written);
    assert_eq!(of(&entries, None, true).unwrap(), entries);
    let other = changed("/serial", json!("S2")).deployed;
    for (evidence, deployed, boots) in [
        (&written, None, false),
        (&written, other.as_ref(), false),
        (&written, disk, true),
        (&entries, None, false),
        (&entries, disk, true),
    ] {
        assert_eq!(of(evidence, deployed, boots), Err("another-result"));
    }
}

#[test]
fn the_last_erase_of_the_disk_is_named_unless_it_was_deployed_since() {
    let erase = |serial: &str, wwn: Option<&str>| {
        let mut evidence = evidence();
        evidence.disks[0].serial = Some(serial.to_owned());
        evidence.disks[0].wwn = wwn.map(str::to_owned);
        evidence
    };
    let (mine, other) = (erase("S1", None), erase("S9", Some("0x1")));
    let twin = erase("S1", Some("0x5000c500ffffffff"));
    let (written, entries) = (deployment(), boot_entries());
    let elsewhere = Evidence { deployed: changed("/serial", json!("S7")).deployed, ..deployment() };
    let mut left = mine.clone();
    left.disks.remove(0);
    let disk = written.deployed.as_ref().unwrap();
    // Newest first.
    for (earlier, expected) in [
        (vec![], None),
        (vec![("a", &mine)], Some("a")),
        (vec![("b", &other), ("a", &mine)], Some("a")),
        (vec![("b", &left), ("a", &mine)], Some("a")),
        (vec![("b", &entries), ("a", &mine)], Some("a")),
        (vec![("b", &elsewhere), ("a", &mine)], Some("a")),
        (vec![("b", &mine), ("a", &mine)], Some("b")),
        (vec![("b", &written), ("a", &mine)], None),
        (vec![("a", &twin)], None),
    ] {
        let names: Vec<&str> = earlier.iter().map(|(id, _)| *id).collect();
        assert_eq!(erased_by(earlier.iter().copied(), disk), expected, "{names:?}");
    }
}

/// The certificates of a node with this evidence, each naming what the function gives as the erase of its disk.
fn chain(steps: &[Evidence], named: impl Fn(&[String]) -> Option<String>) -> Result<u64, Refused> {
    let (mut files, mut ids, mut lines) = (Vec::new(), Vec::<String>::new(), Vec::<String>::new());
    for (number, step) in (1..).zip(steps) {
        let mut next = Certificate { number, previous: ids.last().cloned(), ..certificate(step.clone()) };
        next.disk_before = step.deployed.as_ref().map(|_| DiskBefore { erased_by: named(&ids) });
        let signed = next.sign(key());
        ids.push(signed.digest());
        files.push((format!("{number}"), signed.write()));
        let last = lines.last().map(String::as_str);
        lines.push(LogEntry::line_after(last, NODE, number, &signed.digest()).unwrap());
    }
    let log = certificate::Log::read(lines.iter().map(String::as_str)).unwrap();
    let files = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let chains = verify_chains(files, &[key().public()], &log, None).map_err(|(_, refused)| refused)?;
    Ok(chains[0].certificates)
}

#[test]
fn a_chain_has_deployments_next_to_erases_and_each_names_the_last_erase_or_none() {
    let steps = [evidence(), evidence(), deployment(), boot_entries()];
    assert_eq!(chain(&steps, |ids| Some(ids[1].clone())).unwrap(), 4);
    assert_eq!(chain(&steps, |_| None).unwrap(), 4, "a deployment without a certificate was in between");
    let again = [evidence(), deployment(), deployment()];
    for (steps, named) in [(&steps[..], 0), (&again[..], 0)] {
        let refused = chain(steps, |ids| Some(ids[named].clone())).unwrap_err();
        assert_eq!(refused.name(), "broken-chain", "{refused}");
    }
    assert_eq!(chain(&steps, |_| Some("0".repeat(64))).unwrap_err().name(), "broken-chain");
}

/// Bytes as they were signed. Never edit one.
#[test]
fn evidence_is_read_and_written_as_before() {
    for bytes in [
        r#"{"version":1,"agent":{"version":"0.1.0","boot_id":"b","process_id":"p"},"machine":{"manufacturer":"A","product_name":"P","serial_number":"N"},"node":"n","command_id":"c","step":{"kind":"clean","interface":"deploy","step":"erase_devices"},"manager":{"name":"m","version":"1"},"succeeded":true,"disks":[{"device":"/dev/sr0","size":0,"outcome":"skipped","reason":"virtual media","bytes_erased":0}]}"#,
        r#"{"version":1,"agent":{"version":"0.1.0","boot_id":"b","process_id":"p"},"machine":{"manufacturer":"","product_name":"","serial_number":""},"node":"n","command_id":"c","step":{"kind":"deploy","interface":"deploy","step":"write_image"},"manager":{"name":"m","version":"1"},"succeeded":true,"disks":[],"deployed":{"device":"/dev/vda","size":64,"record":{"source":"http://10.0.0.1/i.raw","format":"raw","compression":"plain","downloaded":16,"algorithm":"sha256","download_digest":"d3","size":16,"written":16,"leaf":8,"written_sum":"5a","read_back":16,"read_back_sum":"5a","read_back_sha256":"d3","disk_id":"0x00000000","edits":[]}}}"#,
        r#"{"version":1,"agent":{"version":"0.1.0","boot_id":"b","process_id":"p"},"machine":{"manufacturer":"","product_name":"","serial_number":""},"node":"n","command_id":"c","step":{"kind":"deploy","interface":"image","step":"install_bootloader"},"manager":{"name":"anneal-agent","version":"1"},"succeeded":true,"disks":[],"boot_entries":{"device":"/dev/vda","entry":"Boot0001","label":"debian","loader":"x","added":true,"removed":[],"order":["0001"]}}"#,
    ] {
        let evidence: Evidence = serde_json::from_str(bytes).unwrap();
        assert_eq!(serde_json::to_string(&evidence).unwrap(), bytes);
    }
}

#[test]
fn each_evidence_is_named_by_what_was_done() {
    for (evidence, kind) in
        [(evidence(), "erasure"), (deployment(), "deployment"), (boot_entries(), "deployment")]
    {
        assert_eq!(evidence.kind(), kind);
    }
}
