//! Certificates from the command line: what an auditor learns from a file, and what is rejected.

use crate::common;
use crate::example;

use certificate::{LogEntry, Signed, SignedKeyChange};
use common::{anneal, serve};
use example::{NODE, boot_entries, certificate, deployment, evidence, key, other_key};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Exit code, standard output and standard error of a command that reaches no controller.
fn offline(dir: &Path, line: &str) -> (i32, String, String) {
    let path = dir.to_str().unwrap();
    let line = line.replace("DIR", path).replace("OTHER", &other_key().public().to_string());
    let arguments: Vec<_> = line.split(' ').collect();
    let output = anneal("http://127.0.0.1:9", &arguments, "");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The first and the second certificate of a node whose machine has a nasty name.
fn two() -> (Signed, Signed) {
    let mut report = evidence();
    report.machine.product_name = "<script>alert(1)</script>\u{1b}[2J".to_owned();
    report.disks[0].model = Some("\"><img src=x onerror='x'>".to_owned());
    let first = certificate(report.clone()).sign(key());
    let mut second = certificate(report);
    (second.number, second.previous) = (2, Some(first.digest()));
    (first, second.sign(key()))
}

#[test]
fn a_file_is_judged_with_a_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = two();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    put("first", &first.write());
    put("second", &second.write());
    put("key", &format!("{}\n", key().public()));
    put("tampered", &first.write().replace("rack1-u2", "rack1-u3"));
    let good =
        format!("certificate verify DIR/second --key DIR/key --node {NODE} --serial S1 --previous DIR/first");
    let (code, out, err) = offline(dir.path(), &good);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in ["erased_with_exceptions", &first.digest(), "S1", "overwrite-zeroes", "virtual media"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains('\u{1b}'), "{out}");
    let (_, out, _) = offline(dir.path(), &format!("--json {good}"));
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&out["certificate"]["number"], &out["id"]), (&json!(2), &json!(second.digest())));

    for (line, name) in [
        ("DIR/tampered --key DIR/key", "tampered"),
        ("DIR/first --key OTHER", "wrong-key"),
        ("DIR/first --key DIR/key --serial S9", "another-disk"),
        ("DIR/first --key DIR/key --serial S2", "not-erased"),
        ("DIR/first --key DIR/key --node 11111111-1111-4111-8111-111111111111", "another-node"),
        ("DIR/first --key DIR/key --previous DIR/second", "broken-chain"),
        ("DIR/key --key DIR/key", "unreadable"),
    ] {
        let (code, out, err) = offline(dir.path(), &format!("certificate verify {line}"));
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert!(err.contains(&format!("refused ({name})")), "{line}: {err}");
    }
}

#[test]
fn a_deployment_is_held_against_the_disk_and_the_image_that_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let made = certificate(deployment()).sign(key());
    put("made", &made.write());
    put("changed", &made.write().replace("cloud.raw", "other.raw"));
    put("erase", &certificate(evidence()).sign(key()).write());
    put("boots", &certificate(boot_entries()).sign(key()).write());
    put("key", &key().public().to_string());
    let (image, other) = ("c".repeat(64), "e".repeat(64));
    let verify = format!("certificate verify DIR/made --key DIR/key --serial S1 --image {image}");
    let (code, out, err) = offline(dir.path(), &verify);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in ["deployed", "cloud.raw?******", "serial S1", "not erased since", "configdrive", &image] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (_, out, _) = offline(dir.path(), "certificate verify DIR/boots --key DIR/key");
    assert!(out.contains("Boot0001 \"debian\" starts") && out.contains("0001, 0000"), "{out}");
    for (line, name) in [
        (format!("DIR/made --serial S2 --image {image}"), "another-disk"),
        (format!("DIR/made --serial S1 --image {other}"), "another-image"),
        ("DIR/made --serial S1".to_owned(), "not-erased"),
        (format!("DIR/changed --serial S1 --image {image}"), "tampered"),
        (format!("DIR/erase --serial S1 --image {image}"), "another-image"),
    ] {
        let (code, out, err) = offline(dir.path(), &format!("certificate verify {line} --key DIR/key"));
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert!(err.contains(&format!("refused ({name})")), "{line}: {err}");
    }
}

