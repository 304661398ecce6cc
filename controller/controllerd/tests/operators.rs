//! Operators of a controller without users: a token in a private file, and a Unix socket.

use reqwest::{Client, Response};
use serde_json::json;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

struct Controller {
    dir: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Controller {
    /// One with its default way to authenticate, on the state in `dir`.
    async fn start(dir: tempfile::TempDir) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = dir.path().join("controller.toml");
        let state = dir.path().join("state");
        std::fs::write(&config, format!("state_dir = {state:?}\n[api]\nlisten = [\"127.0.0.1:{port}\"]\n"))
            .unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_anneal-controller"));
        command.arg("--config").arg(config).env_remove("RUNTIME_DIRECTORY");
        let process = command.stderr(File::create(dir.path().join("log")).unwrap()).spawn().unwrap();
        let mut this = Self { dir, port, process };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !this.log().contains("is ready") {
            assert!(this.process.try_wait().unwrap().is_none(), "it ended: {}", this.log());
            assert!(Instant::now() < deadline, "{}", this.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        this
    }

    /// Ends the process; the state stays.
    fn stop(mut self) -> tempfile::TempDir {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join("state").join(name)
    }

    fn token(&self) -> String {
        std::fs::read_to_string(self.state("operator.token")).unwrap().trim_end().to_owned()
    }

    async fn enrol(&self, login: Option<(&str, &str)>) -> Response {
        let client = Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("http://127.0.0.1:{}/v1/nodes", self.port));
        let request = request.json(&json!({"driver": "fake-hardware"}));
        let request = match login {
            Some((user, password)) => request.basic_auth(user, Some(password)),
            None => request,
        };
        request.send().await.unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn without_users_loopback_asks_for_the_token() {
    let controller = Controller::start(tempfile::tempdir().unwrap()).await;
    assert!(!controller.log().contains("clients on loopback now need"), "nothing was upgraded");
    let refused = controller.enrol(None).await;
    assert_eq!(refused.status(), 401);
    let file = controller.state("operator.token");
    assert_eq!(refused.headers()["anneal-token-file"], file.to_str().unwrap());
    assert_eq!((mode(&file), mode(&controller.state(""))), (0o600, 0o700));
    assert_eq!(controller.enrol(Some(("op", "wrong"))).await.status(), 401);
    let token = controller.token();
    assert_eq!(controller.enrol(Some(("op", &token))).await.status(), 201);
    assert!(!controller.log().contains(&token), "the token is in the log");
    assert!(controller.log().contains("op"), "the name of the operator is in the log");

    // It is the same after a restart.
    let again = Controller::start(controller.stop()).await;
    assert_eq!(again.enrol(Some(("other", &token))).await.status(), 201);
}

#[tokio::test]
async fn the_socket_serves_its_user_and_group() {
    let controller = Controller::start(tempfile::tempdir().unwrap()).await;
    let socket = controller.state("api.sock");
    assert_eq!(mode(&socket), 0o660);
    let client = Client::builder().no_proxy().unix_socket(socket.clone()).build().unwrap();
    let answer = client.post("http://localhost/v1/nodes").json(&json!({"driver": "fake-hardware"})).send();
    let node: serde_json::Value = answer.await.unwrap().error_for_status().unwrap().json().await.unwrap();
    let history = format!("http://localhost/v1/nodes/{}/history?detail=true", node["uuid"].as_str().unwrap());
    let request = client.get(history).header("x-openstack-ironic-api-version", "1.82").send();
    let history: serde_json::Value = request.await.unwrap().json().await.unwrap();
    let own = format!("uid {}", nix::unistd::getuid());
    assert!(history.to_string().contains(&own), "{history}");
    // What a page of a browser sends is rejected here too.
    let foreign = client.get("http://localhost/v1/nodes").header("origin", "https://evil.example").send();
    assert_eq!(foreign.await.unwrap().status(), 403);
    // After a kill the socket is still there; the next start replaces it.
    let again = Controller::start(controller.stop()).await;
    assert!(again.state("api.sock").exists());
    assert!(client.get("http://localhost/v1/nodes").send().await.is_ok());
}

#[tokio::test]
async fn an_upgraded_installation_starts_and_logs_what_is_different() {
    let controller = Controller::start(tempfile::tempdir().unwrap()).await;
    let dir = controller.stop();
    // As an earlier version left it.
    std::fs::remove_file(dir.path().join("state/operator.token")).unwrap();
    let upgraded = Controller::start(dir).await;
    let log = upgraded.log();
    for part in ["clients on loopback now need the operator token", "anneal env", "auth_strategy"] {
        assert!(log.contains(part), "{part:?} is not in {log}");
    }
    let again = Controller::start(upgraded.stop()).await;
    assert!(!again.log().contains("now need the operator token"));
}
