//! `anneal bundle`, and docs/bundles.md line by line, against the real API.

use crate::drivers;

use api::{App, BundleStore};
use bundle::Trust;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use store::memory::MemoryStore;
use store::prelude::*;

const TEXT: &str = include_str!("../../../docs/bundles.md");

/// The API on loopback; its bundles are stored in `shelf`. It accepts unsigned bundles, and those signed with `keys`.
fn controller(shelf: &Path, keys: Vec<bundle::PublicKey>) -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let endpoint = runtime.block_on(async {
        let store = Arc::new(MemoryStore::new());
        let mut node = model::Node::enrolled(uuid(), "redfish", model::Timestamp(0));
        node.name = Some("n".to_owned());
        store.create_node(node, Vec::new()).await.unwrap();
        let bundle_store =
            BundleStore::open(shelf.into(), Trust::Keys { keys, unsigned: true }, 1 << 20).unwrap();
        let app = App {
            bundles: Some(Arc::new(bundle_store)),
            ..App::alone("anneal", store, Arc::new(drivers::KeptDrivers::new()))
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, api::router(app)).await });
        endpoint
    });
    (runtime, endpoint)
}

fn uuid() -> uuid::Uuid {
    uuid::uuid!("11111111-1111-4111-8111-111111111111")
}

/// Exit code, output, complaint.
fn anneal(endpoint: &str, dir: &Path, line: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_anneal"))
        .args(line.split_whitespace())
        .env_clear()
        .env("ANNEAL_ENDPOINT", endpoint)
        .current_dir(dir)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The first code block of the text that begins with `language`.
fn block(language: &str) -> &'static str {
    let (_, rest) = TEXT.split_once(&format!("```{language}\n")).unwrap();
    rest.split("```").next().unwrap()
}

#[test]
fn the_text_for_vendors_and_operators_is_what_happens() {
    let (desk, shelf) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let manifest: Value = serde_json::from_str(block("json")).unwrap();
    let program = desk.path().join("root").join(&manifest["entry"][0].as_str().unwrap()[1..]);
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "#!").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(desk.path().join("manifest.json"), manifest.to_string()).unwrap();
    let (_, rest) = TEXT.split_once("trusted_keys = [\"").unwrap();
    let key = rest.split('"').next().unwrap().parse::<bundle::PublicKey>();
    assert!(key.is_ok(), "the example of a key is one");

    let blocks = TEXT.split("```").skip(1).step_by(2).flat_map(str::lines);
    let lines: Vec<_> = blocks.filter_map(|line| line.strip_prefix("anneal ")).collect();
    assert_eq!(lines.len(), 8, "{lines:?}");
    let mut running = None;
    let mut digest = String::new();
    for line in lines {
        // The operator has the key before the bundle.
        if line.starts_with("bundle add") {
            let key = fs::read_to_string(desk.path().join("acme.key.pub")).unwrap();
            running = Some(controller(shelf.path(), bundle::PublicKey::list(&key).unwrap()));
        }
        let endpoint = running.as_ref().map_or("http://127.0.0.1:1", |(_, endpoint)| endpoint);
        let line = line.replace("NODE", "n").replace("DIGEST", digest.get(..12).unwrap_or_default());
        let (code, out, err) = anneal(endpoint, desk.path(), &line);
        assert_eq!(code, 0, "{line}: {err}");
        let says = match line.split(' ').nth(1).unwrap() {
            "build" => "signature  by key",
            "verify" => "which is trusted\n",
            "add" => "added acme_raid 1.2.3 for driver:redfish: nodes have it from their next boot\n",
            "list" => "acme_raid  1.2.3    driver:redfish  ",
            "show" => {
                "grants      pci(device=0x00*,vendor=0x1000), 256 MiB memory, 16 MiB scratch, 64 processes\n"
            }
            "remove" => "from driver:redfish\n",
            _ => "",
        };
        assert!(out.contains(says), "{line}: {out}");
        if line.starts_with("bundle verify") {
            let (_, out, _) = anneal(endpoint, desk.path(), &format!("{line} -o json"));
            digest = serde_json::from_str::<Value>(&out).unwrap()["digest"].as_str().unwrap().to_owned();
        }
    }
    let key = fs::metadata(desk.path().join("acme.key")).unwrap().permissions().mode();
    assert_eq!(key & 0o777, 0o600);
    assert_eq!(fs::read_dir(shelf.path()).unwrap().count(), 0, "removed from its only scope, it is gone");
    for (method, path) in
        [("POST", ""), ("GET", ""), ("GET", "/{digest}"), ("DELETE", "/{digest}"), ("GET", "/{digest}/file")]
    {
        assert!(TEXT.contains(&format!("`{method} /v1/anneal/bundles{path}")), "{method} {path}");
    }
    for grant in ["devices", "network", "scratch_mib", "memory_mib", "pids"] {
        assert!(TEXT.contains(&format!("| `grants.{grant}` |")), "{grant}");
    }
}

