//! Whether a run proves what `docs/specs.md` says: every test that it names has run and passed, and no more sentences are
//! open than its head allows.

use super::HEAVY;
use super::ran::Ran;
use crate::specs::Named;

/// How much was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Everything.
    Full,
    /// All but what boots nodes: nothing is said of the rest, nor of open sentences.
    Fast,
}

/// What a run says of the specifications.
#[derive(Debug, PartialEq)]
pub struct Proof {
    /// To be printed.
    pub lines: Vec<String>,
    /// Nothing is missing.
    pub complete: bool,
}

impl Proof {
    /// Judges a run whose tests all passed.
    pub fn of(named: &Named, ran: &Ran, extent: Extent) -> Self {
        let is_wanted = |name: &str| extent == Extent::Full || !is_heavy(name);
        let wanted: Vec<_> = named.tests.iter().filter(|(name, _)| is_wanted(name)).collect();
        let missing: Vec<_> = wanted.iter().filter(|(name, _)| !ran.has(name)).collect();
        let mut lines: Vec<String> = missing
            .iter()
            .map(|(name, sentences)| {
                format!("specs: {name} did not run; it is to assert {}", sentences.join(", "))
            })
            .collect();
        let kind = match extent {
            Extent::Full => "tests",
            Extent::Fast => "fast tests",
        };
        lines.push(match missing.len() {
            0 => format!("specs: {} {kind} named, all ran", wanted.len()),
            count => format!("specs: {} {kind} named, {count} of them did not run", wanted.len()),
        });
        if named.open > 0 {
            let Named { open, ceiling, .. } = named;
            lines.push(format!(
                "specs: {open} sentences are open, {ceiling} may be (cargo xtask specs --open)"
            ));
        }
        let enough = named.open <= named.ceiling || extent == Extent::Fast;
        Self { lines, complete: missing.is_empty() && enough }
    }
}

/// A scenario, or a test of a crate that boots nodes.
fn is_heavy(name: &str) -> bool {
    let owner = name.split(':').next().unwrap_or(name);
    // The crate `kill` has quick tests of its own in addition to its scenarios.
    HEAVY.contains(&owner) || name.starts_with("kill:") && !name.starts_with("kill::")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(tests: &[&str], open: usize) -> Named {
        let tests =
            tests.iter().map(|name| ((*name).to_owned(), vec!["CS-001".to_owned(), "CS-002".to_owned()]));
        Named { tests: tests.collect(), open, ceiling: 3 }
    }

    fn ran() -> Ran {
        let mut ran = Ran::default();
        ran.add_scenario("machines", "PASS clean_uefi (61.2 s)");
        ran
    }

    #[test]
    fn a_named_test_that_did_not_run_is_named() {
        let proof = Proof::of(&named(&["machines:clean_uefi"], 0), &ran(), Extent::Full);
        assert_eq!((proof.lines, proof.complete), (vec!["specs: 1 tests named, all ran".to_owned()], true));
        let proof =
            Proof::of(&named(&["machines:clean_uefi", "model::requests::verbs"], 0), &ran(), Extent::Full);
        assert!(!proof.complete);
        assert_eq!(
            proof.lines,
            [
                "specs: model::requests::verbs did not run; it is to assert CS-001, CS-002",
                "specs: 2 tests named, 1 of them did not run"
            ]
        );
    }

    #[test]
    fn open_sentences_are_reported_and_too_many_fail_a_full_run() {
        for (open, extent, complete) in
            [(3, Extent::Full, true), (4, Extent::Full, false), (4, Extent::Fast, true)]
        {
            let proof = Proof::of(&named(&["machines:clean_uefi"], open), &ran(), extent);
            assert_eq!(proof.complete, complete);
            assert!(
                proof.lines[1].starts_with(&format!("specs: {open} sentences are open, 3 may be")),
                "{proof:?}"
            );
        }
    }

    #[test]
    fn a_fast_run_owes_the_fast_tests_only() {
        let heavy =
            ["machines:two_agents", "contract:stock_client", "lab::disk::tests::x", "machines::disk::y"];
        let proof = Proof::of(&named(&heavy, 0), &Ran::default(), Extent::Fast);
        assert_eq!(
            (proof.lines, proof.complete),
            (vec!["specs: 0 fast tests named, all ran".to_owned()], true)
        );
        let proof = Proof::of(&named(&["machines-like::x"], 0), &Ran::default(), Extent::Fast);
        assert!(!proof.complete);
    }
}
