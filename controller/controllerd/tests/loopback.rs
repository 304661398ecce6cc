//! The API on loopback: pages in a browser on the same machine reach its port, and must not reach the API.

use reqwest::{Client, StatusCode};
use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

struct Controller(Child);

impl Drop for Controller {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_request_of_a_page_of_another_site_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = dir.path().join("controller.toml");
    let state = dir.path().join("state");
    let text = format!(
        "state_dir = {state:?}\n[api]\nlisten = [\"127.0.0.1:{port}\"]\nauth_strategy = \"noauth\"\nallowed_hosts = [\"anneal.example\"]\n"
    );
    std::fs::write(&config, text).unwrap();
    let program = env!("CARGO_BIN_EXE_anneal-controller");
    let mut process = Controller(Command::new(program).arg("--config").arg(&config).spawn().unwrap());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().build().unwrap();
    let create = async |headers: &[(&str, &str)]| {
        let request = client.post(format!("http://127.0.0.1:{port}/v1/nodes"));
        let request = request.json(&serde_json::json!({"driver": "fake-hardware"}));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.map(|answer| answer.status()).ok()
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while create(&[]).await != Some(StatusCode::CREATED) {
        assert!(process.0.try_wait().unwrap().is_none(), "it ended");
        assert!(Instant::now() < deadline, "it does not serve");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for headers in [
        [("host", "rebind.evil.example")],
        [("origin", "https://evil.example")],
        [("sec-fetch-site", "cross-site")],
    ] {
        assert_eq!(create(&headers).await, Some(StatusCode::FORBIDDEN), "{headers:?}");
    }
    for headers in [[("host", "localhost")], [("host", "anneal.example")]] {
        assert_eq!(create(&headers).await, Some(StatusCode::CREATED), "{headers:?}");
    }
}
