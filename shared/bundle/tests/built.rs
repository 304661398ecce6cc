//! Bundles that were built here: the same bytes each time, a file system that the kernel mounts, signatures.

use bundle::build::{BuildError, SigningKey, build};
use bundle::{PublicKey, Rejected, Trust, Verified, verify};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn source() -> Value {
    json!({"format": 1, "name": "acme_raid", "version": "1.2.3", "vendor": "ACME", "entry": ["/sbin/manager"],
           "protocol_versions": [1], "grants": {"memory_mib": 64}})
}

/// A root with what a root may have; `early` decides in which order it comes into being.
fn root(dir: &Path, early: bool) {
    let file = |path: &str, mode: u32, content: &[u8]| {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let large: Vec<u8> = (0..1_000_003_u32).map(|at| at.to_le_bytes()[usize::from(at % 7 == 0)]).collect();
    if early {
        file("usr/share/large", 0o600, &large);
    }
    file("usr/bin/manager", if early { 0o4755 } else { 0o711 }, b"#!/bin/sh\nexit 0\n");
    file("usr/share/empty", 0o644, b"");
    file("etc/config with blank", 0o640, "größe\n".as_bytes());
    if !early {
        file("usr/share/large", 0o644, &large);
    }
    symlink("/usr/bin", dir.join("sbin")).unwrap();
}

fn built(dir: &Path, source: &Value, key: Option<&SigningKey>) -> Result<(Vec<u8>, Verified), BuildError> {
    let path = dir.with_extension("bundle");
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    let verified = build(dir, source.to_string().as_bytes(), key, &mut file)?;
    Ok((fs::read(path).unwrap(), verified))
}

#[test]
fn the_same_tree_gives_the_same_bytes() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    root(one.path(), true);
    root(other.path(), false);
    let (key, _) = SigningKey::generate().unwrap();
    let (bytes, verified) = built(one.path(), &source(), Some(&key)).unwrap();
    let (again, _) = built(other.path(), &source(), Some(&key)).unwrap();
    assert!(bytes == again, "the same tree, made by others at another time, gives other bytes");
    assert_eq!(verified.signed_by, Some(key.public().id()));
    assert_eq!((verified.manifest.grants.memory_mib, verified.manifest.grants.pids), (64, 64));
}

/// As root, since mounting needs it: the kernel is the judge.
#[test]
fn the_kernel_mounts_it() {
    let (dir, point) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    root(dir.path(), true);
    built(dir.path(), &source(), None).unwrap();
    let point = point.path().to_str().unwrap();
    let file = dir.path().with_extension("bundle");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        let reported = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{program} {arguments:?} (needs root): {reported}");
    };
    run("mount", &["-t", "squashfs", "-o", "loop,ro", file.to_str().unwrap(), point]);
    let checked = std::panic::catch_unwind(|| {
        run(
            "diff",
            &[
                "-r",
                "--no-dereference",
                "--exclude=dev",
                "--exclude=proc",
                "--exclude=scratch",
                "--exclude=sys",
                "--exclude=tmp",
                dir.path().to_str().unwrap(),
                point,
            ],
        );
        for mounted_over in ["dev", "proc", "scratch", "sys", "tmp"] {
            assert!(Path::new(point).join(mounted_over).is_dir(), "{mounted_over}");
        }
        let mode =
            |path: &str| fs::metadata(Path::new(point).join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("usr/bin/manager"), mode("usr/share/large"), mode("")), (0o755, 0o644, 0o755));
    });
    run("umount", &[point]);
    checked.unwrap();
}

#[test]
fn only_trusted_signatures_count() {
    let dir = tempfile::tempdir().unwrap();
    root(dir.path(), true);
    let (ours, text) = SigningKey::generate().unwrap();
    let again = SigningKey::from_pem(&text).unwrap();
    assert_eq!(again.public(), ours.public());
    let (theirs, _) = SigningKey::generate().unwrap();
    let trust = |unsigned| Trust::Keys { keys: vec![ours.public()], unsigned };
    let judge = |bytes: &[u8], trust: &Trust| verify(&mut std::io::Cursor::new(bytes), trust);
    let signer = |bytes: &[u8]| judge(bytes, &trust(false)).map(|verified| verified.signed_by);

    let (signed, _) = built(dir.path(), &source(), Some(&again)).unwrap();
    assert_eq!(signer(&signed).unwrap(), Some(ours.public().id()));
    let (foreign, _) = built(dir.path(), &source(), Some(&theirs)).unwrap();
    assert!(matches!(signer(&foreign), Err(Rejected::Stranger(id)) if id == theirs.public().id()));
    assert!(
        matches!(judge(&foreign, &trust(true)), Err(Rejected::Stranger(_))),
        "allowing unsigned is not that"
    );
    let (unsigned, _) = built(dir.path(), &source(), None).unwrap();
    assert!(matches!(signer(&unsigned), Err(Rejected::Unsigned)));
    assert_eq!(judge(&unsigned, &trust(true)).unwrap().signed_by, None);
    assert!(judge(&foreign, &Trust::Digest).is_ok() && judge(&unsigned, &Trust::Digest).is_ok());

    // The manifest of another version under the same signature.
    let find = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).position(|found| found == text).unwrap();
    let mut changed = signed.clone();
    let at = find(&changed, b"1.2.3");
    changed[at] = b'9';
    assert!(matches!(signer(&changed), Err(Rejected::Signature(_))));
    // Theirs, said to be ours.
    let mut claimed = foreign.clone();
    let at = find(&claimed, theirs.public().id().as_bytes());
    claimed[at..at + 16].copy_from_slice(ours.public().id().as_bytes());
    assert!(matches!(signer(&claimed), Err(Rejected::Signature(_))));
}

#[test]
fn openssl_keys_sign_too() {
    let output = Command::new("openssl").args(["genpkey", "-algorithm", "ed25519"]).output().unwrap();
    let key = SigningKey::from_pem(&String::from_utf8(output.stdout).unwrap()).unwrap();
    assert!(key.public().to_string().parse::<PublicKey>().is_ok());
    for bad in ["", "-----BEGIN PRIVATE KEY-----\n?\n-----END PRIVATE KEY-----"] {
        assert!(SigningKey::from_pem(bad).is_err());
    }
}

#[test]
fn what_would_not_work_on_the_node_is_reported_when_it_is_built() {
    let dir = tempfile::tempdir().unwrap();
    root(dir.path(), true);
    let refused = |change: fn(&mut Value)| {
        let mut wrong = source();
        change(&mut wrong);
        built(dir.path(), &wrong, None).unwrap_err().to_string()
    };
    for (change, reported) in [
        (
            (|m| m["entry"] = json!(["/usr/bin/nosuch"])) as fn(&mut Value),
            "entry: \"/usr/bin/nosuch\": there is no",
        ),
        (|m| m["entry"] = json!(["/usr/share/empty"]), "entry: \"/usr/share/empty\" cannot be run"),
        (|m| m["entry"] = json!(["/sbin"]), "entry: \"/sbin\" is a directory"),
        (|m| m["nmae"] = json!("x"), "nmae: is not known"),
        (|m| m["grants"]["netwrok"] = json!(true), "grants.netwrok: is not known"),
        (|m| m["root_size"] = json!(4096), "root_size: is written by the builder"),
        (|m| m["name"] = json!("ACME"), "name: "),
    ] {
        let error = refused(change);
        assert!(error.contains(reported), "{error}");
    }
    nix_fifo(&dir.path().join("pipe"));
    let error = refused(|_| {});
    assert!(error.contains("pipe: a named pipe has no place in a bundle"), "{error}");
}

fn nix_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}