#[test]
fn what_a_controller_sends_is_judged_before_it_is_shown_or_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = two();
    let (one, other) = (first.digest(), second.digest());
    let (file, key) = (serde_json::to_value(&first).unwrap(), key().public().to_string());
    let list = json!({"certificates": [{"id": one, "number": 1, "finding": "erased_with_exceptions",
                                        "issued_at": "2026-11-21T08:00:00+00:00"}]});
    let server = serve(move |_, seen| match seen.line.split(' ').nth(1).unwrap() {
        "/v1/anneal/certificate_key" => (200, json!({"key": key, "changes": []})),
        line if line.starts_with("/v1/anneal/certificates?") => (200, list.clone()),
        // Asked for another one, it sends the same.
        _ => (200, file.clone()),
    });
    let (code, out, err) = server.run(&["certificate", "list", "n1"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(&one) && out.contains("erased_with_exceptions"), "{out}");
    assert!(
        server.lines().contains(&"GET /v1/anneal/certificates?node=n1".to_owned()),
        "{:?}",
        server.lines()
    );
    let (code, out, err) = server.run(&["certificate", "show", &one]);
    assert!(code == 0 && out.contains("S1"), "{out} {err}");
    let (code, out, err) = server.run(&["certificate", "show", &other]);
    assert!(code == 2 && out.is_empty() && err.contains(&one), "{out} {err}");

    let path = dir.path().join("kept");
    let kept = path.to_str().unwrap();
    assert_eq!(server.run(&["certificate", "export", &one, kept]).0, 0);
    let (code, ..) =
        offline(dir.path(), &format!("certificate verify {kept} --key {}", example::key().public()));
    assert_eq!(code, 0);
    assert_eq!(server.run(&["certificate", "export", &one, kept, "--html"]).0, 2, "nothing is overwritten");
    let page = dir.path().join("page");
    assert_eq!(server.run(&["certificate", "export", &one, page.to_str().unwrap(), "--html"]).0, 0);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("&lt;script&gt;alert(1)"), "{page}");
    for alive in ["<script", "<img", "http://", "https://", "\u{1b}"] {
        assert!(!page.contains(alive), "{alive}: {page}");
    }
    // What is signed can be taken from the page.
    let text = page.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap().0;
    let plain = text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'");
    assert_eq!(serde_json::from_str::<Signed>(&plain.replace("&amp;", "&")).unwrap(), first);
}

/// The lines of a log in which these certificates became heads of the chain of the node.
fn lines(heads: &[&Signed]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (number, head) in (1..).zip(heads) {
        let last = lines.last().map(String::as_str);
        lines.push(LogEntry::line_after(last, NODE, number, &head.digest()).unwrap());
    }
    lines
}

