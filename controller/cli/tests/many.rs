//! One command for many nodes: which are selected, the question, and the summary.

use crate::common;
use crate::controller;

use common::{fault, node, serve};
use controller::Controller;
use model::ProvisionState::{Active, Enroll, Manageable};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// Five nodes: three of project x, of which two are manageable, and two of y.
fn fleet() -> Controller {
    let controller = Controller::new();
    for (name, state, owner) in [
        ("a", Manageable, "x"),
        ("b", Manageable, "x"),
        ("c", Enroll, "x"),
        ("d", Manageable, "y"),
        ("e", Active, "y"),
    ] {
        controller.with_node(name, state);
        controller.json(&["node", "set", name, "--owner", owner]);
    }
    controller
}

fn states(controller: &Controller) -> Vec<String> {
    let nodes = controller.json(&["node", "list", "--fields", "name,provision_state"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let state = |one: &Value| format!("{} {}", text(&one["name"]), text(&one["provision_state"]));
    let mut states: Vec<_> = nodes.as_array().unwrap().iter().map(state).collect();
    states.sort();
    states
}

#[test]
fn a_verb_goes_to_the_selected_nodes_and_the_summary_says_what_came_of_it() {
    let controller = fleet();
    let provide = ["node", "provide", "--where", "owner=x", "--at-once", "2", "--yes"];
    let (code, out, err) = controller.run(&provide);
    assert_eq!(code, 1, "{err}");
    assert!(out.starts_with("NODE  OUTCOME  REASON\nc     refused  "), "{out}");
    assert!(out.ends_with(" (HTTP 400)\n\naccepted 2, refused 1 of 3\n"), "{out}");
    assert!(
        err.contains("a: accepted\n") && err.contains("b: accepted\n") && err.contains("c: refused: "),
        "{err}"
    );
    assert!(err.ends_with("anneal: 1 of 3 nodes did not do what was asked\n"), "{err}");
    let after = ["a cleaning", "b cleaning", "c enroll", "d manageable", "e active"];
    assert_eq!(states(&controller), after);

    // Both conditions, and nothing else.
    let both = ["node", "manage", "--where", "owner=x,provision_state=enroll"];
    let (code, out, err) = controller.run(&both);
    assert_eq!((code, out.as_str()), (0, "accepted 1 of 1\n"), "{err}");
    assert_eq!(states(&controller)[2], "c verifying");
    let (code, out, _) = controller.run(&["node", "manage", "--where", "owner=z"]);
    assert_eq!((code, out.as_str()), (0, "no node is selected\n"));
}

#[test]
fn edits_and_names_of_many_and_what_programs_read() {
    let controller = fleet();
    let edit = ["node", "set", "--where", "owner=x", "--resource-class", "large"];
    assert_eq!(controller.run(&edit).1, "done 3 of 3\n");
    let large = controller.json(&["node", "list", "--where", "resource_class=large"]);
    assert_eq!(large.as_array().unwrap().len(), 3);
    assert_eq!(
        controller.run(&["node", "maintenance", "set", "a", "b", "a", "--reason", "r"]).1,
        "done 2 of 2\n"
    );
    let (code, out, _) = controller.run(&["node", "maintenance", "unset", "a", "nowhere", "--json"]);
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &said["counts"]["done"], &said["counts"]["refused"]), (1, &json!(1), &json!(1)));
    assert_eq!(said["nodes"][1]["outcome"], "refused");
    assert!(said["nodes"][1]["reason"].as_str().unwrap().contains("nowhere"), "{said}");
    assert_eq!(controller.run(&["node", "power", "on", "a", "d"]).0, 0, "nothing is lost by power");
    assert_eq!(controller.run(&["node", "delete", "c", "--yes"]).1, "deleted node c\n");
}

