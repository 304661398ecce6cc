//! Bundles from the lookup to the mounted root, over real TLS, memory, loop devices and squashfs. Needs root.

use crate::controller;
use crate::life;

use bundle::build::{SigningKey, build};
use controller::{Controller, Script};
use life::Life;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn made(name: &str, key: Option<&SigningKey>) -> (Value, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(root.join("bin/manager"), name).unwrap();
    fs::set_permissions(root.join("bin/manager"), fs::Permissions::from_mode(0o755)).unwrap();
    let source = json!({"format": 1, "name": name, "version": "1", "vendor": "V", "entry": ["/bin/manager"],
                        "protocol_versions": [1]});
    let path = dir.path().join("bundle");
    let mut out = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    let is = build(&root, source.to_string().as_bytes(), key, &mut out).unwrap();
    let offer = json!({"name": name, "version": "1", "digest": is.digest, "size": is.size});
    (offer, fs::read(path).unwrap())
}

/// A place for bundles; whatever is mounted in it goes with it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn managers(&self) -> PathBuf {
        self.0.path().join("managers")
    }

    fn keys(&self) -> PathBuf {
        self.0.path().join("keys")
    }

    /// Names of the directories with a manager, and of those without.
    fn found(&self) -> (Vec<String>, Vec<String>) {
        let entries: Vec<fs::DirEntry> =
            fs::read_dir(self.managers()).map(|all| all.flatten().collect()).unwrap_or_default();
        let mut names: Vec<_> =
            entries.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names.into_iter().partition(|name| self.managers().join(name).join("manifest.json").is_file())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for entry in fs::read_dir(self.managers()).into_iter().flatten().flatten() {
            let _ = nix::mount::umount2(&entry.path().join("root"), nix::mount::MntFlags::MNT_DETACH);
        }
    }
}

