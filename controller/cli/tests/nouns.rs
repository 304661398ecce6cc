//! Steps, hardware, traits, deploy templates, and what `show` and `watch` print about a run.

use crate::common;

use common::{fault, node, serve};
use serde_json::{Value, json};

#[test]
fn steps_of_each_kind_are_asked_for_where_they_are() {
    let step = json!({"interface": "deploy", "step": "write_image", "priority": 80, "args": []});
    let server = serve(move |_, _| (200, json!([step])));
    for (kind, path) in [("clean", "cleaning"), ("deploy", "deploy"), ("service", "service")] {
        let (code, out, err) = server.run(&["node", "steps", "n1", "--kind", kind, "--min-priority", "0.5"]);
        assert_eq!(code, 0, "{err}");
        assert!(out.ends_with("\ndeploy.write_image  80        -\n"), "{out}");
        let asked = server.lines().pop().unwrap();
        assert_eq!(asked, format!("GET /v1/nodes/n1/{path}/steps?min_priority=0.5"));
    }
    for bad in ["-1", "x", "inf"] {
        assert_eq!(server.run(&["node", "steps", "n1", "--min-priority", bad]).0, 2, "{bad}");
    }
}

#[test]
fn the_inventory_is_shown_for_people_and_as_it_is() {
    let body = json!({"inventory": {"memory": {"physical_mb": 1024}, "disks": [{"name": "/dev/sda", "size": 1024}]},
                      "plugin_data": {"x": 1}});
    let answer = body.clone();
    let server = serve(move |index, _| match index {
        0 | 1 => (200, answer.clone()),
        _ => (404, fault("Could not find inventory for node n1.")),
    });
    let (code, out, _) = server.run(&["node", "inventory", "n1"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("memory  1024 MiB fitted\n\nDISK      SIZE     KIND"), "{out}");
    let (_, out, _) = server.run(&["node", "inventory", "n1", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), body);
    let (code, _, err) = server.run(&["node", "inventory", "n1"]);
    assert_eq!((code, err.as_str()), (1, "anneal: Could not find inventory for node n1. (HTTP 404)\n"));
    assert_eq!(server.lines()[0], "GET /v1/nodes/n1/inventory");
}

/// Compares with a file of `tests/frozen`; `ANNEAL_FREEZE=1` writes it anew, for a person to read.
fn frozen(file: &str, text: &str) {
    let path = format!("{}/tests/frozen/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("ANNEAL_FREEZE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap(), "{file}");
}

#[test]
fn all_that_was_discovered_is_shown_with_who_reported_it() {
    let body: Value = serde_json::from_str(include_str!("frozen/inventory.json")).unwrap();
    let answer = body.clone();
    let server = serve(move |_, _| (200, answer.clone()));
    let (code, out, err) = server.run(&["node", "inventory", "n1"]);
    assert_eq!(code, 0, "{err}");
    frozen("inventory.txt", &out);
    for json in [&["--json"][..], &["-o", "json"]] {
        let (_, out, _) = server.run(&[&["node", "inventory", "n1"], json].concat());
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), body);
    }
    assert_eq!(server.run(&["node", "inventory", "n1", "--json", "-o", "table"]).0, 2);
}

#[test]
fn traits_are_listed_added_removed_and_set() {
    let server = serve(|_, seen| match seen.line.starts_with("GET") {
        true => (200, json!({"traits": ["CUSTOM_A", "HW_CPU_X86_VMX"]})),
        false => (204, Value::Null),
    });
    for (line, asked) in [
        (&["list", "n1"][..], &[][..]),
        (
            &["add", "n1", "CUSTOM_A", "CUSTOM_B"],
            &["PUT /v1/nodes/n1/traits/CUSTOM_A", "PUT /v1/nodes/n1/traits/CUSTOM_B"],
        ),
        (&["remove", "n1", "CUSTOM_A"], &["DELETE /v1/nodes/n1/traits/CUSTOM_A"]),
        (&["remove", "n1", "--all"], &["DELETE /v1/nodes/n1/traits"]),
        (&["set", "n1", "CUSTOM_A", "CUSTOM_B"], &["PUT /v1/nodes/n1/traits"]),
    ] {
        let before = server.lines().len();
        let (code, out, err) = server.run(&[&["node", "trait"], line].concat());
        assert_eq!((code, out.as_str()), (0, "CUSTOM_A\nHW_CPU_X86_VMX\n"), "{line:?}: {err}");
        let lines = server.lines().split_off(before);
        assert_eq!(lines, [asked, &["GET /v1/nodes/n1/traits"]].concat());
    }
    assert_eq!(server.body(server.lines().len() - 2), json!({"traits": ["CUSTOM_A", "CUSTOM_B"]}));
    // Taking all away by forgetting to name them would be a pity.
    for bad in [&["set", "n1"][..], &["remove", "n1"], &["add", "n1"], &["remove", "n1", "CUSTOM_A", "--all"]]
    {
        assert_eq!(server.run(&[&["node", "trait"], bad].concat()).0, 2, "{bad:?}");
    }
}

