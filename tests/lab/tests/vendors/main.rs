//! The redfish driver against recorded trees of BMCs: each verb ends in the state that was asked for, or is refused by an error that
//! names what is missing.
//!
//! Two trees of our own writing are in the run. Any other folder of recordings (DMTF's Redfish-Mockup-Creator) is replayed by
//! `cargo xtask soak --part vendors --trees DIR`, which sets `ANNEAL_REDFISH_TREES`.

mod machine;
mod offers;
mod synthetic;
mod table;
mod verbs;

use std::path::{Path, PathBuf};

use table::{Cell, Row};

/// Directory of recorded trees, each in a directory of its own.
const TREES: &str = "ANNEAL_REDFISH_TREES";

#[tokio::test]
async fn trees_of_our_own_writing() {
    let dir = tempfile::tempdir().unwrap();
    for (name, resources) in synthetic::trees() {
        synthetic::write(&dir.path().join(name), &resources);
    }
    let rows = replay(dir.path()).await;
    println!("{}", table::print(&rows));
    assert_eq!(failures(&rows), Vec::<String>::new());
    let row = |tree: &str| rows.iter().find(|row| row.tree == tree).unwrap();
    let cells = |tree: &str, verb: &str| row(tree).cell(verb).clone();
    let (settings, direct, bare) = (synthetic::SETTINGS, synthetic::DIRECT, synthetic::BARE);
    for machine in [settings, direct] {
        for (verb, _) in verbs::ALL {
            let cell = cells(machine, verb);
            let is_refused = machine == direct && verb.ends_with("always");
            assert_eq!(matches!(cell, Cell::Works(_)), !is_refused, "{machine}, {verb}: {cell:?}");
        }
    }
    for (verb, says) in [
        ("cd once", "the BMC cannot boot from cdrom; it offers None, Pxe"),
        ("insert", "it has no virtual media"),
        ("set BIOS", "it offers no BIOS settings"),
        ("URL", "the BMC cannot boot from uefihttp"),
    ] {
        let Cell::Refused(why) = cells(bare, verb) else { panic!("{verb} is not refused") };
        assert!(why.contains(says), "{verb}: {why}");
    }
    assert!(matches!(cells(bare, "reboot"), Cell::Works(_)), "by ForceOff and On");
    let ids = [settings, direct, bare].map(|tree| row(tree).needs_id);
    assert_eq!(ids, [true, false, false], "a system has to be named where there are two");
}

/// Without a directory there is nothing to replay, and the test says so.
#[tokio::test]
async fn recorded_trees() {
    let Some(directory) = std::env::var_os(TREES).map(PathBuf::from) else {
        println!("{TREES} names no directory of recorded trees");
        return;
    };
    let rows = replay(&directory).await;
    println!("{}", table::print(&rows));
    assert!(!rows.is_empty(), "{} holds no recorded tree", directory.display());
    assert_eq!(failures(&rows), Vec::<String>::new());
}

/// Every tree of a directory, in the order of their names.
async fn replay(directory: &Path) -> Vec<Row> {
    let entries =
        std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut trees: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    trees.retain(|tree| tree.join("redfish/v1/index.json").is_file());
    trees.sort();
    let mut rows = Vec::new();
    for tree in trees {
        rows.push(machine::replay(&tree).await);
    }
    rows
}

fn failures(rows: &[Row]) -> Vec<String> {
    rows.iter().flat_map(Row::failures).collect()
}
