//! `anneal node why`, and the commands that it advises: each is one that `anneal` understands, and asks for what is meant.

use crate::common;

use common::serve;
use model::request::Policy;
use model::why::{Command, Facts, Why};
use model::{Contact, Node, PowerTarget, ProvisionState, Timestamp, Verb};
use serde_json::{Value, json};
use uuid::Uuid;

/// Every command that is advised in some state under some flag, and those that an answer of the hardware brings.
fn advised() -> Vec<Command> {
    let mut all: Vec<Command> = PowerTarget::ALL.map(Command::Power).into();
    all.push(Command::SetAgentKind("ironic-python-agent"));
    all.push(Command::RetireDisk("a 'b' $(c)".to_owned()));
    all.push(Command::AcceptMeasurements);
    for state in ProvisionState::ALL {
        for flags in 0..8 {
            let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(0));
            node.provision_state = state;
            (node.retired, node.protected, node.maintenance) =
                (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
            let facts = Facts {
                node: &node,
                contact: &Contact::default(),
                conductor: Some("c1"),
                locked_by: None,
                policy: Policy { automated_clean: true },
            };
            for advice in Why::of(&facts).help.commands {
                if !all.contains(&advice.command) {
                    all.push(advice.command);
                }
            }
        }
    }
    all
}

/// The words that a shell makes of a line, without `anneal`.
fn words(line: &str) -> Vec<String> {
    let script = format!("for word in {line}; do printf '%s\\0' \"$word\"; done");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let words: Vec<String> = text.split_terminator('\0').map(str::to_owned).collect();
    assert_eq!(words[0], "anneal");
    words[1..].to_vec()
}

#[test]
fn every_advised_command_is_understood_and_asks_for_what_is_meant() {
    let all = advised();
    assert!(all.len() >= 20, "{all:?}");
    for command in all {
        let line = command.line("n1");
        let server = serve(|_, seen| {
            let known = json!({"known": [], "retired": [], "changed": {"id": "m1", "differences": []}});
            (200, if seen.line.contains("/anneal/") { known } else { common::node("available", None) })
        });
        let given = words(&line);
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let (code, _, err) = server.run_with(&given, "let me in\n");
        assert_eq!((code, err.as_str()), (0, ""), "{line}");
        let (asked, body) = (server.lines()[0].clone(), server.body(0));
        let unset = |path: &str| json!([{"op": "add", "path": path, "value": false}]);
        match command {
            Command::Verb(verb) => {
                assert_eq!(asked, "PUT /v1/nodes/n1/states/provision", "{line}");
                assert_eq!(Verb::parse_target(body["target"].as_str().unwrap()), Some(verb), "{line}");
            }
            Command::Power(target) => {
                assert_eq!(asked, "PUT /v1/nodes/n1/states/power", "{line}");
                assert_eq!(body, json!({"target": target.as_str()}), "{line}");
            }
            Command::UnsetMaintenance => assert_eq!(asked, "DELETE /v1/nodes/n1/maintenance"),
            Command::UnsetRetired => {
                assert_eq!((asked.as_str(), body), ("PATCH /v1/nodes/n1", unset("/retired")))
            }
            Command::UnsetProtected => {
                assert_eq!((asked.as_str(), body), ("PATCH /v1/nodes/n1", unset("/protected")));
            }
            Command::SetAgentKind(kind) => {
                assert_eq!(body, json!([{"op": "add", "path": "/properties/agent_kind", "value": kind}]));
            }
            Command::RetireDisk(name) => {
                assert_eq!(asked, "POST /v1/anneal/nodes/n1/disks/retire");
                assert_eq!(body["disk"], name.as_str());
            }
            Command::AcceptMeasurements => {
                assert_eq!(server.lines()[1], "POST /v1/anneal/nodes/n1/measurements/accept");
                assert_eq!(server.body(1), json!({"id": "m1"}));
            }
        }
    }
}

#[test]
fn the_answer_is_shown_for_people_and_as_it_is() {
    let answer = json!({
        "uuid": "u1", "name": "n1", "provision_state": "clean failed", "now": "2026-11-21T09:00:00+00:00",
        "waits_for": {"what": "user", "text": "a user", "since": "2026-11-21T08:59:00+00:00", "age_s": 60, "until": null,
                      "in_s": null},
        "tried": [], "next": {"by": "user", "text": "nothing happens before a command", "at": null, "in_s": null},
        "help": {"text": "these lead on", "commands": [{"command": "anneal node provide n1", "does": "cleans it again"}]},
    });
    let sent = answer.clone();
    let server = serve(move |_, _| (200, sent.clone()));
    let (code, out, err) = server.run(&["node", "why", "n1"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let shown = "since      2026-11-21T08:59:00+00:00 (1m00s ago)\nnext       nothing happens before a command\n\
                 help       these lead on\n  anneal node provide n1\n      cleans it again\n";
    assert!(out.ends_with(shown), "{out}");
    let (_, out, _) = server.run(&["node", "why", "n1", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), answer);
    assert_eq!(server.lines(), ["GET /v1/anneal/nodes/n1/why", "GET /v1/anneal/nodes/n1/why"]);
}