#[test]
fn deploy_templates_are_made_listed_shown_and_removed() {
    let steps = json!([{"interface": "bios", "step": "apply_configuration", "args": {}, "priority": 150}]);
    let template = json!({"uuid": "t1", "name": "CUSTOM_HT_ON", "steps": steps, "extra": {}, "links": []});
    let server = serve(move |_, seen| match seen.line.split(' ').next().unwrap() {
        "POST" => (201, template.clone()),
        "DELETE" => (204, Value::Null),
        _ if seen.line.contains('?') => (200, json!({"deploy_templates": [template]})),
        _ => (200, template.clone()),
    });
    let line = ["deploy-template", "create", "CUSTOM_HT_ON", "--steps", "-", "--extra", "a=1"];
    let (code, out, err) = server.run_with(&line, &steps.to_string());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("name   CUSTOM_HT_ON\n"), "{out}");
    assert_eq!(server.body(0), json!({"name": "CUSTOM_HT_ON", "steps": steps, "extra": {"a": 1}}));
    let (_, out, _) = server.run(&["deploy-template", "list"]);
    assert_eq!(
        out,
        "UUID  NAME          STEPS (PRIORITY)\nt1    CUSTOM_HT_ON  bios.apply_configuration (150)\n"
    );
    assert!(server.run(&["deploy-template", "show", "CUSTOM_HT_ON"]).1.contains("uuid   t1\n"));
    let (_, out, _) = server.run(&["deploy-template", "delete", "CUSTOM_HT_ON"]);
    assert_eq!(out, "deleted deploy template CUSTOM_HT_ON\n");
    assert_eq!(
        server.lines(),
        [
            "POST /v1/deploy_templates",
            "GET /v1/deploy_templates?detail=true",
            "GET /v1/deploy_templates/CUSTOM_HT_ON",
            "DELETE /v1/deploy_templates/CUSTOM_HT_ON"
        ]
    );
    assert_eq!(server.run(&["deploy-template", "create", "CUSTOM_X", "--steps", "[]"]).0, 2);
}

