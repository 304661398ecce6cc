//! docs/command-line.md, "Endpoints": every endpoint of the API has a command that uses it, or a reason why none does.

use crate::common;
use crate::example;

use common::{Server, node, serve};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const PAGE: &str = include_str!("../../../docs/command-line.md");
const BUNDLES: &str = include_str!("../../../docs/bundles.md");
const API: &str = include_str!("../../../docs/openapi.json");

/// The rows of the table: `GET /v1/nodes`, and what stands next to it.
fn rows() -> Vec<(&'static str, &'static str)> {
    let (_, table) = PAGE.split_once("\n## Endpoints\n").expect("the section");
    let row = |line: &'static str| {
        let (endpoint, command) = line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")?;
        Some((endpoint, command))
    };
    table.lines().filter_map(row).collect()
}

/// The endpoints of the API, `GET /v1/nodes`, each with whether it is a no-op.
fn endpoints() -> BTreeMap<String, bool> {
    let api: Value = serde_json::from_str(API).unwrap();
    let mut endpoints = BTreeMap::new();
    for (path, methods) in api["paths"].as_object().unwrap() {
        for (method, endpoint) in
            methods.as_object().unwrap().iter().filter(|(name, _)| *name != "parameters")
        {
            endpoints.insert(format!("{} {path}", method.to_uppercase()), endpoint.get("x-noop").is_some());
        }
    }
    endpoints
}

/// The command of a row, if it has one.
fn command(said: &str) -> Option<&str> {
    said.strip_prefix('`')?.strip_suffix('`').filter(|command| !command.contains('`'))
}

#[test]
fn the_table_has_every_endpoint_once_and_no_other() {
    let endpoints = endpoints();
    assert!(endpoints.len() > 100, "{}", endpoints.len());
    let mut listed = BTreeMap::new();
    for (endpoint, said) in rows() {
        assert!(listed.insert(endpoint, said).is_none(), "{endpoint} is listed twice");
        let no_op = endpoints.get(endpoint).unwrap_or_else(|| panic!("{endpoint} is no endpoint of the API"));
        assert_eq!(*no_op, said.starts_with("a no-op: "), "{endpoint}: {said}");
        assert!(!said.trim().is_empty(), "{endpoint} has neither a command nor a reason");
    }
    let missing: Vec<_> =
        endpoints.keys().filter(|endpoint| !listed.contains_key(endpoint.as_str())).collect();
    assert_eq!(missing, Vec::<&String>::new(), "docs/command-line.md lacks these endpoints");
}

/// A server that has whatever is asked for.
fn server() -> Server {
    let key = example::key().public().to_string();
    serve(move |_, seen| {
        let mut body = node("available", None);
        for list in [
            "nodes",
            "history",
            "traits",
            "deploy_templates",
            "allocations",
            "chassis",
            "portgroups",
            "ports",
            "runbooks",
            "inspection_rules",
            "connectors",
            "targets",
            "conductors",
            "shards",
            "drivers",
            "bundles",
            "certificates",
            "bios",
            "firmware",
            "indicators",
            "children",
            "known",
            "retired",
            "changes",
            "entries",
        ] {
            body[list] = json!([]);
        }
        body["key"] = key.as_str().into();
        // Measurements that wait to be accepted.
        body["changed"] = json!({"id": "m1"});
        (200, if seen.line.contains("/steps") { json!([]) } else { body })
    })
}

/// Files that commands read.
fn write_files(dir: &Path) {
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    write(
        "steps",
        r#"[{"op": "fail", "interface": "deploy", "step": "x", "args": {}, "order": 1, "priority": 1}]"#,
    );
    write("raid", r#"{"logical_disks": []}"#);
    let (_, example) = BUNDLES.split_once("```json\n").unwrap();
    let manifest = example.split("```").next().unwrap();
    write("manifest", manifest);
    let manifest: Value = serde_json::from_str(manifest).unwrap();
    let program = dir.join("root").join(&manifest["entry"][0].as_str().unwrap()[1..]);
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, "#!").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
}

/// The words of a command, with what its placeholders may stand for.
fn words(command: &str, dir: &Path) -> Vec<String> {
    let file = match command {
        _ if command.starts_with("anneal certificate") => "new",
        _ if command.starts_with("anneal bundle") => "bundle",
        _ if command.contains("raid") => "raid",
        _ => "steps",
    };
    let file = dir.join(file).to_str().unwrap().to_owned();
    let value = |word: &str| match word {
        "FILE" => file.clone(),
        "DIGEST" => "0a".repeat(32),
        "NODE" => "n1".to_owned(),
        "LAMP" => "led@system".to_owned(),
        other => other.to_owned(),
    };
    let mut words: Vec<String> = command.split(' ').skip(1).map(value).collect();
    if command == "anneal node watch" {
        words.push("--until-stable".to_owned());
    }
    words
}

/// Whether a request line is one to an endpoint: `PUT /v1/nodes/n1/traits/CUSTOM_A`, `PUT /v1/nodes/{ident}/traits/{trait}`.
fn is_request_to(line: &str, endpoint: &str) -> bool {
    let line = line.split('?').next().unwrap();
    let (asked, parts): (Vec<_>, Vec<_>) = (line.split('/').collect(), endpoint.split('/').collect());
    asked.len() == parts.len()
        && asked.iter().zip(parts).all(|(asked, part)| *asked == part || part.starts_with('{'))
}

#[test]
fn the_command_of_each_endpoint_sends_a_request_to_it() {
    let kept = tempfile::tempdir().unwrap();
    let dir = kept.path();
    write_files(dir);
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let server = server();
    let build = ["bundle", "build", &path("root"), &path("manifest"), &path("bundle")];
    assert_eq!(server.run(&build).0, 0, "{}", server.run(&build).2);
    let mut used = 0;
    for (endpoint, said) in rows() {
        let commands = said.split('`').skip(1).step_by(2).filter(|span| span.starts_with("anneal "));
        for line in commands.filter(|line| *line != "anneal volume") {
            let before = server.lines().len();
            let words = words(line, dir);
            let (code, _, err) = server.run_with(&words.iter().map(String::as_str).collect::<Vec<_>>(), "");
            assert!(!err.contains("Usage:"), "{line}: {err}");
            let sent = server.lines().split_off(before);
            let asked = sent.iter().any(|line| is_request_to(line, endpoint));
            assert!(
                asked || command(said) != Some(line),
                "{endpoint}: {line} ends with {code} and sent {sent:?} {err}"
            );
            used += usize::from(asked);
        }
    }
    assert!(used > 100, "only {used} commands");
}

#[test]
fn every_filter_of_nodes_is_one_of_a_selection() {
    let api: Value = serde_json::from_str(API).unwrap();
    let parameters = api["paths"]["/v1/nodes"]["get"]["parameters"].as_array().unwrap();
    let names = parameters.iter().filter(|one| one["in"] == "query").map(|one| one["name"].as_str().unwrap());
    let no_filters = ["limit", "marker", "sort_key", "sort_dir", "fields", "detail", "include_children"];
    let names: Vec<_> = names.filter(|name| !no_filters.contains(name)).collect();
    assert!(names.len() > 15, "{names:?}");
    let server = server();
    for name in names {
        let (code, _, err) = server.run(&["node", "list", "--where", &format!("{name}=x")]);
        assert_eq!(code, 0, "{name}: {err}");
        let asked = server.lines().pop().unwrap();
        assert!(asked.contains(&format!("&{name}=x")), "{asked}");
    }
}