/// Runs an agent until its first heartbeat, after which all is mounted that is going to be.
async fn until_first_heartbeat(bundles: Vec<(Value, Vec<Vec<u8>>)>, place: &Place) -> Vec<String> {
    let mut controller = Controller::start(Script { offer: true, bundles, ..Script::default() }).await;
    let managers = format!("--bundles={}", place.managers().display());
    let keys = format!("--trusted-keys={}", place.keys().display());
    let config = life::config(&controller, &["--api-url=API", &managers, &keys]);
    let life = Life::start(config, &Arc::default());
    controller.heartbeat().await;
    life.stop().await;
    controller.requests()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_controller_names_is_mounted_before_the_first_heartbeat() {
    let place = Place::new();
    let (one, other) = (made("acme", None), made("zeta", None));
    // The second comes in pieces at first: it is fetched again.
    let cut = other.1[..other.1.len() - 100].to_vec();
    let bundles = vec![(one.0.clone(), vec![one.1]), (other.0.clone(), vec![cut, other.1])];
    let requests = until_first_heartbeat(bundles, &place).await;
    assert_eq!(place.found(), (vec!["acme".to_owned(), "zeta".to_owned()], vec![]));
    let heartbeat = requests.iter().position(|line| line.starts_with("POST /v1/heartbeat")).unwrap();
    let last = requests.iter().rposition(|line| line.contains("/v1/anneal/bundles/")).unwrap();
    assert!(last < heartbeat, "{requests:?}");
    for (name, offer) in [("acme", &one.0), ("zeta", &other.0)] {
        let manager = place.managers().join(name);
        assert_eq!(fs::read_to_string(manager.join("root/bin/manager")).unwrap(), name);
        assert_eq!(fs::read_to_string(manager.join("digest")).unwrap(), offer["digest"].as_str().unwrap());
        let manifest = bundle::Manifest::parse(&fs::read(manager.join("manifest.json")).unwrap()).unwrap();
        assert_eq!(manifest.name, name);
        let refused = fs::write(manager.join("root/x"), "").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let line =
        mounts.lines().find(|line| line.contains(place.managers().join("acme").to_str().unwrap())).unwrap();
    let device = line.split(' ').next().unwrap().to_owned();
    assert!(line.contains(" squashfs ro,nosuid,nodev,"), "{line}");
    // In memory, not on a disk; and gone with the mount.
    let backing =
        PathBuf::from(format!("/sys/block/{}/loop/backing_file", device.trim_start_matches("/dev/")));
    assert!(fs::read_to_string(&backing).unwrap().contains("memfd:bundle"));

    // The next process begins with nothing, and what is not named any more is not there.
    until_first_heartbeat(Vec::new(), &place).await;
    assert_eq!(place.found(), (vec![], vec![]));
    let mounted =
        |path: &Path| fs::read_to_string("/proc/self/mounts").unwrap().contains(path.to_str().unwrap());
    assert!(!mounted(&place.managers()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_is_left_out_and_the_agent_goes_on() {
    let place = Place::new();
    let good = made("good", None);
    let wrong = |name: &str, change: fn(&mut Value, &mut Vec<u8>)| {
        let (mut offer, mut bytes) = made(name, None);
        change(&mut offer, &mut bytes);
        (offer, vec![bytes])
    };
    let bundles = vec![
        wrong("changed", |_, bytes| bytes[100] ^= 1),
        // Sound, and of this name and version, but not what was offered.
        wrong("exchanged", |offer, bytes| {
            *bytes = made("exchanged", Some(&SigningKey::generate().unwrap().0)).1;
            offer["size"] = json!(bytes.len());
        }),
        wrong("renamed", |offer, _| offer["name"] = json!("another")),
        wrong("aged", |offer, _| offer["version"] = json!("0")),
        wrong("longer", |offer, _| offer["size"] = json!(4096)),
        wrong("shorter", |offer, _| offer["size"] = json!(1 << 20)),
        wrong("huge", |offer, _| offer["size"] = json!(1_u64 << 50)),
        wrong("path", |offer, _| offer["digest"] = json!("../../nodes")),
        (json!({"name": "gone", "version": "1", "digest": "ab".repeat(32), "size": 5000}), vec![]),
        wrong("garbage", |offer, bytes| {
            *bytes = vec![1; 5000];
            offer["size"] = json!(5000);
        }),
        (good.0, vec![good.1]),
    ];
    let requests = until_first_heartbeat(bundles, &place).await;
    assert_eq!(place.found(), (vec!["good".to_owned()], vec![]));
    let asked = |part: &str| requests.iter().filter(|line| line.contains(part)).count();
    assert_eq!(asked(&"ab".repeat(32)), 1, "what is refused is not asked for again");
    assert_eq!(asked("/v1/anneal/bundles/../../nodes") + asked("GET /v1/nodes"), 0);
    assert_eq!(asked("/v1/anneal/bundles/"), 7 + 2 * 3, "{requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_in_the_ramdisk_their_signature_is_what_counts() {
    let place = Place::new();
    let (ours, _) = SigningKey::generate().unwrap();
    let (theirs, _) = SigningKey::generate().unwrap();
    let all = || {
        let made = [made("signed", Some(&ours)), made("foreign", Some(&theirs)), made("unsigned", None)];
        made.into_iter().map(|(offer, bytes)| (offer, vec![bytes])).collect::<Vec<_>>()
    };
    fs::write(place.keys(), format!("{} # ours\n", ours.public())).unwrap();
    until_first_heartbeat(all(), &place).await;
    assert_eq!(place.found(), (vec!["signed".to_owned()], vec![]));
    // A list that cannot be read trusts no key.
    fs::write(place.keys(), "ed25519:oops\n").unwrap();
    let requests = until_first_heartbeat(all(), &place).await;
    assert_eq!(place.found(), (vec![], vec![]));
    assert!(!requests.iter().any(|line| line.contains("bundles")), "{requests:?}");
    // Without one the controller's word for the digest does.
    fs::remove_file(place.keys()).unwrap();
    until_first_heartbeat(all(), &place).await;
    assert_eq!(place.found().0, ["foreign", "signed", "unsigned"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn outside_the_ramdisk_nothing_is_mounted_unasked() {
    let (offer, bytes) = made("acme", None);
    let mut controller =
        Controller::start(Script { offer: true, bundles: vec![(offer, vec![bytes])], ..Script::default() })
            .await;
    let config = life::config(&controller, &["--api-url=API"]);
    assert_eq!(config.bundles, None);
    let life = Life::start(config, &Arc::default());
    controller.heartbeat().await;
    life.stop().await;
    assert!(!controller.requests().iter().any(|line| line.contains("bundles")));
}
