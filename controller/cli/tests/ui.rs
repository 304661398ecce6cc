//! `anneal ui` and `anneal rights` against the real API.

use crate::controller;

use api::Auth;
use api::auth::OperatorToken;
use controller::Controller;
use model::ProvisionState;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

#[test]
fn the_link_logs_a_browser_in_once() {
    let dir = tempfile::tempdir().unwrap();
    let (file, token) = (dir.path().join("operator.token"), "5c".repeat(32));
    std::fs::write(&file, format!("{token}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let controller = Controller::guarded(Auth::Token(Arc::new(OperatorToken::new(token, file))));
    let (code, out, err) = controller.run(&["ui"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("within a minute"), "{err}");
    // What is printed is the link and nothing else.
    let start = format!("{}/ui/#link=", controller.endpoint);
    let link = out.strip_prefix(&start).unwrap_or_else(|| panic!("{out}")).trim_end();
    assert!(link.len() > 40 && !link.contains(char::is_whitespace), "{link}");
    let (status, session) = controller.post("/v1/anneal/session", &json!({"link": link}));
    assert_eq!((status, &session["role"]), (201, &json!("admin")), "{session}");
    assert_eq!(controller.post("/v1/anneal/session", &json!({"link": link})).0, 401);
    let machine = controller.json(&["ui"]);
    assert!(machine["url"].as_str().unwrap().starts_with(&start), "{machine}");
}

#[test]
fn a_controller_without_a_login_has_a_page_without_a_link() {
    let controller = Controller::new();
    assert_eq!(
        controller.json(&["ui"]),
        json!({"url": format!("{}/ui/", controller.endpoint), "expires_at": null})
    );
}

#[test]
fn rights_are_shown() {
    let controller = Controller::new();
    controller.with_node("n1", ProvisionState::Manageable);
    let own = controller.json(&["rights"]);
    assert_eq!((&own["user"], &own["role"]), (&Value::Null, &json!("admin")));
    let (code, out, err) = controller.run(&["node", "rights", "n1"]);
    assert_eq!(code, 0, "{err}");
    let provide = out.lines().find(|line| line.starts_with("provide ")).unwrap_or_else(|| panic!("{out}"));
    assert!(provide.contains("yes") && provide.contains("its disks are erased"), "{out}");
}
