//! The systemd unit as systemd itself reads it (package `systemd`; it need not run).

use std::path::Path;
use std::process::Command;

const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/anneal-controller.service");
/// Highest exposure that `systemd-analyze security` may find, in tenths of ten.
const EXPOSURE: u32 = 20;

fn analyze(arguments: &[&str], unit: &Path) -> (bool, String) {
    let output = Command::new("systemd-analyze").args(arguments).arg(unit).output().expect("package systemd");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The unit with the program of this build in place of the installed one.
fn unit(dir: &Path) -> std::path::PathBuf {
    let text = std::fs::read_to_string(UNIT).unwrap();
    let path = dir.join("anneal-controller.service");
    std::fs::write(
        &path,
        text.replace("/usr/bin/anneal-controller", env!("CARGO_BIN_EXE_anneal-controller")),
    )
    .unwrap();
    path
}

#[test]
fn systemd_finds_no_fault_in_the_unit() {
    let dir = tempfile::tempdir().unwrap();
    let unit = unit(dir.path());
    let (good, said) = analyze(&["verify", "--man=no"], &unit);
    assert!(good && said.trim().is_empty(), "{said}");
    // An unknown setting is a fault: the check looks at what it is given.
    let broken = dir.path().join("broken.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    std::fs::write(&broken, text.replace("NoNewPrivileges=", "NoNewPriviledges=")).unwrap();
    let (_, said) = analyze(&["verify", "--man=no"], &broken);
    assert!(said.contains("NoNewPriviledges"), "{said}");
}

#[test]
fn the_unit_leaves_little_exposed() {
    let dir = tempfile::tempdir().unwrap();
    let threshold = format!("--threshold={EXPOSURE}");
    let (good, said) = analyze(&["security", "--offline=true", "--no-pager", &threshold], &unit(dir.path()));
    assert!(good, "{said}");
}

/// System calls that the controller makes and that the groups in the filter take away.
#[test]
fn the_filter_lets_pass_what_the_controller_calls() {
    let text = std::fs::read_to_string(UNIT).unwrap();
    let filters: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")).collect();
    // The last word about a call counts.
    let last = filters.last().unwrap();
    for call in ["setrlimit", "prlimit64", "setpriority"] {
        assert!(last.split(' ').any(|allowed| allowed == call), "{call} is not in {last:?}");
    }
}
