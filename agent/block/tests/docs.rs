//! What docs/erase.md documents is what the code does.

use block::{Method, Reason};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ERASE: &str = include_str!("../../../docs/erase.md");

/// The rows of the table with this head.
fn table(head: &str) -> Vec<Vec<String>> {
    let (_, body) = ERASE.split_once(head).unwrap_or_else(|| panic!("no table {head}"));
    let rows = body.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// The clauses of a row as a certificate names them, to readers who do not have the text around the table.
fn written_out(clauses: &str) -> String {
    let clauses: Vec<_> = clauses.split("; ").map(|clause| clause.replace('`', "")).collect();
    let whole = |clause: &String| match clause.strip_prefix("IEEE 2883 ") {
        Some(rest) => format!("IEEE 2883-2022 {rest} (NIST SP 800-88r2)"),
        None => clause.clone(),
    };
    clauses.iter().map(whole).collect::<Vec<_>>().join("; ")
}

/// All names of test functions of this crate.
fn tests(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| line.trim().strip_prefix("fn ")?.split_once('('));
            found.extend(names.map(|(name, _)| name.to_owned()));
        }
    }
}

/// Names of the scenarios that boot nodes: one file each.
fn scenarios(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        found.insert(entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    }
}

#[test]
fn every_method_has_its_row_with_its_level_and_a_test_that_exists() {
    let mut known = BTreeSet::new();
    let room = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests(&room.join("src"), &mut known);
    tests(&room.join("tests"), &mut known);
    scenarios(&room.join("../../tests/machines/src/scenarios"), &mut known);
    let mut documented = BTreeSet::new();
    for row in table("| disk | method | level | standard | where it ran | test |") {
        let [disk, method, level, standard, ran, test] = &row[..] else { panic!("{row:?}") };
        let method = Method::of(method.trim_matches('`')).unwrap_or_else(|| panic!("{method}"));
        for rotational in [false, true] {
            let other = if rotational { "flash" } else { "spinning" };
            if !disk.contains(other) {
                assert_eq!(level, method.level(rotational).as_str(), "{row:?}");
                assert_eq!(written_out(standard), method.standard(), "{row:?}");
            }
        }
        for test in test.split(", ") {
            assert!(known.contains(test.trim_matches('`').rsplit("::").next().unwrap()), "{test}: {row:?}");
        }
        // What ran on no device is never said to have.
        assert_eq!(
            ran.contains("lab node"),
            test.contains("machines::") || method == Method::Overwrite,
            "{row:?}"
        );
        assert!(!ran.is_empty(), "{row:?}");
        documented.insert(method);
    }
    assert_eq!(documented, BTreeSet::from(Method::ALL));
    for row in table("| metadata | made by | test |") {
        for test in row[2].split(", ") {
            assert!(known.contains(test.trim_matches('`').rsplit("::").next().unwrap()), "{test}");
        }
    }
}

#[test]
fn every_reason_is_documented_with_what_may_be_done_about_it() {
    let rows = table("| reason | what | may be |");
    let documented: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(documented, Reason::ALL.map(Reason::as_str));
    for (row, reason) in rows.iter().zip(Reason::ALL) {
        assert_eq!(row[2].contains("or erased"), reason.may_be_overridden(), "{row:?}");
    }
}
