//! What is shown to vendors as good is good: the Python SDK and its example, the shell example, the manager of the
//! tutorial; and `PROTOCOL.md` has the rules.

use hwm_conformance::{Deadlines, Plan, Report, Rule, examine};
use serde_json::{Map, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn room(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Five times the usual deadlines: a machine that is busy with other tests is not what is examined.
fn passes(plan: &Plan, unseen: &[Rule]) -> Report {
    let usual = plan.deadlines;
    let deadlines =
        Deadlines { hello: usual.hello * 5, detect: usual.detect * 5, steps: usual.steps * 5, ..usual };
    let report = examine(&Plan { deadlines, ..plan.clone() }).expect("starts");
    assert!(report.passed(), "{report}");
    assert_eq!(report.unseen().collect::<Vec<_>>(), unseen, "{report}");
    report
}

fn python(program: &Path) -> Plan {
    Plan::new(vec!["python3".into(), program.display().to_string()])
}

#[test]
fn the_python_example_keeps_every_rule() {
    let mut plan = python(&room("python/examples/acme_led.py"));
    plan.runs.insert("set_boot_mode".into(), Map::from_iter([("mode".into(), json!("Bios"))]));
    plan.erases = vec!["/dev/nvme0n1".into()];
    passes(&plan, &[]);
}

#[test]
fn the_shell_example_keeps_every_rule() {
    let plan = Plan::new(vec![room("hwm-example-external/shell/acme.sh").display().to_string()]);
    // It saves nothing, cannot be cancelled, erases nothing, and asks nothing.
    passes(&plan, &[Rule::Checkpoint, Rule::Resume, Rule::Cancel, Rule::Erase, Rule::Services]);
}

#[test]
fn the_tests_of_the_python_module_pass() {
    let test = room("python/tests/test_anneal_hwm.py");
    let output = Command::new("python3").arg("-B").arg(test).output().expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The tutorial says what to write and what to run. This test does so, block by block.
#[test]
fn the_tutorial_ends_with_a_manager_that_works() {
    let tutorial =
        std::fs::read_to_string(room("../docs/write-a-hardware-manager.md")).expect("the tutorial");
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::copy(room("python/anneal_hwm.py"), directory.path().join("anneal_hwm.py")).expect("copied");
    let (mut written, mut last) = (String::new(), "");
    let mut tried = 0;
    for block in tutorial.split("\n```").skip(1).step_by(2) {
        let (kind, text) = block.split_once('\n').expect("a fence has a line");
        match kind {
            "python" => writeln!(written, "{text}").expect("written"),
            "python last" => last = text,
            "console" => {
                std::fs::write(directory.path().join("acme.py"), format!("{written}{last}\n"))
                    .expect("written");
                let (command, shown) =
                    text.split_once("\n\u{2026}\n").expect("a command, and what it prints");
                let command = command.strip_prefix("$ hwm-conformance").expect("the program");
                let output = Command::new("/bin/sh")
                    .args(["-c", &format!("{}{command}", env!("CARGO_BIN_EXE_hwm-conformance"))])
                    .current_dir(directory.path())
                    .output()
                    .expect("runs");
                let printed = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{command}\n{printed}");
                assert_eq!(printed.lines().last(), Some(shown), "{command}\n{printed}");
                tried += 1;
            }
            // On with tests/machines, scenario tutorial.
            "sh" | "sh operator" => {}
            other => panic!("a block of kind {other:?}"),
        }
    }
    assert_eq!(tried, 5);
}

#[test]
fn the_document_has_the_rules() {
    let document = std::fs::read_to_string(room("hwm-sdk/PROTOCOL.md")).expect("PROTOCOL.md");
    let table = Rule::ALL.iter().fold(String::new(), |mut table, rule| {
        writeln!(table, "| {} | `{}` | {} |", rule.number(), rule.name(), rule.text()).expect("written");
        table
    });
    assert!(document.contains(&table), "section 8 is to be:\n{table}");
}
