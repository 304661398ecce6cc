//! The served OpenAPI document is valid to openapi-spec-validator, and schemathesis makes requests of it: none is answered
//! by a 5xx, or by what the document does not say.

use crate::World;
use crate::controller::Controller;
use crate::process::check;
use crate::tool::Tool;
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Requests that schemathesis makes up for each operation, in addition to those that cover each schema once. `API_EXAMPLES`
/// sets another number.
const EXAMPLES: &str = "3";

/// The same seed makes the same requests; `API_SEED` sets another one.
const SEED: &str = "1";

/// What each answer must be.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";

/// Deploy steps under a name, so that there is a template to ask for.
const TEMPLATE: &str =
    r#"{"name": "CUSTOM_T", "steps": [{"interface": "bios", "step": "x", "args": {}, "priority": 1}]}"#;

/// The node that is there to the end.
const KEPT: &str = "one";

pub fn run(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let tool = Tool::anneal(world, &controller.endpoint);
    for name in ["one", "two", "three"] {
        tool.run(&["node", "create", "--driver", "fake-hardware", "--name", name])?;
        tool.run(&["node", "manage", name, "--wait", "60"])?;
    }
    // Schemathesis also deletes nodes; this one must not be deletable.
    tool.run(&["node", "adopt", KEPT, "--wait", "60"])?;
    let protect = r#"[{"op": "add", "path": "/protected", "value": true}]"#;
    request(&controller, "PATCH", &format!("/v1/nodes/{KEPT}"), protect)?;
    request(&controller, "POST", "/v1/deploy_templates", TEMPLATE)?;
    let document = format!("{}/v1/anneal/openapi", controller.endpoint);
    let file = world.dir.join("openapi.json");
    check(controller.curl().args(["--fail", "--output"]).arg(&file).arg(&document))?;
    check(Command::new(world.peers.program("schemathesis", "openapi-spec-validator")).arg(&file))?;

    let config = world.dir.join("schemathesis.toml");
    std::fs::write(&config, include_str!("../../peers/schemathesis.toml"))?;
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let mut command = Command::new(world.peers.program("schemathesis", "st"));
    command.current_dir(&world.dir).arg("--config-file").arg(&config).arg("run").arg(&document);
    command.args(["--checks", CHECKS, "--phases", "coverage,fuzzing", "--no-color", "--warnings", "off"]);
    command.args(["--generation-database", "none", "--seed", &setting("API_SEED", SEED)]);
    command.args(["--max-examples", &setting("API_EXAMPLES", EXAMPLES)]);
    if let Some(token) = controller.token() {
        command.args(["--auth", &format!("contract:{token}")]);
    }
    let said = String::from_utf8(check(&mut command)?.stdout)?;
    let summary = said
        .lines()
        .map(str::trim)
        .find(|line| line.contains(" generated, "))
        .with_context(|| said.clone())?;
    println!("      schemathesis: {summary}");

    let log = std::fs::read_to_string(world.dir.join("controller.log"))?;
    ensure!(!log.contains("panicked"), "the controller panicked, see its log");
    let kept = tool.json(&["node", "show", KEPT])?;
    ensure!(kept["protected"] == true && kept["name"] == KEPT, "{KEPT} is not what it was: {kept}");
    Ok(())
}

/// A request that must succeed.
fn request(controller: &Controller, method: &str, path: &str, body: &str) -> Result<()> {
    let mut curl = controller.curl();
    curl.args(["--fail-with-body", "--request", method, "--data", body]);
    curl.args([
        "--header",
        "X-OpenStack-Ironic-API-Version: 1.115",
        "--header",
        "Content-Type: application/json",
    ]);
    check(curl.arg(format!("{}{path}", controller.endpoint))).with_context(|| format!("{method} {path}"))?;
    Ok(())
}
