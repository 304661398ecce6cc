//! The verbs of the provision state machine: what each sends, and what `--wait` waits for.

use crate::common;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{Server, VERBS, fault, node, serve};
use serde_json::{Value, json};

const STEPS: &str = r#"[{"interface": "deploy", "step": "x", "args": {"a": 1}, "priority": 5}]"#;

/// A server that takes every verb; the node then goes through `states`, each with its target, and stays in the last.
fn walks(states: &'static [(&'static str, Option<&'static str>)]) -> Server {
    serve(move |index, seen| {
        if seen.line.starts_with("PUT") {
            return (202, Value::Null);
        }
        let (state, target) = states[(index - 1).min(states.len() - 1)];
        (200, node(state, target))
    })
}

#[test]
fn each_verb_sends_its_target_in_either_spelling() {
    let steps: Value = serde_json::from_str(STEPS).unwrap();
    for verb in VERBS {
        let (options, body) = match verb {
            "manage" | "manageable" => (vec![], json!({"target": "manage"})),
            "deploy" | "active" => (vec![], json!({"target": "active"})),
            "undeploy" | "deleted" => (vec![], json!({"target": "deleted"})),
            "clean" => (vec!["--clean-steps", STEPS], json!({"target": "clean", "clean_steps": steps})),
            "service" => {
                (vec!["--service-steps", STEPS], json!({"target": "service", "service_steps": steps}))
            }
            "rescue" => {
                (vec!["--rescue-password", "-x y"], json!({"target": "rescue", "rescue_password": "-x y"}))
            }
            "override" => {
                (vec!["--reason", "no disks"], json!({"target": "available", "reason": "no disks"}))
            }
            other => (vec![], json!({"target": other})),
        };
        let server = walks(&[("verifying", None)]);
        let (code, out, err) = server.run(&[&["node", verb, "n1"], &options[..]].concat());
        assert_eq!((code, out.as_str()), (0, "n1: verifying\n"), "{verb}: {err}");
        assert_eq!(server.lines(), ["PUT /v1/nodes/n1/states/provision", "GET /v1/nodes/n1"]);
        assert_eq!(server.body(0), body, "{verb}");
    }
}

#[test]
fn the_ramdisk_is_disabled_only_on_request() {
    for (verb, option, field) in
        [("clean", "--clean-steps", "clean_steps"), ("service", "--service-steps", "service_steps")]
    {
        let server = walks(&[("cleaning", None)]);
        assert_eq!(server.run(&["node", verb, "n1", option, STEPS, "--disable-ramdisk"]).0, 0);
        let steps: Value = serde_json::from_str(STEPS).unwrap();
        assert_eq!(server.body(0), json!({"target": verb, field: steps, "disable_ramdisk": true}));
        assert_eq!(server.run(&["node", "provide", "n1", "--disable-ramdisk"]).0, 2);
    }
}

#[test]
fn waiting_ends_where_the_verb_leads() {
    let waits =
        |verb: &[&str], states| walks(states).run(&[&["node"], verb, &["n1", "--wait", "30"]].concat()).0;
    for verb in ["deploy", "rebuild"] {
        assert_eq!(waits(&[verb], &[("deploying", None), ("wait call-back", None), ("active", None)]), 0);
        assert_eq!(waits(&[verb], &[("deploying", None), ("deploy failed", Some("active"))]), 4);
    }
    assert_eq!(waits(&["undeploy"], &[("deleting", None), ("clean wait", None), ("available", None)]), 0);
    assert_eq!(waits(&["undeploy"], &[("deleting", None), ("error", None)]), 4);
    assert_eq!(waits(&["rescue", "--rescue-password", "p"], &[("rescuing", None), ("rescue", None)]), 0);
    assert_eq!(waits(&["unrescue"], &[("unrescuing", None), ("active", None)]), 0);
    assert_eq!(waits(&["adopt"], &[("adopting", None), ("adopt failed", Some("active"))]), 4);
    assert_eq!(waits(&["inspect"], &[("inspect wait", Some("manageable")), ("manageable", None)]), 0);
    let service = ["service", "--service-steps", STEPS];
    assert_eq!(waits(&service, &[("servicing", Some("active")), ("service failed", Some("active"))]), 4);
    assert_eq!(
        waits(&["abort"], &[("clean wait", Some("available")), ("clean failed", Some("available"))]),
        0
    );
    // Unhold goes on to where the node was going.
    let held: &[_] = &[("clean wait", Some("manageable")), ("manageable", None)];
    assert_eq!(waits(&["unhold"], held), 0);
    let held: &[_] = &[("clean wait", Some("manageable")), ("available", None)];
    assert_eq!(waits(&["unhold"], held), 4);
}

