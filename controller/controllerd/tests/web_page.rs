//! The built program serves the web page, and logs browsers in: without users by a link, with users by a password.

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

struct Controller {
    dir: tempfile::TempDir,
    port: u16,
    settings: String,
    process: Child,
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Controller {
    /// One with these lines in `[api]` and behind it.
    async fn start(settings: &str) -> Self {
        Self::on(tempfile::tempdir().unwrap(), free_port(), settings).await
    }

    async fn on(dir: tempfile::TempDir, port: u16, settings: &str) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (config, state) = (dir.path().join("controller.toml"), dir.path().join("state"));
        let settings = settings.replace("DIR", dir.path().to_str().unwrap());
        let text = format!("state_dir = {state:?}\n[api]\nlisten = [\"127.0.0.1:{port}\"]\n{settings}");
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_anneal-controller"));
        command.arg("--config").arg(config).env_remove("RUNTIME_DIRECTORY");
        let log = File::options().create(true).append(true).open(dir.path().join("log")).unwrap();
        let process = command.stderr(log).spawn().unwrap();
        let mut this = Self { dir, port, settings, process };
        let deadline = Instant::now() + Duration::from_secs(60);
        while this.ask(Method::GET, "/v1").send().await.is_err() {
            assert!(this.process.try_wait().unwrap().is_none(), "it ended: {}", this.log());
            assert!(Instant::now() < deadline, "{}", this.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        this
    }

    /// The same after a restart.
    async fn again(mut self) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let dir = std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap());
        Self::on(dir, self.port, &self.settings).await
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join("state").join(name)
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let client =
            Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        client.request(method, format!("http://127.0.0.1:{}{path}", self.port))
    }

    async fn log_in(&self, body: Value) -> Response {
        self.ask(Method::POST, "/v1/anneal/session").json(&body).send().await.unwrap()
    }

    async fn enrol(&self, cookie: &str, csrf: &str) -> StatusCode {
        let request =
            self.ask(Method::POST, "/v1/nodes").header("cookie", cookie).header("anneal-csrf", csrf);
        request.json(&json!({"driver": "fake-hardware"})).send().await.unwrap().status()
    }
}

fn cookie_of(answer: &Response) -> String {
    let set = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(set.contains("; HttpOnly; SameSite=Strict"), "{set}");
    set.split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn without_users_a_link_opens_the_page_and_the_session_outlives_a_restart() {
    let controller = Controller::start("").await;
    let page = controller.ask(Method::GET, "/ui/").send().await.unwrap();
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(page.text().await.unwrap().to_lowercase().starts_with("<!doctype html>"));
    let root: Value = controller.ask(Method::GET, "/").send().await.unwrap().json().await.unwrap();
    assert_eq!(root["name"], "OpenStack Ironic API", "the root stays the API's");

    let token = std::fs::read_to_string(controller.state("operator.token")).unwrap();
    let ask =
        controller.ask(Method::POST, "/v1/anneal/session/links").basic_auth("carol", Some(token.trim()));
    let link: Value = ask.json(&json!({})).send().await.unwrap().json().await.unwrap();
    let url = link["url"].as_str().unwrap();
    let start = format!("http://127.0.0.1:{}/ui/#link=", controller.port);
    let secret = url.strip_prefix(&start).unwrap_or_else(|| panic!("{url}"));
    let answer = controller.log_in(json!({"link": secret})).await;
    assert_eq!(answer.status(), 201);
    let cookie = cookie_of(&answer);
    let csrf = answer.json::<Value>().await.unwrap()["csrf"].as_str().unwrap().to_owned();
    assert_eq!(controller.log_in(json!({"link": secret})).await.status(), 401, "once");
    assert_eq!(controller.enrol(&cookie, "").await, StatusCode::FORBIDDEN);
    assert_eq!(controller.enrol(&cookie, &csrf).await, StatusCode::CREATED);
    // As `anneal ui` asks.
    let socket = Client::builder().no_proxy().unix_socket(controller.state("api.sock")).build().unwrap();
    let link = socket.post("http://localhost/v1/anneal/session/links").json(&json!({})).send().await.unwrap();
    let link: Value = link.json().await.unwrap();
    assert!(link["url"].as_str().unwrap().starts_with(&start), "{link}");

    let controller = controller.again().await;
    assert_eq!(controller.enrol(&cookie, &csrf).await, StatusCode::CREATED);
    let log = controller.log();
    assert!(log.contains("login to the page") && log.contains("carol"), "{log}");
    let value = cookie.split('=').nth(1).unwrap();
    for hidden in [secret, value, &csrf, token.trim()] {
        assert!(!log.contains(hidden), "a secret is in the log");
    }
    // Another token, another session.
    let state = controller.state("operator.token");
    std::fs::write(&state, format!("{}\n", "5c".repeat(32))).unwrap();
    std::fs::set_permissions(&state, PermissionsExt::from_mode(0o600)).unwrap();
    let controller = controller.again().await;
    assert_eq!(controller.enrol(&cookie, &csrf).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn with_users_the_page_asks_for_a_password() {
    let dir = tempfile::tempdir().unwrap();
    // "right" at cost 4.
    let line = "alice:$2b$04$lsjQ/JpbC2eF5LzNJm44lOV/DjjTBTfF.EM.pNdXx/oMsotQuBZhe\n";
    std::fs::write(dir.path().join("htpasswd"), line).unwrap();
    let settings = "auth_strategy = \"http_basic\"\nhttp_basic_auth_user_file = \"DIR/htpasswd\"\n";
    let controller = Controller::on(dir, free_port(), settings).await;
    let shown = controller.ask(Method::GET, "/v1/anneal/session").send().await.unwrap();
    assert_eq!(shown.json::<Value>().await.unwrap()["login"], "password");
    assert_eq!(controller.log_in(json!({"user": "alice", "password": "wrong"})).await.status(), 401);
    let answer = controller.log_in(json!({"user": "alice", "password": "right"})).await;
    assert_eq!(answer.status(), 201, "{}", controller.log());
    let cookie = cookie_of(&answer);
    let csrf = answer.json::<Value>().await.unwrap()["csrf"].as_str().unwrap().to_owned();
    assert_eq!(controller.enrol(&cookie, &csrf).await, StatusCode::CREATED);
    assert!(!controller.log().contains("right\""), "{}", controller.log());
}

#[tokio::test]
async fn a_page_that_is_switched_off_is_not_there() {
    let controller = Controller::start("auth_strategy = \"noauth\"\n[ui]\nenabled = false\n").await;
    let status = async |path: &str| controller.ask(Method::GET, path).send().await.unwrap().status().as_u16();
    assert_eq!(
        (status("/ui/").await, status("/v1/anneal/session").await, status("/v1/nodes").await),
        (404, 404, 200)
    );
}
