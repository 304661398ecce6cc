//! A drive as other tools see it. The scenario `configdrive` of tests/machines mounts one in Linux.

use configdrive::{Drive, LABEL};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use uuid::Uuid;

const USER_DATA: &str = "#cloud-config\nhostname: ü\n";

fn drive() -> Drive {
    // More than a sector, and not a multiple of one.
    let vendor = json!({"text": "v".repeat(5000)});
    let parts = json!({
        "meta_data": {"hostname": "h"}, "network_data": {"links": []}, "vendor_data": vendor, "user_data": USER_DATA,
    });
    Drive::of(parts.as_object().unwrap(), Uuid::from_u128(7), Some("rack-1")).unwrap()
}

fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output();
    let done = done.unwrap_or_else(|error| panic!("{program}: {error} (cargo xtask deps)"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// All files in an image, as another reader of ISO file systems sees them through the names of one kind.
fn extracted(image: &Path, names: &str) -> BTreeMap<PathBuf, String> {
    fn walk(root: &Path, at: &Path, found: &mut BTreeMap<PathBuf, String>) {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let content = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(root).unwrap().to_owned(), content);
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let device = format!("stdio:{}", image.display());
    let arguments = ["-abort_on", "WARNING", "-osirrox", "on", "-read_fs", names, "-indev", &device];
    run("xorriso", &[&arguments[..], &["-extract", "/", out.to_str().unwrap()]].concat());
    let mut found = BTreeMap::new();
    walk(&out, &out, &mut found);
    found
}

/// The files of both versions.
fn expected() -> BTreeMap<PathBuf, String> {
    let meta = json!({"hostname": "h", "name": "rack-1", "uuid": Uuid::from_u128(7)});
    let vendor = json!({"text": "v".repeat(5000)});
    let files = [
        ("meta_data.json", meta.to_string()),
        ("network_data.json", json!({"links": []}).to_string()),
        ("user_data", USER_DATA.to_owned()),
        ("vendor_data2.json", vendor.to_string()),
    ];
    let of = |version: &'static str| {
        files.clone().map(|(name, text)| (PathBuf::from(format!("openstack/{version}/{name}")), text))
    };
    [of("2012-08-10"), of("latest")].concat().into_iter().collect()
}

#[test]
fn its_files_are_found_by_each_of_its_three_kinds_of_names() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), drive().iso()).unwrap();
    for names in ["any", "norock", "nojoliet"] {
        assert_eq!(extracted(file.path(), names), expected(), "{names}");
    }
    // Plain names: as genisoimage writes them with Ironic's options.
    let plain = extracted(file.path(), "ecma119");
    assert_eq!(plain.len(), 8, "{plain:?}");
    assert!(plain.contains_key(Path::new("openstack/latest/meta_data.json")), "{plain:?}");
}

#[test]
fn blkid_finds_its_label() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), drive().iso()).unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(run("blkid", &["-p", "-s", "LABEL", "-o", "value", path]), LABEL);
    assert_eq!(run("blkid", &["-p", "-s", "TYPE", "-o", "value", path]), "iso9660");
}

/// Frozen: the same parts are the same bytes, on every machine and with every version.
#[test]
fn of_equal_parts_come_equal_bytes() {
    let image = drive().iso();
    let digest = Sha256::digest(&image).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        (image.len(), digest.as_str()),
        (75_776, "7669d1111cff84cc6396130d7f90255d449c33241cc7a6cb47a76305e446fe1a")
    );
    assert_eq!(drive().packed(), drive().packed());
}