#[test]
fn a_deployment_takes_steps_and_a_config_drive_along() {
    let drive = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(drive.path(), b"\x1f\x8bdrive").unwrap();
    let path = drive.path().to_str().unwrap();
    for (verb, target) in [("deploy", "active"), ("rebuild", "rebuild")] {
        let server = walks(&[("deploying", Some("active"))]);
        let line = ["node", verb, "n1", "--deploy-steps", "-", "--config-drive", path];
        let (code, _, err) = server.run_with(&line, STEPS);
        assert_eq!(code, 0, "{err}");
        let steps: Value = serde_json::from_str(STEPS).unwrap();
        let drive = STANDARD.encode(b"\x1f\x8bdrive");
        assert_eq!(server.body(0), json!({"target": target, "deploy_steps": steps, "configdrive": drive}));
    }
    let server = walks(&[("deploying", Some("active"))]);
    for bad in [&["--deploy-steps", "[]"], &["--deploy-steps", "[1]"], &["--config-drive", "/nonexistent"]] {
        assert_eq!(server.run(&[&["node", "deploy", "n1"], &bad[..]].concat()).0, 2, "{bad:?}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());
}

#[test]
fn a_rescue_password_is_in_the_body_and_nowhere_else() {
    let password = "pw-7f3a9";
    let server = serve(move |_, seen| match &seen.body["rescue_password"] {
        Value::String(password) => (400, fault(&format!("the password {password:?} is not to my taste"))),
        _ => (200, node("rescuing", Some("rescue"))),
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{password}\n")).unwrap();
    let from_file = format!("@{}", file.path().display());
    for (given, input) in [
        (vec![], "pw-7f3a9\n"),
        (vec!["--rescue-password", "-"], "pw-7f3a9"),
        (vec!["--rescue-password", &from_file], ""),
    ] {
        let (code, out, err) = server.run_with(&[&["node", "rescue", "n1"], &given[..]].concat(), input);
        assert_eq!((code, out.as_str()), (1, ""));
        assert_eq!(err, "anneal: the password \"******\" is not to my taste (HTTP 400)\n");
    }
    for seen in server.seen.lock().unwrap().iter() {
        assert_eq!(
            (seen.line.as_str(), &seen.body["rescue_password"]),
            ("PUT /v1/nodes/n1/states/provision", &json!(password))
        );
    }
    // Nothing to read is no password.
    for input in ["", "\n"] {
        assert_eq!(server.run_with(&["node", "rescue", "n1"], input).0, 2);
    }
    assert_eq!(server.lines().len(), 3);
}

#[test]
fn keys_of_a_rescue_are_put_into_the_node_first() {
    let key = file("# mine\nssh-ed25519 AAAAC3Nz a@b\n");
    let server = serve(|_, seen| {
        let mut node = node("rescuing", Some("rescue"));
        node["instance_info"] =
            json!({"rescue_authorized_keys": ["ssh-rsa AAAAB3Nz"], "image_source": "kept"});
        (if seen.line.starts_with("PUT") { 202 } else { 200 }, node)
    });
    let path = key.path().to_str().unwrap();
    let (code, _, err) = server.run(&["node", "rescue", "n1", "--rescue-password", "p", "--ssh-key", path]);
    assert_eq!(code, 0, "{err}");
    let expected = ["GET /v1/nodes/n1", "PATCH /v1/nodes/n1", "PUT /v1/nodes/n1/states/provision"];
    assert_eq!(server.lines()[..3], expected);
    let keys = json!(["ssh-ed25519 AAAAC3Nz a@b"]);
    let patch = json!([{"op": "add", "path": "/instance_info/rescue_authorized_keys", "value": keys}]);
    assert_eq!(server.body(1), patch);
    let private = file("-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n");
    let path = private.path().to_str().unwrap();
    let (code, _, err) = server.run(&["node", "rescue", "n1", "--rescue-password", "p", "--ssh-key", path]);
    assert!(code == 2 && err.contains("private key") && !err.contains("secret"), "{err}");
}

#[test]
fn an_override_needs_a_reason() {
    let server = walks(&[("available", None)]);
    for bad in [&[][..], &["--reason", ""], &["--reason"]] {
        assert_eq!(server.run(&[&["node", "override", "n1"], bad].concat()).0, 2, "{bad:?}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());
    let (code, out, _) = server.run(&["node", "override", "n1", "--reason", "no disks", "--wait"]);
    assert_eq!((code, out.as_str()), (0, "n1: available\n"));
}

/// A file with this content.
fn file(content: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), content).unwrap();
    file
}

#[test]
fn a_deployment_is_one_command() {
    let digest = "0a".repeat(32);
    let (key, more_keys) = (file("ssh-ed25519 AAAAC3Nz a@b\n"), file("# two\nssh-rsa AAAAB3Nz\n"));
    let (user_data, network) = (file("#cloud-config\n# hunter2\n"), file(r#"{"links": []}"#));
    let path = |file: &tempfile::NamedTempFile| file.path().to_str().unwrap().to_owned();
    let server = serve(|index, seen| {
        let mut node = node(if index < 3 { "available" } else { "active" }, None);
        // Of an image before it.
        node["instance_info"] = json!({"image_source": "old", "image_checksum": "old", "image_disk_format": "raw", "a": 1, "anneal_wait_for_hello": 60});
        (if seen.line.starts_with("PUT") { 202 } else { 200 }, node)
    });
    let (keys, more_keys) = (path(&key), path(&more_keys));
    let (code, out, err) = server.run(&[
        "node",
        "deploy",
        "n1",
        "--image",
        "http://m/debian.qcow2",
        "--checksum",
        &digest,
        "--user-data",
        &path(&user_data),
        "--ssh-key",
        &keys,
        "--ssh-key",
        &more_keys,
        "--hostname",
        "web-1",
        "--network-data",
        &path(&network),
        "--wait",
    ]);
    assert_eq!((code, out.as_str()), (0, "n1: active\n"), "{err}");
    let expected = ["GET /v1/nodes/n1", "PATCH /v1/nodes/n1", "PUT /v1/nodes/n1/states/provision"];
    assert_eq!(server.lines()[..3], expected);
    let at = |key: &str| format!("/instance_info/{key}");
    let patch = json!([
        {"op": "add", "path": at("image_source"), "value": "http://m/debian.qcow2"},
        {"op": "remove", "path": at("image_checksum")},
        {"op": "add", "path": at("image_os_hash_algo"), "value": "sha256"},
        {"op": "add", "path": at("image_os_hash_value"), "value": digest},
        {"op": "remove", "path": at("image_disk_format")},
        {"op": "remove", "path": at("anneal_wait_for_hello")},
    ]);
    assert_eq!(server.body(1), patch, "what is left of another image goes");
    let keys = json!({"0": "ssh-ed25519 AAAAC3Nz a@b", "1": "ssh-rsa AAAAB3Nz"});
    let drive = json!({
        "meta_data": {"hostname": "web-1", "name": "web-1", "public_keys": keys},
        "network_data": {"links": []}, "user_data": "#cloud-config\n# hunter2\n",
    });
    assert_eq!(server.body(2), json!({"target": "active", "configdrive": drive}));
}

#[test]
fn a_hello_is_asked_for_with_an_image_or_for_what_is_set_already() {
    let digest = "0a".repeat(32);
    let image = ["--image", "http://m/x", "--checksum", &digest, "--image-format", "raw"];
    for (verb, words, expected) in [
        ("deploy", [&image[..], &["--wait-for-hello"]].concat(), (5, 1800)),
        ("rebuild", vec!["--wait-for-hello=90"], (1, 90)),
    ] {
        let server =
            serve(|_, seen| (if seen.line.starts_with("PUT") { 202 } else { 200 }, node("active", None)));
        let (code, _, err) = server.run(&[&["node", verb, "n1"], &words[..]].concat());
        assert_eq!(code, 0, "{err}");
        let patch = server.body(1);
        let wait = json!({"op": "add", "path": "/instance_info/anneal_wait_for_hello", "value": expected.1});
        assert_eq!(patch.as_array().unwrap().last(), Some(&wait), "{patch}");
        assert_eq!(patch.as_array().unwrap().len(), expected.0, "{patch}");
    }
    let server = serve(|_, _| (200, node("active", None)));
    for bad in [
        &["--wait-for-hello=9"][..],
        &["--wait-for-hello=soon"],
        &["--wait-for-hello", "--config-drive", "x"],
    ] {
        assert_eq!(server.run(&[&["node", "deploy", "n1"], bad].concat()).0, 2, "{bad:?}");
    }
    assert!(server.lines().is_empty());
}

#[test]
fn a_deployment_that_cannot_be_meant_sends_nothing() {
    let server = walks(&[("deploying", None)]);
    let secret = file("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n");
    let secret = secret.path().to_str().unwrap();
    let digest = "0a".repeat(32);
    for bad in [
        &["--image", "http://m/x"][..],
        &["--checksum", &digest],
        &["--image", "http://m/x", "--checksum", "d41d8cd98f00b204e9800998ecf8427e"],
        &["--image", "http://m/x", "--checksum", &digest, "--image-format", "vmdk"],
        &["--image", "http://m/x", "--checksum", &digest, "--user-data", "/nonexistent"],
        &["--ssh-key", secret],
        &["--hostname", "no name"],
        &["--network-data", "[]"],
        &["--config-drive", secret, "--hostname", "h"],
    ] {
        let (code, _, err) = server.run(&[&["node", "deploy", "n1"], bad].concat());
        assert_eq!(code, 2, "{bad:?}: {err}");
        assert!(!err.contains("hunter2"), "{err}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());
}
