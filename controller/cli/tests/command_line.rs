//! The built `anneal` against a small server on loopback that answers as Ironic does.

use crate::common;

use axum::Router;
use common::{Answer, VERBS, anneal, fault, node, router, serve};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

#[test]
fn create_sends_node_then_ports_and_keeps_secrets_off_the_command_line() {
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(secret.path(), "12345\n").unwrap();
    let server = serve(|_, seen| match seen.line.as_str() {
        "POST /v1/nodes" => (201, node("enroll", None)),
        _ => (201, json!({"uuid": "p1"})),
    });
    let password = format!("redfish_password=@{}", secret.path().display());
    let (code, out, err) = server.run(&[
        "node",
        "create",
        "--driver",
        "redfish",
        "--name",
        "n1",
        "--driver-info",
        "redfish_address=https://bmc",
        "--driver-info",
        &password,
        "--property",
        "memory_mb=1024",
        "--extra",
        "rack=r1",
        "--interface",
        "deploy=direct",
        "--mac",
        "52-54-00-AA-BB-01",
        "--mac",
        "52:54:00:aa:bb:02",
        "-o",
        "json",
    ]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), node("enroll", None));
    assert_eq!(server.lines(), ["POST /v1/nodes", "POST /v1/ports", "POST /v1/ports"]);
    assert_eq!(
        server.body(0),
        json!({"driver": "redfish", "name": "n1", "deploy_interface": "direct", "properties": {"memory_mb": 1024}, "extra": {"rack": "r1"},
               "driver_info": {"redfish_address": "https://bmc", "redfish_password": "12345"}})
    );
    assert_eq!(server.body(1), json!({"address": "52:54:00:aa:bb:01", "node_uuid": "u1"}));
}

#[test]
fn a_refused_port_takes_the_new_node_with_it() {
    let server = serve(|_, seen| match seen.line.as_str() {
        "POST /v1/nodes" => (201, node("enroll", None)),
        "POST /v1/ports" => (409, fault("A port with MAC address 52:54:00:aa:bb:01 already exists.")),
        _ => (204, Value::Null),
    });
    let (code, _, err) = server.run(&["node", "create", "--driver", "ipmi", "--mac", "52:54:00:aa:bb:01"]);
    assert_eq!(code, 1);
    assert!(err.contains("52:54:00:aa:bb:01 already exists. (the node was removed again)"), "{err}");
    // A duplicate does not go away by trying again.
    assert_eq!(server.lines(), ["POST /v1/nodes", "POST /v1/ports", "DELETE /v1/nodes/u1"]);
}

#[test]
fn an_older_server_is_asked_in_its_own_version() {
    let server = serve(|_, seen| match seen.version.as_str() {
        "1.81" => (200, node("available", None)),
        other => (406, fault(&format!("Version {other} was requested"))),
    });
    let (code, out, _) = server.run(&["node", "show", "n1", "--fields", "provision_state"]);
    assert_eq!((code, out.contains("available")), (0, true));
    let versions: Vec<_> = server.seen.lock().unwrap().iter().map(|seen| seen.version.clone()).collect();
    assert_eq!(versions, ["1.115", "1.81"]);
}

#[test]
fn a_406_for_another_reason_is_an_error() {
    let server = serve(|_, _| (406, fault("not acceptable at all")));
    let (code, _, err) = server.run(&["node", "show", "n1"]);
    assert_eq!((code, err.as_str()), (1, "anneal: not acceptable at all (HTTP 406)\n"));
    assert_eq!(server.lines().len(), 2);
}

#[test]
fn lists_follow_pages_and_filters() {
    let server = serve(|index, _| match index {
        0 => (
            200,
            json!({"nodes": [node("available", None)],
                          "next": "http://elsewhere:1/v1/nodes?limit=1&marker=u1"}),
        ),
        _ => (200, json!({"nodes": [node("clean failed", Some("available"))]})),
    });
    let (code, out, _) =
        server.run(&["node", "list", "--no-maintenance", "--provision-state", "clean failed"]);
    assert_eq!(code, 0);
    assert_eq!(
        out,
        "UUID  NAME  POWER      PROVISION     BASIS  TARGET     MAINTENANCE  DRIVER\n\
         u1    n1    power off  available     -      -          false        -\n\
         u1    n1    power off  clean failed  -      available  false        -\n"
    );
    let lines = server.lines();
    assert!(
        lines[0].contains("maintenance=false") && lines[0].contains("provision_state=clean+failed"),
        "{lines:?}"
    );
    assert_eq!(lines[1], "GET /v1/nodes?limit=1&marker=u1");
}

#[test]
fn clean_waits_for_manageable_and_prints_each_change_once() {
    let server = serve(|index, seen| match (index, seen.line.starts_with("PUT")) {
        (_, true) => (202, Value::Null),
        (1 | 2, _) => (200, node("cleaning", Some("manageable"))),
        (3, _) => (200, node("clean wait", Some("manageable"))),
        _ => (200, node("manageable", None)),
    });
    let steps = r#"[{"interface": "deploy", "step": "erase_devices"}]"#;
    let (code, out, err) = server.run(&["node", "clean", "n1", "--clean-steps", steps, "--wait", "30"]);
    assert_eq!((code, out.as_str()), (0, "n1: manageable\n"));
    assert_eq!(err, "n1: cleaning\nn1: clean wait\nn1: manageable\n");
    assert_eq!(server.lines()[0], "PUT /v1/nodes/n1/states/provision");
    assert_eq!(
        server.body(0),
        json!({"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase_devices"}]})
    );
}

