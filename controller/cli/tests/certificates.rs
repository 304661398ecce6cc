//! Certificates from the command line: what an auditor learns from a file, and what is rejected.

mod common;
#[path = "../../../shared/certificate/tests/common/mod.rs"]
mod example;

use certificate::Signed;
use common::{anneal, serve};
use example::{NODE, certificate, evidence, key, other_key};
use serde_json::{Value, json};
use std::path::Path;

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
fn what_a_controller_sends_is_judged_before_it_is_shown_or_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = two();
    let (one, other) = (first.digest(), second.digest());
    let (file, key) = (serde_json::to_value(&first).unwrap(), key().public().to_string());
    let list = json!({"certificates": [{"id": one, "number": 1, "finding": "erased_with_exceptions",
                                        "issued_at": "2026-11-21T08:00:00+00:00"}]});
    let server = serve(move |_, seen| match seen.line.split(' ').nth(1).unwrap() {
        "/v1/anneal/certificate_key" => (200, json!({"key": key})),
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
