//! `anneal` finds the token of a controller without users, and sends it to no other process. Needs root: a file is given to
//! another user.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

const TOKEN: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// What asks for the token in `file`, and the headers `Authorization` that it got.
struct Controller {
    endpoint: String,
    seen: Arc<Mutex<Vec<String>>>,
    _runtime: tokio::runtime::Runtime,
}

#[derive(Clone)]
struct Shared {
    file: PathBuf,
    seen: Arc<Mutex<Vec<String>>>,
}

async fn answer(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    match headers.get("authorization") {
        None => {
            let file = [("anneal-token-file", shared.file.to_str().unwrap().to_owned())];
            (StatusCode::UNAUTHORIZED, file, "{}").into_response()
        }
        Some(sent) => {
            shared.seen.lock().unwrap().push(sent.to_str().unwrap().to_owned());
            axum::Json(serde_json::json!({"drivers": []})).into_response()
        }
    }
}

impl Controller {
    fn with(file: &Path) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared { file: file.to_owned(), seen: seen.clone() };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(shared);
        runtime.spawn(async move { axum::serve::serve(listener, router).await });
        Self { endpoint, seen, _runtime: runtime }
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anneal"));
        command.args(words).env_clear().env("ANNEAL_ENDPOINT", &self.endpoint).env("USER", "alice");
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    }
}

fn token_file(dir: &Path, mode: u32) -> PathBuf {
    let file = dir.join("operator.token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    file
}

#[test]
fn the_token_is_found_and_sent_with_the_users_name() {
    let dir = tempfile::tempdir().unwrap();
    let controller = Controller::with(&token_file(dir.path(), 0o600));
    let (code, _, said) = controller.run(&["driver", "list"]);
    assert_eq!((code, said.as_str()), (0, ""));
    // alice and the token, in base64.
    let sent = controller.seen.lock().unwrap().clone();
    assert_eq!(sent, [format!("Basic {}", STANDARD.encode(format!("alice:{TOKEN}")))]);
}

#[test]
fn other_clients_get_what_they_need_from_env() {
    let dir = tempfile::tempdir().unwrap();
    let controller = Controller::with(&token_file(dir.path(), 0o600));
    let (code, printed, said) = controller.run(&["env"]);
    assert_eq!((code, said.as_str()), (0, ""));
    let script = format!(
        "{printed}\nprintf '%s ' \"$OS_AUTH_TYPE\" \"$OS_ENDPOINT\" \"$OS_USERNAME\" \"$OS_PASSWORD\""
    );
    let read = Command::new("/bin/sh").args(["-ec", &script]).output().unwrap();
    let expected = format!("http_basic {} alice {TOKEN} ", controller.endpoint);
    assert_eq!(String::from_utf8(read.stdout).unwrap(), expected);
}

/// Another user listens at the port while the controller does not run, and names the file of the controller.
#[test]
fn the_token_is_not_sent_to_another_user() {
    let dir = tempfile::tempdir().unwrap();
    let file = token_file(dir.path(), 0o600);
    chown(&file, Some(65_534), None).expect("this test needs root");
    let controller = Controller::with(&file);
    let (code, _, said) = controller.run(&["driver", "list"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("belongs to user 65534") && !said.contains(TOKEN), "{said}");
    assert!(controller.seen.lock().unwrap().is_empty());
}

#[test]
fn no_other_file_is_sent() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("id_ed25519");
    std::fs::write(&secret, "a private key").unwrap();
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
    for (file, why) in [
        (secret, "no token file"),
        (token_file(dir.path(), 0o644), "others can read"),
        (dir.path().join("missing"), "No such file"),
    ] {
        let controller = Controller::with(&file);
        let (code, _, said) = controller.run(&["driver", "list"]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(why) && said.contains(file.to_str().unwrap()), "{said}");
        assert!(controller.seen.lock().unwrap().is_empty(), "{}", file.display());
    }
}