/// OpenSSL in a directory.
fn openssl(dir: &Path, args: &str) {
    let done = Command::new("openssl").args(args.split(' ')).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_cut_and_a_forked_chain_are_found_with_the_log_and_a_time_stamp_holds_it() {
    let kept = tempfile::tempdir().unwrap();
    let dir = kept.path();
    let (first, second) = two();
    std::fs::create_dir(dir.join("chain")).unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    put("key", &key().public().to_string());
    put("chain/1", &first.write());
    put("chain/2", &second.write());
    let served = Arc::new(Mutex::new(lines(&[&first])));
    let log = served.clone();
    let server = serve(move |_, seen| {
        let from = seen.line.rsplit('=').next().unwrap().parse::<usize>().unwrap();
        let lines = log.lock().unwrap();
        (200, json!({"lines": lines.iter().skip(from - 1).take(1).collect::<Vec<_>>()}))
    });
    let head = dir.join("log");
    let export = || server.run(&["certificate", "log", "export", head.to_str().unwrap()]);
    let (code, out, err) = export();
    assert!(code == 0 && out.starts_with("1 lines, 1 of them new"), "{out} {err}");
    let verify = "certificate verify --chain DIR/chain --head DIR/log --key DIR/key";
    let (code, out, err) = offline(dir, verify);
    assert!(code == 0 && out.contains(&second.digest()), "newer than the log: {out} {err}");
    *served.lock().unwrap() = lines(&[&first, &second]);
    let (code, out, err) = export();
    assert!(code == 0 && out.starts_with("2 lines, 1 of them new"), "{out} {err}");
    assert_eq!(export().0, 0, "nothing is new");
    assert_eq!(std::fs::read_to_string(&head).unwrap(), lines(&[&first, &second]).join("\n") + "\n");

    // OpenSSL is the authority.
    put(
        "cnf",
        "[req]\ndistinguished_name = n\nprompt = no\n[n]\nCN = t\n[tsa]\nextendedKeyUsage = critical,timeStamping\n\
        [a]\nserial = serial\nsigner_cert = tsa.pem\nsigner_key = tsa.key\nsigner_digest = sha256\n\
        default_policy = 1.2.3.4.1\ndigests = sha256\n",
    );
    put("serial", "01\n");
    let new = "-newkey rsa:2048 -nodes -config cnf -subj /CN=";
    openssl(dir, &format!("req -x509 {new}ca -keyout ca.key -out ca.pem -days 2"));
    openssl(dir, &format!("req -new {new}tsa -keyout tsa.key -out tsa.csr"));
    let sign = "x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile cnf -extensions tsa";
    openssl(dir, &format!("{sign} -out tsa.pem"));
    assert_eq!(offline(dir, "certificate log request DIR/log DIR/query").0, 0);
    openssl(dir, "ts -reply -config cnf -section a -queryfile query -out reply");
    let (code, out, err) = offline(dir, "certificate log stamp DIR/log DIR/reply --ca DIR/ca.pem");
    assert!(code == 0 && out.contains("the log up to line 2 existed at 20"), "{out} {err}");
    let (code, out, err) = offline(dir, &format!("{verify} --ca DIR/ca.pem"));
    assert!(code == 0 && out.contains("the log up to line 2 existed at 20"), "{out} {err}");
    // The stamp is of this log alone, and of a trusted authority alone.
    put("other", "[n]\n");
    let (code, _, err) = offline(dir, &format!("{verify} --ca DIR/tsa.key"));
    assert!(code == 2 && err.contains("no certificates"), "{err}");

    // Cut, and forked, and set back.
    std::fs::remove_file(dir.join("chain/2")).unwrap();
    let (code, _, err) = offline(dir, verify);
    assert!(code == 2 && err.contains("refused (cut-chain)"), "{err}");
    let mut other = certificate(evidence());
    (other.number, other.previous) = (2, Some(first.digest()));
    put("chain/2", &other.sign(key()).write());
    let (code, _, err) = offline(dir, verify);
    assert!(code == 2 && err.contains("refused (forked-chain)"), "{err}");
    let before = std::fs::read(&head).unwrap();
    for (log, why) in [(lines(&[&first]), "cut-log"), (lines(&[&first, &other.sign(key())]), "forked-log")] {
        *served.lock().unwrap() = log;
        let (code, _, err) = export();
        assert!(code == 2 && err.contains(&format!("refused ({why})")), "{why}: {err}");
    }
    assert_eq!(std::fs::read(&head).unwrap(), before, "a refusal changes nothing");
    let text = String::from_utf8(before).unwrap();
    put("log", &text.replacen(&first.digest(), &second.digest(), 1));
    let (code, _, err) = offline(dir, verify);
    assert!(code == 2 && err.contains("refused (broken-log)"), "{err}");
}

#[test]
fn a_change_of_the_key_is_followed() {
    let kept = tempfile::tempdir().unwrap();
    let dir = kept.path();
    let (old, new) = (key(), other_key());
    let change = SignedKeyChange::make(old, new, "2026-11-23T00:00:00Z".to_owned());
    let put = |name: &str, text: String| std::fs::write(dir.join(name), text).unwrap();
    put("keys", json!({"key": new.public().to_string(), "changes": [change]}).to_string());
    put("old", certificate(evidence()).sign(old).write());
    put("new", certificate(evidence()).sign(new).write());
    put("first", old.public().to_string());
    for (line, name) in [
        ("DIR/new --key DIR/keys", None),
        ("DIR/old --key DIR/keys --key-changes DIR/keys", None),
        ("DIR/new --key DIR/first --key-changes DIR/keys", None),
        ("DIR/new --key DIR/first", Some("wrong-key")),
        ("DIR/old --key DIR/keys", Some("wrong-key")),
    ] {
        let (code, _, err) = offline(dir, &format!("certificate verify {line}"));
        match name {
            None => assert_eq!((code, err.as_str()), (0, ""), "{line}"),
            Some(name) => assert!(code == 2 && err.contains(&format!("refused ({name})")), "{line}: {err}"),
        }
    }
    let forged = SignedKeyChange { by_new: change.by_old.clone(), by_old: change.by_old };
    put("keys", json!({"key": new.public().to_string(), "changes": [forged]}).to_string());
    let (code, _, err) = offline(dir, "certificate verify DIR/old --key DIR/keys --key-changes DIR/keys");
    assert!(code == 2 && err.contains("refused (key-change-wrong-key)"), "{err}");
}