#[test]
fn exit_codes_distinguish_failed_timed_out_and_unreachable() {
    let failing = serve(|index, _| match index {
        0 => (202, Value::Null),
        _ => {
            let mut node = node("clean failed", Some("available"));
            node["last_error"] = "sda: I/O error".into();
            (200, node)
        }
    });
    let (code, _, err) = failing.run(&["node", "provide", "n1", "--wait"]);
    assert_eq!(code, 4);
    assert!(
        err.ends_with("anneal: node n1 is \"clean failed\", not \"available\": sda: I/O error\n"),
        "{err}"
    );

    let slow = serve(|index, _| match index {
        0 => (202, Value::Null),
        _ => (200, node("clean wait", Some("available"))),
    });
    assert_eq!(slow.run(&["node", "provide", "n1", "--wait", "1"]).0, 3);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let output = anneal(&closed, &["node", "list"], "");
    assert_eq!(output.status.code(), Some(5));

    let web = serve(|_, _| (200, json!({"hello": "world"})));
    assert_eq!(web.run(&["node", "list"]).0, 5);
}

#[test]
fn steps_belong_to_clean_alone_and_bad_ones_are_not_sent() {
    let server = serve(|_, _| (202, Value::Null));
    for bad in [
        &["node", "clean", "n1"][..],
        &["node", "clean", "n1", "--clean-steps", "[]"],
        &["node", "clean", "n1", "--clean-steps", r#"[{"step": "x"}]"#],
        &["node", "set", "n1"],
        &["node", "set", "n1", "--retired-reason", "old"],
        &["port", "create", "52:54:00", "--node", "n1"],
        &["--pin", "sha256:00", "node", "list"],
        &["--cacert", "/nonexistent.pem", "--endpoint", "https://127.0.0.1:1", "node", "list"],
    ] {
        let (code, _, err) = server.run(bad);
        assert_eq!(code, 2, "{bad:?}: {err}");
    }
    let steps = r#"[{"interface": "deploy", "step": "x"}]"#;
    for verb in VERBS.iter().filter(|verb| **verb != "clean") {
        let needed: &[&str] = match *verb {
            "override" => &["--reason", "r"],
            "service" => &["--service-steps", steps],
            _ => &[],
        };
        let line = [&["node", verb, "n1"], needed, &["--clean-steps", steps]].concat();
        let (code, _, err) = server.run(&line);
        assert_eq!(code, 2, "{verb}: {err}");
        assert!(err.contains("--clean-steps"), "{verb}: {err}");
    }
    assert_eq!(server.lines(), Vec::<String>::new());
}

#[test]
fn steps_come_from_a_file_or_from_standard_input() {
    let server = serve(|_, seen| match seen.line.starts_with("PUT") {
        true => (202, Value::Null),
        false => (200, node("cleaning", Some("manageable"))),
    });
    let steps = json!([{"interface": "raid", "step": "create_configuration", "args": {"size": 1}}]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), steps.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    assert_eq!(server.run(&["node", "clean", "n1", "--clean-steps", path]).0, 0);

    let (code, _, err) = server.run_with(&["node", "clean", "n1", "--clean-steps", "-"], &steps.to_string());
    assert_eq!(code, 0, "{err}");
    for index in [0, 2] {
        assert_eq!(server.body(index), json!({"target": "clean", "clean_steps": steps}));
    }
}

#[test]
fn the_wanted_raid_is_set_and_taken_away_by_its_own_request() {
    let server = serve(|_, seen| match seen.line.starts_with("PUT") {
        true => (204, Value::Null),
        false => (200, node("manageable", None)),
    });
    let wanted = json!({"logical_disks": [{"size_gb": "MAX", "raid_level": "1"}]});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), wanted.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    let line = ["node", "set", "n1", "--target-raid-config", path, "--description", "x"];
    assert_eq!(server.run(&line).0, 0);
    assert_eq!(server.run(&["node", "unset", "n1", "--target-raid-config"]).0, 0);
    let put = "PUT /v1/nodes/n1/states/raid";
    assert_eq!(server.lines(), [put, "PATCH /v1/nodes/n1", put, "GET /v1/nodes/n1"]);
    assert_eq!((server.body(0), server.body(2)), (wanted, json!({})));

    for bad in ["[]", "{}", r#"{"logical_disks": {}}"#, "/nonexistent"] {
        let (code, _, err) = server.run(&["node", "set", "n1", "--name", "x", "--target-raid-config", bad]);
        assert!(code == 2 && err.contains("--target-raid-config"), "{bad}: {err}");
    }
    assert_eq!(server.lines().len(), 4, "nothing is sent of what is wrong");
}

