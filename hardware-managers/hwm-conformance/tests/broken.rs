//! Each broken manager breaks exactly the rule it is made to break, and the good one that they are made of none.

use hwm_conformance::{Deadlines, Plan, Rule, examine};
use serde_json::Map;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

const BROKEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broken/broken.py");
const GOOD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/broken/good.py");
/// Makes Python start fast and write nothing next to the programs.
const QUICK: &str = "-BSEs";

/// The interpreter itself: what stands in the path may be a script that looks for one, at each of hundreds of starts.
fn interpreter() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| {
        let print = ["-c", "import sys; print(sys.executable)"];
        let output = Command::new("python3").args(print).output().expect("python3 runs");
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    })
}

/// Half of what the slow ones sleep, and plenty for what is not slow.
fn plan(program: &str, name: &str) -> Plan {
    let mut plan = Plan::new([interpreter(), QUICK, program, name].map(Into::into).into());
    let short = |hangs: bool, usual: u64| Duration::from_secs(if hangs { 2 } else { usual });
    plan.deadlines = Deadlines {
        hello: short(name == "hangs_in_hello", 20),
        detect: short(name == "hangs_in_detect", 20),
        init: short(name == "hangs_in_init", 20),
        inventory: short(name == "hangs_in_inventory", 20),
        steps: short(name == "hangs_in_steps" || name.starts_with("silent"), 20),
        run: short(name == "hangs_in_run", 20),
        erase_capabilities: short(name == "hangs_in_erase_capabilities", 20),
        grace: short(
            name.starts_with("stays") || name == "ignores_cancel" || name.starts_with("reads_only"),
            10,
        ),
    };
    plan.runs.insert("count".into(), Map::new());
    plan.erases = vec!["/dev/nvme0n1".into()];
    plan
}

#[test]
fn the_good_one_keeps_every_rule() {
    let report = examine(&plan(GOOD, "")).expect("starts");
    assert!(report.passed(), "{report}");
    assert_eq!(report.unseen().count(), 0, "{report}");
    assert_eq!(report.kept().count(), Rule::ALL.len());
}

#[test]
fn each_broken_one_breaks_its_rule_and_no_other() {
    let list = Command::new(interpreter()).args([QUICK, BROKEN, "--list"]).output().expect("python3 runs");
    let list = String::from_utf8(list.stdout).expect("UTF-8");
    let broken: Vec<(&str, &str)> =
        list.lines().map(|line| line.split_once(' ').expect("name and rule")).collect();
    assert!(broken.len() >= 60, "only {} broken managers", broken.len());
    let waiting = Mutex::new(broken.iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        // Most of them wait most of the time.
        for _ in 0..6 {
            scope.spawn(|| {
                while let Some((name, rule)) = { waiting.lock().expect("no panic").next() } {
                    let report = examine(&plan(BROKEN, name)).expect("starts");
                    let rules: Vec<&str> = report.broken().map(|(rule, _)| rule.name()).collect();
                    if rules != [*rule] {
                        let fault = format!("{name} breaks {rules:?}, not {rule}:\n{report}");
                        wrong.lock().expect("no panic").push(fault);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), broken.len(), wrong.join("\n\n"));
    let shown: BTreeSet<&str> = broken.iter().map(|(_, rule)| *rule).collect();
    let unproved: Vec<&str> =
        Rule::ALL.iter().map(|rule| rule.name()).filter(|name| !shown.contains(name)).collect();
    assert!(unproved.is_empty(), "no broken manager breaks {unproved:?}");
}