/// What destroys or interrupts is not done to many without a question; what can be taken back is.
#[test]
fn many_nodes_are_not_destroyed_without_a_question() {
    let steps = r#"[{"interface": "deploy", "step": "x"}]"#;
    let asked = [
        &["provide"][..],
        &["clean", "--clean-steps", steps],
        &["deploy"],
        &["rebuild"],
        &["undeploy"],
        &["override", "--reason", "r"],
        &["rescue", "--rescue-password", "p"],
        &["unrescue"],
        &["service", "--service-steps", steps],
        &["delete"],
        &["power", "off"],
        &["power", "reboot"],
        &["power", "soft-off"],
        &["power", "soft-reboot"],
    ];
    let free = [
        &["manage"][..],
        &["inspect"],
        &["adopt"],
        &["abort"],
        &["unhold"],
        &["power", "on"],
        &["maintenance", "set"],
    ];
    let fleet = || {
        serve(|_, seen| match seen.line.starts_with("GET /v1/nodes?") {
            true => (200, json!({"nodes": [node("active", None)]})),
            false => (200, node("active", None)),
        })
    };
    for words in asked {
        for nodes in [&["--where", "owner=x"][..], &["n1", "n2"]] {
            let server = fleet();
            let line = [&["node"], words, nodes].concat();
            let (code, out, err) = server.run(&line);
            assert_eq!((code, out.as_str()), (2, ""), "{line:?}: {err}");
            assert!(err.contains("n1") && err.contains("--yes"), "{line:?}: {err}");
            assert!(
                server.lines().iter().all(|line| line.starts_with("GET")),
                "{line:?}: {:?}",
                server.lines()
            );
            let (code, _, err) = server.run(&[&line[..], &["--yes"]].concat());
            assert_eq!(code, 0, "{line:?}: {err}");
        }
        let (code, _, err) = fleet().run(&[&["node"], words, &["n1"]].concat());
        assert_eq!(code, 0, "{words:?}: one node that is named is meant: {err}");
    }
    for words in free {
        let (code, _, err) = fleet().run(&[&["node"], words, &["--where", "owner=x"]].concat());
        assert_eq!(code, 0, "{words:?}: {err}");
    }
}

/// A terminal of its own, made by script(1), in which `answer` is typed.
fn at_a_terminal(controller: &Controller, line: &str, answer: &str) -> (i32, String) {
    let mut child = Command::new("script")
        .args([
            "--quiet",
            "--return",
            "--command",
            &format!("{} {line}", env!("CARGO_BIN_EXE_anneal")),
            "/dev/null",
        ])
        .env("ANNEAL_ENDPOINT", &controller.endpoint)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{answer}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_answer_at_a_terminal_is_the_number_of_nodes() {
    let controller = fleet();
    let line = "node provide --where provision_state=manageable";
    for answer in ["y", "yes", "2", ""] {
        let (code, shown) = at_a_terminal(&controller, line, answer);
        assert_eq!(code, 2, "{answer:?}: {shown}");
        let question = "3 nodes (a, b, d): automated cleaning erases their disks.";
        assert!(shown.contains(question) && shown.contains("Type 3 to go on: "), "{shown}");
    }
    assert!(!states(&controller).join(" ").contains("cleaning"));
    let (code, shown) = at_a_terminal(&controller, line, "3");
    assert!(code == 0 && shown.contains("accepted 3 of 3"), "{shown}");
}

#[test]
fn a_selection_that_could_mean_every_node_is_not_made() {
    let server = serve(|_, _| (200, json!({"nodes": []})));
    for bad in [
        &["--where", "owner="][..],
        &["--where", "owner"],
        &["--where", ""],
        &["--where", "name=n1"],
        &["--where", "include_children=true"],
        &["--where", "owner=x,owner=y"],
        &["--where", "owner=x", "n1"],
        &["--where", "owner=x", "--at-once", "0"],
        &["--where", "owner=x", "--at-once", "101"],
        &[],
    ] {
        let (code, _, err) = server.run(&[&["node", "manage"], bad].concat());
        assert_eq!(code, 2, "{bad:?}: {err}");
    }
    assert_eq!(server.run(&["node", "list", "--driver", "ipmi", "--where", "driver=redfish"]).0, 2);
    assert_eq!(server.lines(), Vec::<String>::new());
}

#[test]
fn with_wait_each_node_is_followed_and_the_exit_code_says_how_all_failed() {
    let server = serve(|_, seen| {
        let ident = seen.line.split('/').nth(3).unwrap_or_default().split('?').next().unwrap().to_owned();
        match (seen.line.starts_with("PUT"), ident.as_str()) {
            (true, "locked") => (400, fault("no")),
            (true, _) => (202, Value::Null),
            (false, "bad") => (200, node("clean failed", Some("available"))),
            (false, _) => (200, node("available", None)),
        }
    });
    let provide =
        |nodes: &[&str]| server.run(&[&["node", "provide", "--yes", "--wait", "30"], nodes].concat());
    let (code, out, _) = provide(&["good", "fine"]);
    assert_eq!((code, out.as_str()), (0, "done 2 of 2\n"));
    let (code, out, _) = provide(&["good", "bad"]);
    assert!(code == 4 && out.ends_with("\ndone 1, failed 1 of 2\n"), "{out}");
    assert_eq!(provide(&["good", "bad", "locked"]).0, 1, "failures of two kinds");
}