#[test]
fn a_locked_node_is_tried_again() {
    let server = serve(|index, _| match index {
        0 => (
            409,
            fault("Node n1 is locked by host c1, please retry after the current operation is completed."),
        ),
        1 => (202, Value::Null),
        _ => (200, node("verifying", Some("manageable"))),
    });
    let (code, out, err) = server.run(&["node", "manage", "n1"]);
    assert_eq!((code, out.as_str()), (0, "n1: verifying\n"));
    assert!(err.ends_with("Trying again (1 of 5).\n"), "{err}");
}

#[test]
fn unknown_steps_are_not_an_empty_list() {
    let power = json!({"interface": "power", "step": "reset", "priority": 3, "abortable": false, "args": []});
    let server = serve(move |index, _| match index {
        0 => Answer::not_yet(json!({"message": "The steps are being asked for.", "steps": []}), "-1"),
        _ => Answer::not_yet(json!({"message": "The agent boots.", "steps": [power]}), "90"),
    });
    let (code, out, err) = server.run(&["node", "steps", "n1", "--min-priority", "1"]);
    assert_eq!((code, out.as_str()), (6, ""));
    assert_eq!(err, "anneal: The steps are being asked for. Please try again later.\n");
    // What is known without the agent is shown, but the exit code still says that it is not all.
    let (code, out, err) = server.run(&["node", "steps", "n1"]);
    assert_eq!(
        (code, out.as_str()),
        (6, "STEP         PRIORITY  ABORTABLE  ARGUMENTS\npower.reset  3         no\n")
    );
    assert_eq!(err, "anneal: The agent boots. Please try again in 1m30s.\n");
    assert_eq!(
        server.lines(),
        ["GET /v1/nodes/n1/cleaning/steps?min_priority=1", "GET /v1/nodes/n1/cleaning/steps"]
    );
}

#[test]
fn power_waits_until_nothing_is_asked_for_any_more() {
    let server = serve(|index, _| {
        let mut node = node("manageable", None);
        match index {
            0 => return (202, Value::Null),
            1 => node["target_power_state"] = "power on".into(),
            _ => node["power_state"] = "power on".into(),
        }
        (200, node)
    });
    let (code, out, _) = server.run(&["node", "power", "on", "n1", "--wait", "30"]);
    assert_eq!((code, out.as_str()), (0, "n1: power on\n"));
    assert_eq!(server.body(0), json!({"target": "power on"}));
}

#[test]
fn watch_prints_changes_and_ends_when_all_rest() {
    let server = serve(|index, _| {
        let mut one = node("clean wait", Some("available"));
        one["driver_internal_info"] = json!({"anneal": {"progress": {"disks": [
            {"device": "/dev/sda", "phase": "erasing", "bytes_done": 55, "bytes_total": 100, "rate": 10}]}}});
        match index {
            0 | 1 => (200, one),
            _ => (200, node("clean failed", Some("available"))),
        }
    });
    let (code, out, err) = server.run(&["node", "watch", "n1", "--until-stable"]);
    assert_eq!(code, 4);
    assert_eq!(
        out,
        "n1  clean wait → available  |  power off\n\
         n1  /dev/sda: erasing 50%\n\
         n1  clean failed → available  |  power off\n"
    );
    assert_eq!(err, "anneal: n1 is \"clean failed\"\n");
}

#[test]
fn watch_ends_in_the_requested_state_or_reports_that_it_is_out_of_reach() {
    let to = |end: &'static str| {
        serve(move |index, _| (200, node(if index < 2 { "clean wait" } else { end }, Some("available"))))
    };
    let until = |end, state| to(end).run(&["node", "watch", "n1", "--until", state]);
    assert_eq!(until("available", "available").0, 0);
    assert_eq!(until("clean hold", "clean hold").0, 0, "also one that does not rest");
    let (code, _, err) = until("clean failed", "available");
    assert_eq!((code, err.as_str()), (4, "anneal: node n1 is \"clean failed\", not \"available\"\n"));
    assert_eq!(to("available").run(&["node", "watch", "--until", "available", "--until-stable"]).0, 2);
}

#[test]
fn a_controller_that_restarts_does_not_end_the_wait() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (first, _) = router(|index, _| match index {
        0 => (202, Value::Null),
        _ => (200, node("cleaning", Some("available"))),
    });
    let serve_on = |listener: std::net::TcpListener, router: Router| {
        listener.set_nonblocking(true).unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve::serve(listener, router).await
        })
    };
    let running = serve_on(listener, first);
    let mut child = Command::new(env!("CARGO_BIN_EXE_anneal"))
        .args(["node", "provide", "n1", "--wait", "60"])
        .env_clear()
        .env("ANNEAL_ENDPOINT", format!("http://{address}"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert_eq!(line, "n1: cleaning\n");
    running.abort();
    drop(runtime.block_on(running));
    line.clear();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.ends_with("; still trying\n"), "{line}");
    let (second, _) = router(|_, _| (200, node("available", None)));
    let listener = std::net::TcpListener::bind(address).unwrap();
    serve_on(listener, second);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