#[test]
fn a_wrong_bundle_is_reported_before_anything_is_sent() {
    let (desk, shelf) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_runtime, endpoint) = controller(shelf.path(), Vec::new());
    let run = |line: &str| anneal(&endpoint, desk.path(), line);
    let write = |name: &str, text: &str| fs::write(desk.path().join(name), text).unwrap();
    fs::create_dir(desk.path().join("root")).unwrap();
    write("root/x", "#!");
    fs::set_permissions(desk.path().join("root/x"), fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = |name: &str| {
        json!({"format": 1, "name": name, "version": "1", "vendor": "A", "entry": ["/x"], "protocol_versions": [1]})
            .to_string()
    };
    write("good.json", &manifest("good"));
    write("bad.json", &manifest("Bad"));
    write("no.key", "nothing");

    let (code, _, err) = run("bundle build root bad.json b");
    assert!(code == 2 && err.contains("manifest: name: manager name \"Bad\" is not"), "{err}");
    let (code, _, err) = run("bundle build root good.json b --key no.key");
    assert!(code == 2 && err.starts_with("anneal: no.key: is not an Ed25519 private key"), "{err}");
    assert!(!desk.path().join("b").exists() && !desk.path().join("b.part").exists());
    let (code, _, err) = run("bundle add good.json");
    assert!(code == 2 && err.contains("good.json: the file is not a bundle"), "{err}");
    assert_eq!(run("bundle keygen no.key").0, 2, "a key is never overwritten");

    let (code, out, err) = run("bundle build root good.json b");
    assert!(code == 0 && out.contains("signature  none\n"), "{out}{err}");
    run("bundle keygen k");
    let (code, _, err) = run("bundle verify b --trust k.pub");
    assert!(code == 2 && err.contains("is not signed"), "{err}");
    assert_eq!(run("bundle verify b").0, 0);
    let (code, _, err) = run("bundle build root good.json signed --key k");
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run("bundle add signed");
    assert!(
        code == 1 && err.contains("which is none of the trusted keys") && err.contains("HTTP 400"),
        "{err}"
    );
    let (code, _, err) = run("bundle add b --scope rack:7");
    assert!(code == 1 && err.contains("for scope: rack:7"), "{err}");
    assert_eq!(run("bundle add b").0, 0);
    assert_eq!(run("bundle add b --scope node:n").0, 0);
    let (_, out, _) = run("bundle list -o json");
    let list: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&list[0]["scope"], &list[1]["scope"]), (&json!("all"), &json!(format!("node:{}", uuid()))));
    let (code, _, err) = run("bundle show zz");
    assert!(code == 2 && err.contains("no bundle has a digest that begins so"), "{err}");
    let (code, out, _) = run(&format!("bundle remove {}", list[0]["digest"].as_str().unwrap()));
    assert!(code == 0 && out.ends_with("from every scope\n"), "{out}");
}