/// specs/deploy-steps.txt: responses for a node include the deploy step, and its entries in driver_internal_info.
#[test]
fn show_and_watch_print_the_step_of_a_run() {
    for (kind, state, rest) in [
        ("clean", "clean wait", "manageable"),
        ("deploy", "wait call-back", "active"),
        ("service", "service wait", "active"),
    ] {
        let server = serve(move |index, _| {
            let mut running = node(state, Some(rest));
            running[format!("{kind}_step")] = json!({"interface": "deploy", "step": "one"});
            running["driver_internal_info"] =
                json!({format!("{kind}_steps"): [{}, {}], format!("{kind}_step_index"): 1});
            if index < 2 { (200, running) } else { (200, node(rest, None)) }
        });
        let (_, out, _) = server.run(&["node", "show", "n1"]);
        assert!(out.contains(&format!("\n{kind}_step ")) && out.contains(r#""step":"one""#), "{out}");
        assert!(out.contains(&format!("{kind}_step_index")), "{out}");
        let (code, out, _) = server.run(&["node", "watch", "n1", "--until-stable"]);
        assert_eq!(code, 0);
        assert!(
            out.starts_with(&format!("n1  {state} → {rest}  |  power off  |  step deploy.one (2/2)\n")),
            "{out}"
        );
    }
}

#[test]
fn a_plan_is_a_table_of_disks_and_a_refusal_is_an_exit_code() {
    let disk = json!({"device": "/dev/sda", "serial": "S1", "wwn": null, "size": 1024, "fate": "erase", "reason": null, // wording: wire name
        "methods": [{"method": "discard", "level": "clear", "estimate_s": 3, "abortable": true, "reason": "RZAT"},
                    {"method": "overwrite-zeroes", "level": "clear", "estimate_s": 65, "abortable": true, "reason": "any"}]});
    let refused = json!({"device": "/dev/sdb", "serial": "S2", "wwn": "0x5", "size": 2048, "fate": "refuse", // wording: wire name
        "reason": "shared: VMFS", "methods": []});
    let good = json!({"refuses": false, "estimate_s": 3, "deadline_s": 3612, "disks": [disk]});
    let bad = json!({"refuses": true, "estimate_s": 3, "disks": [disk, refused]});
    let answers =
        [(200, good), (200, bad.clone()), (200, bad.clone()), (200, json!({})), (409, fault("no agent"))];
    let server = serve(move |index, _| answers[index].clone());
    let (code, out, err) = server.run(&["node", "plan", "n1"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(
        out,
        "DEVICE    SERIAL  WWN  SIZE     DECISION  METHOD            LEVEL  TAKES  REASON\n\
         /dev/sda  S1      -    1.0 KiB  erase     discard           clear  3s     RZAT\n\
         \x20                                         overwrite-zeroes  clear  1m05s  any\n\
         \nestimate without reading back  3s\n\
         deadline of the step           1h00m\n"
    );
    let purge = ["node", "plan", "n1", "--step", "erase_devices_express", "--args", r#"{"level": "purge"}"#];
    let (code, out, err) = server.run(&purge);
    assert_eq!((code, err.as_str()), (4, "anneal: the run would be refused, because of /dev/sdb\n"));
    assert!(out.contains("refuse    -                 -      -      shared: VMFS\n"), "{out}");
    let asked = json!({"step": "erase_devices_express", "args": {"level": "purge"}});
    assert_eq!((server.lines()[1].as_str(), server.body(1)), ("POST /v1/anneal/nodes/n1/erase_plan", asked));
    let (code, out, _) = server.run(&["node", "plan", "n1", "-o", "json"]);
    assert_eq!((code, serde_json::from_str::<Value>(&out).unwrap()), (4, bad));
    assert_eq!(server.run(&["node", "plan", "n1"]).0, 4, "an answer that does not say so is no consent");
    assert_eq!(server.run(&["node", "plan", "n1"]).0, 1);
    assert_eq!(server.run(&["node", "plan", "n1", "--args", "[]"]).0, 2);
}

#[test]
fn the_known_disks_of_a_node_are_listed_and_one_is_retired() {
    let known = json!({"serial": "S1", "wwn": null, "model": "M"});
    let retired =
        json!({"serial": "S2", "wwn": "0x5", "model": null, "reason": "to the vendor", "retired_at": "t"});
    let answers = [
        (200, json!({"known": [known, {"serial": "S2", "wwn": "0x5", "model": null}], "retired": []})),
        (200, json!({"known": [known], "retired": [retired]})),
        (404, fault("The node has no known disk")),
    ];
    let server = serve(move |index, _| answers[index].clone());
    let (code, out, err) = server.run(&["node", "disks", "list", "n1"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("SERIAL  WWN  MODEL  STATE  REASON\nS1      -    M      known\n"), "{out}");
    let (code, out, _) = server.run(&["node", "disks", "retire", "n1", "S2", "--reason", "to the vendor"]);
    assert_eq!(code, 0);
    assert!(out.contains("retired  to the vendor"), "{out}");
    assert_eq!(server.lines()[1], "POST /v1/anneal/nodes/n1/disks/retire");
    assert_eq!(server.body(1), json!({"disk": "S2", "reason": "to the vendor"}));
    assert_eq!(server.run(&["node", "disks", "retire", "n1", "S9", "--reason", "x"]).0, 1);
    assert_eq!(server.run(&["node", "disks", "retire", "n1", "S9"]).0, 2, "a reason is needed");
}
