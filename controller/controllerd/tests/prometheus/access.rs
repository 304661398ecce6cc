//! Access to the metrics.

use crate::controller::{Controller, client, free_port};
use crate::{NOAUTH, accepted};
use std::process::Command;

const TOKEN: &str = "0123456789abcdef0123";

#[tokio::test]
async fn the_api_serves_them_to_who_may_read_all_nodes() {
    let dir = tempfile::tempdir().unwrap();
    // The bcrypt digest of "secret", as `htpasswd -B` writes it.
    let (users, roles) = (dir.path().join("htpasswd"), dir.path().join("roles"));
    let digest = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
    let names = ["watcher", "tenant"];
    std::fs::write(&users, names.map(|name| format!("{name}:{digest}\n")).concat()).unwrap();
    std::fs::write(&roles, "watcher: reader\ntenant: admin p1\n").unwrap();
    let api = format!(
        "auth_strategy = \"http_basic\"\nhttp_basic_auth_user_file = {users:?}\nroles_file = {roles:?}"
    );
    let controller = Controller::start(dir.path(), &api, "").await;
    let url = format!("http://127.0.0.1:{}/metrics", controller.api);
    let ask = async |login: Option<(&str, &str)>| {
        let request = controller.client.get(&url);
        let request = match login {
            Some((user, password)) => request.basic_auth(user, Some(password)),
            None => request,
        };
        request.send().await.unwrap()
    };
    assert_eq!(ask(None).await.status(), 401);
    assert_eq!(ask(Some(("watcher", "wrong"))).await.status(), 401);
    assert_eq!(ask(Some(("tenant", "secret"))).await.status(), 403);
    let answer = ask(Some(("watcher", "secret"))).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    accepted(&answer.text().await.unwrap());
    let text = ask(Some(("watcher", "secret"))).await.text().await.unwrap();
    let counted = "anneal_api_requests_total{method=\"GET\",path=\"/v1/metrics\",status=\"403\"} 1\n";
    assert!(text.contains(counted), "{text}");
}

#[tokio::test]
async fn the_listener_asks_for_the_token_where_one_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let controller = Controller::start(dir.path(), NOAUTH, &format!("bearer_token_file = {file:?}")).await;
    let url = format!("http://127.0.0.1:{}/metrics", controller.metrics);
    let status = async |token: &str| {
        let request = controller.client.get(&url).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(controller.client.get(&url).send().await.unwrap().status(), 401);
    for wrong in ["", &TOKEN[1..], &TOKEN[..TOKEN.len() - 1], "0123456789abcdef0124", &format!("{TOKEN}0")] {
        assert_eq!(status(wrong).await, 401, "{wrong:?}");
    }
    assert_eq!(status(TOKEN).await, 200);
    // It is changed without a restart.
    std::fs::write(&file, "fedcba9876543210fedc\n").unwrap();
    assert_eq!((status(TOKEN).await, status("fedcba9876543210fedc").await), (401, 200));
    let other = url.replace("/metrics", "/v1/nodes");
    assert_eq!(controller.client.get(other).bearer_auth(TOKEN).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn no_page_of_another_site_reads_them_on_loopback() {
    let dir = tempfile::tempdir().unwrap();
    let controller = Controller::start(dir.path(), NOAUTH, "").await;
    let url = format!("http://127.0.0.1:{}/metrics", controller.metrics);
    assert_eq!(client().get(&url).send().await.unwrap().status(), 200);
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let answer = client().get(&url).header(name, value).send().await.unwrap();
        assert_eq!(answer.status(), 403, "{name}");
    }
}

#[test]
fn off_loopback_it_does_not_start_without_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("controller.toml");
    let text = format!(
        "state_dir = {:?}\n[api]\nlisten = [\"127.0.0.1:{}\"]\n[metrics]\nlisten = [\"0.0.0.0:{}\"]\n",
        dir.path(),
        free_port(),
        free_port()
    );
    std::fs::write(&config, text).unwrap();
    let ended =
        Command::new(env!("CARGO_BIN_EXE_anneal-controller")).arg("--config").arg(config).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && said.contains("metrics.bearer_token_file"), "{said}");
}
