//! Sessions of the web page: what a cookie is good for, and what it is not.

use crate::common::{Answer, Api};
use crate::rights::callers::{basic, hash};
use api::auth::{OperatorToken, Users};
use api::{App, Auth, ClientAddress, OriginCheck};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use model::{ProvisionState, Timestamp};
use room::Log;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use store::Clock;
use tower::ServiceExt;

const HOST: &str = "127.0.0.1:6385";
const TOKEN: &str = "5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5";

/// A clock that stands still until it is set.
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

/// A controller with users, reached by TLS or on loopback.
struct Page {
    api: Api,
    app: App,
    clock: Arc<SetClock>,
    router: Router,
    auth: Auth,
    files: tempfile::TempDir,
}

/// A browser that is logged in.
struct Login {
    cookie: String,
    csrf: String,
}

impl Page {
    /// With an administrator, a reader and a member of a project.
    fn new() -> Self {
        let files = tempfile::tempdir().unwrap();
        let hash = hash("right");
        std::fs::write(files.path().join("htpasswd"), format!("alice:{hash}\nbob:{hash}\nteam:{hash}\n"))
            .unwrap();
        std::fs::write(files.path().join("roles"), "alice: admin\nbob: reader\nteam: member p1\n").unwrap();
        let users = Users::open(files.path().join("htpasswd"), Some(files.path().join("roles"))).unwrap();
        Self::with(Auth::Basic(Arc::new(users)), files)
    }

    /// Without users.
    fn with_token() -> Self {
        let files = tempfile::tempdir().unwrap();
        let token = OperatorToken::new(TOKEN.to_owned(), PathBuf::from("/state/operator.token"));
        Self::with(Auth::Token(Arc::new(token)), files)
    }

    fn with(auth: Auth, files: tempfile::TempDir) -> Self {
        let api = Api::guarded(auth.clone());
        let clock = Arc::new(SetClock(AtomicI64::new(1_795_229_965_000_000)));
        let app = App { clock: clock.clone(), ..api.app.clone() };
        let router = api::loopback_router(app.clone(), auth.clone(), OriginCheck::default());
        Self { api, app, clock, router, auth, files }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Answer {
        self.ask_at(&self.router, method, path, headers, body).await
    }

    async fn ask_at(
        &self,
        router: &Router,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Host", HOST)
            .header("X-OpenStack-Ironic-API-Version", "1.115")
            .header("Content-Type", "application/json")
            .extension(ClientAddress("127.0.0.1".parse().unwrap()));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let response = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        Answer { status: parts.status.as_u16(), headers: parts.headers, text, body }
    }

    async fn try_login(&self, user: &str, password: &str) -> Answer {
        self.ask("POST", "/v1/anneal/session", &[], Some(json!({"user": user, "password": password}))).await
    }

    async fn login(&self, user: &str) -> Login {
        Login::of(&self.try_login(user, "right").await.is(201))
    }

    /// A change in a session; maintenance of the node `n`.
    async fn change(&self, headers: &[(&str, &str)]) -> Answer {
        self.ask("PUT", "/v1/nodes/n/maintenance", headers, Some(json!({"reason": "a fan"}))).await
    }

    fn set_password(&self, line: &str) {
        // As the page on rights says: a new file, then renamed.
        let new = self.files.path().join("htpasswd.new");
        std::fs::write(&new, line).unwrap();
        std::fs::rename(new, self.files.path().join("htpasswd")).unwrap();
    }
}

impl Login {
    fn of(answer: &Answer) -> Self {
        let cookie = answer.header("set-cookie").expect("a cookie").split(';').next().unwrap().to_owned();
        Self { cookie, csrf: answer.body["csrf"].as_str().unwrap().to_owned() }
    }

    fn whole(&self) -> [(&str, &str); 2] {
        [("cookie", &self.cookie), ("anneal-csrf", &self.csrf)]
    }

    fn reading(&self) -> [(&str, &str); 1] {
        [("cookie", &self.cookie)]
    }
}

#[tokio::test]
async fn a_login_gives_a_cookie_that_no_script_and_no_other_site_gets() {
    let page = Page::new();
    let answer = page.try_login("alice", "right").await.is(201);
    let cookie = answer.header("set-cookie").unwrap();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert!(pair.starts_with("anneal_session_6385=v1."), "{cookie}");
    assert_eq!(attributes, "Path=/; Max-Age=43200; HttpOnly; SameSite=Strict");
    assert_eq!(answer.body["user"], "alice");
    assert_eq!((&answer.body["role"], &answer.body["project"]), (&json!("admin"), &Value::Null));
    assert!(!pair.contains("right") && !pair.contains("$2"), "neither password nor hash is in it");

    let by_tls = api::guarded_router(page.app.clone(), page.auth.clone());
    let body = json!({"user": "alice", "password": "right"});
    let answer = page.ask_at(&by_tls, "POST", "/v1/anneal/session", &[], Some(body)).await.is(201);
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-anneal_session_6385=v1."), "{cookie}");
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    // The cookie of one is none for the other.
    let Login { cookie, .. } = Login::of(&answer);
    page.ask("GET", "/v1/nodes", &[("cookie", &cookie)], None).await.is(401);
    page.ask_at(&by_tls, "GET", "/v1/nodes", &[("cookie", &cookie)], None).await.is(200);
}

#[tokio::test]
async fn a_wrong_login_is_refused_without_a_word_of_what_is_wrong() {
    let page = Page::new();
    for (user, password) in [("alice", "wrong"), ("alice", ""), ("unknown", "right"), ("", "")] {
        let answer = page.try_login(user, password).await.is(401);
        assert_eq!(answer.header("set-cookie"), None);
        assert_eq!(answer.header("www-authenticate"), None, "the browser must not ask by itself");
        assert_eq!(answer.fault(), "Incorrect username or password");
    }
    for body in [
        json!({}),
        json!({"user": "alice"}),
        json!({"user": "alice", "password": "right", "link": "x"}),
        json!({"user": "alice", "password": 7}),
        json!({"user": "alice", "password": "right", "more": 1}),
    ] {
        let answer = page.ask("POST", "/v1/anneal/session", &[], Some(body.clone())).await.is(400);
        assert!(!answer.text.contains("right"), "{}", answer.text);
    }
    let foreign = [("sec-fetch-site", "cross-site")];
    let body = json!({"user": "alice", "password": "right"});
    page.ask("POST", "/v1/anneal/session", &foreign, Some(body)).await.is(403);
}

/// As with Basic: an address has twenty attempts, and then one in three seconds.
#[tokio::test]
async fn wrong_passwords_of_logins_are_limited() {
    let page = Page::new();
    for _ in 0..20 {
        page.try_login("alice", "wrong").await.is(401);
    }
    let full = page.try_login("alice", "right").await.is(429);
    assert!(full.header("retry-after").is_some());
}

#[tokio::test]
async fn a_session_reads_and_changes_only_with_the_token_of_its_login() {
    let page = Page::new();
    let node = page.api.node("n", ProvisionState::Manageable).await;
    let (login, other) = (page.login("alice").await, page.login("alice").await);
    page.ask("GET", "/v1/nodes/n", &login.reading(), None).await.is(200);
    page.ask("HEAD", "/v1/nodes/n", &login.reading(), None).await.is(200);
    let before = page.api.everything().await;
    for csrf in [None, Some(""), Some("x"), Some(&*other.csrf), Some(&login.csrf[1..])] {
        let headers: Vec<_> =
            login.reading().into_iter().chain(csrf.map(|csrf| ("anneal-csrf", csrf))).collect();
        let refused = page.change(&headers).await.is(403);
        assert!(refused.fault().contains("anneal-csrf"), "{}", refused.text);
        page.ask("DELETE", "/v1/nodes/n", &headers, None).await.is(403);
        page.ask("PATCH", "/v1/nodes/n", &headers, Some(json!([]))).await.is(403);
        page.ask("POST", "/v1/nodes", &headers, Some(json!({"driver": "fake-hardware"}))).await.is(403);
    }
    // The token alone is nothing.
    page.change(&[("anneal-csrf", &login.csrf)]).await.is(401);
    assert_eq!(page.api.everything().await, before);
    page.change(&login.whole()).await.is(202);
    let history = page.api.store.history(node.uuid).await.unwrap();
    let sender = history.last().unwrap().sender.clone().unwrap();
    assert_eq!((sender.user.as_deref(), sender.address.as_deref()), (Some("alice"), Some("127.0.0.1")));
}

#[tokio::test]
async fn a_session_is_none_for_requests_of_other_sites() {
    let page = Page::new();
    page.api.node("n", ProvisionState::Manageable).await;
    let login = page.login("alice").await;
    let by_tls = api::guarded_router(page.app.clone(), page.auth.clone());
    let body = Some(json!({"user": "alice", "password": "right"}));
    let secure = Login::of(&page.ask_at(&by_tls, "POST", "/v1/anneal/session", &[], body).await.is(201));
    for site in ["cross-site", "same-site"] {
        for (router, login) in [(&page.router, &login), (&by_tls, &secure)] {
            let headers: Vec<_> = login.whole().into_iter().chain([("sec-fetch-site", site)]).collect();
            page.ask_at(router, "GET", "/v1/nodes", &headers, None).await.is(403);
            page.ask_at(router, "DELETE", "/v1/nodes/n", &headers, None).await.is(403);
            page.ask_at(router, "DELETE", "/v1/anneal/session", &headers, None).await.is(403);
        }
    }
    let own: Vec<_> = login.whole().into_iter().chain([("sec-fetch-site", "same-origin")]).collect();
    page.change(&own).await.is(202);
    // Another name of this machine's address, and a page of another origin.
    let foreign: Vec<_> = login.whole().into_iter().chain([("origin", "https://evil.example")]).collect();
    page.ask("GET", "/v1/nodes", &foreign, None).await.is(403);
}

#[tokio::test]
async fn a_session_ends_with_its_time_its_password_or_its_user() {
    let page = Page::new();
    let read = async |login: &Login| page.ask("GET", "/v1/nodes", &login.reading(), None).await.status;
    let login = page.login("alice").await;
    let began = page.clock.0.load(Ordering::SeqCst);
    page.clock.0.store(began + 12 * 3600 * 1_000_000 - 1_000_000, Ordering::SeqCst);
    assert_eq!(read(&login).await, 200);
    page.clock.0.store(began + 12 * 3600 * 1_000_000, Ordering::SeqCst);
    assert_eq!(read(&login).await, 401);

    let (alice, bob) = (page.login("alice").await, page.login("bob").await);
    let unchanged = std::fs::read_to_string(page.files.path().join("htpasswd")).unwrap();
    let bobs_line = unchanged.lines().find(|line| line.starts_with("bob:")).unwrap();
    page.set_password(&format!("alice:{}\n{bobs_line}\n", hash("another")));
    assert_eq!((read(&alice).await, read(&bob).await), (401, 200));
    // The same password with another salt is another password for this: the old hash may be known.
    page.set_password(&format!("{bobs_line}\n"));
    assert_eq!(read(&alice).await, 401);
    page.set_password(&format!("alice:{}\n", hash("right")));
    assert_eq!((read(&alice).await, read(&bob).await), (401, 401));
}

#[tokio::test]
async fn a_session_has_the_rights_of_its_user_and_no_others() {
    let page = Page::new();
    let own = |node: &mut model::Node| drop(node.other.insert("owner".into(), "p1".into()));
    page.api.node_with("n", ProvisionState::Manageable, own).await;
    page.api.node("foreign", ProvisionState::Manageable).await;
    let (bob, team) = (page.login("bob").await, page.login("team").await);
    page.change(&bob.whole()).await.is(403);
    page.change(&team.whole()).await.is(202);
    page.ask("GET", "/v1/nodes/foreign", &bob.reading(), None).await.is(200);
    page.ask("GET", "/v1/nodes/foreign", &team.reading(), None).await.is(404);
    let rights = page.ask("GET", "/v1/anneal/rights", &team.reading(), None).await.is(200).body;
    let who = (&rights["user"], &rights["role"], &rights["project"]);
    assert_eq!(who, (&json!("team"), &json!("member"), &json!("p1")));
    // Credentials count more than a cookie, and need no token.
    let both = [("cookie", bob.cookie.as_str()), ("authorization", &basic("alice", "right"))];
    let rights = page.ask("GET", "/v1/anneal/rights", &both, None).await.is(200).body;
    assert_eq!(rights["user"], "alice");
    page.change(&both).await.is(202);
    // Another role takes effect at once.
    let roles = page.files.path().join("roles");
    std::fs::write(&roles, "alice: admin\nbob: member\nteam: member p1\n").unwrap();
    page.change(&bob.whole()).await.is(202);
    std::fs::write(&roles, "alice: admin\n").unwrap();
    page.ask("GET", "/v1/nodes", &bob.reading(), None).await.is(403);
}

#[tokio::test]
async fn a_logout_ends_the_session_and_no_other_site_can_send_it() {
    let page = Page::new();
    let (login, other) = (page.login("alice").await, page.login("alice").await);
    let shown = page.ask("GET", "/v1/anneal/session", &login.reading(), None).await.is(200).body;
    assert_eq!((&shown["login"], &shown["authenticated"]), (&json!("password"), &json!(true)));
    assert_eq!(shown["user"], "alice");
    assert!(shown.get("csrf").is_none(), "the token is in the answer to the login only");
    page.ask("DELETE", "/v1/anneal/session", &login.reading(), None).await.is(403);
    page.ask("GET", "/v1/nodes", &login.reading(), None).await.is(200);
    let gone = page.ask("DELETE", "/v1/anneal/session", &login.whole(), None).await.is(204);
    assert!(gone.header("set-cookie").unwrap().starts_with("anneal_session_6385=; Path=/; Max-Age=0;"));
    page.ask("GET", "/v1/nodes", &login.reading(), None).await.is(401);
    page.ask("GET", "/v1/nodes", &other.reading(), None).await.is(200);
    let shown = page.ask("GET", "/v1/anneal/session", &login.reading(), None).await.is(200).body;
    assert_eq!(shown, json!({"login": "password", "authenticated": false, "user": null, "expires_at": null}));
    page.ask("DELETE", "/v1/anneal/session", &[], None).await.is(204);
}

#[tokio::test]
async fn a_link_logs_in_once_without_users() {
    let page = Page::with_token();
    let credentials = basic("carol", TOKEN);
    let ask = async || {
        let headers = [("authorization", credentials.as_str())];
        page.ask("POST", "/v1/anneal/session/links", &headers, Some(json!({}))).await
    };
    assert!(ask().await.is(409).fault().contains("loopback"));
    page.app.sessions.serve_at(format!("http://{HOST}"));
    let link = ask().await.is(201).body;
    let token = link["url"].as_str().unwrap().strip_prefix("http://127.0.0.1:6385/ui/#link=").unwrap();
    let log_in =
        async |token: &str| page.ask("POST", "/v1/anneal/session", &[], Some(json!({"link": token}))).await;
    log_in("another").await.is(401);
    let answer = log_in(token).await.is(201);
    assert_eq!((&answer.body["user"], &answer.body["role"]), (&json!("carol"), &json!("admin")));
    let login = Login::of(&answer);
    let again = log_in(token).await.is(401);
    assert!(again.fault().contains("anneal ui"), "{}", again.text);
    page.api.node("n", ProvisionState::Manageable).await;
    page.change(&login.whole()).await.is(202);
    // A session cannot prolong itself.
    let refused = page.ask("POST", "/v1/anneal/session/links", &login.whole(), Some(json!({}))).await.is(403);
    assert!(refused.fault().contains("another session"), "{}", refused.text);
    // It is too late after a minute.
    let late = ask().await.is(201).body["url"].as_str().unwrap().rsplit('=').next().unwrap().to_owned();
    page.clock.0.fetch_add(60_000_000, Ordering::SeqCst);
    log_in(&late).await.is(401);

    // A link from the socket of operators is good on loopback.
    let socket = api::loopback_router(page.app.clone(), Auth::Socket, OriginCheck::default());
    let link = page.ask_at(&socket, "POST", "/v1/anneal/session/links", &[], Some(json!({}))).await.is(201);
    let token = link.body["url"].as_str().unwrap().rsplit('=').next().unwrap().to_owned();
    log_in(&token).await.is(201);
    // A new operator token ends sessions.
    let other = OperatorToken::new("0".repeat(64), PathBuf::from("/state/operator.token"));
    let changed =
        api::loopback_router(page.app.clone(), Auth::Token(Arc::new(other)), OriginCheck::default());
    page.ask_at(&changed, "GET", "/v1/nodes", &login.reading(), None).await.is(401);
}

#[tokio::test]
async fn where_there_is_no_page_there_are_no_sessions() {
    let page = Page::new();
    let login = page.login("alice").await;
    let app = App { sessions: api::auth::Sessions::default(), ..page.app.clone() };
    let off = api::loopback_router(app, page.auth.clone(), OriginCheck::default());
    page.ask_at(&off, "GET", "/v1/nodes", &login.reading(), None).await.is(401);
    let body = json!({"user": "alice", "password": "right"});
    for (method, body) in [("GET", None), ("POST", Some(body)), ("DELETE", None)] {
        page.ask_at(&off, method, "/v1/anneal/session", &[], body).await.is(404);
    }
    // Another controller with the same key and users has the same sessions.
    let twin = api::loopback_router(page.app.clone(), page.auth.clone(), OriginCheck::default());
    page.ask_at(&twin, "GET", "/v1/nodes", &login.reading(), None).await.is(200);
}

#[tokio::test]
async fn a_browser_is_not_made_to_ask_for_a_password_by_a_request_of_a_script() {
    let page = Page::new();
    let asks = async |mode: Option<&str>| {
        let headers: Vec<_> = mode.into_iter().map(|mode| ("sec-fetch-mode", mode)).collect();
        page.ask("GET", "/v1/nodes", &headers, None).await.is(401).header("www-authenticate").is_some()
    };
    assert!(asks(None).await && asks(Some("navigate")).await);
    assert!(!asks(Some("cors")).await && !asks(Some("same-origin")).await);
}

#[tokio::test]
async fn a_login_is_in_the_audit_log_and_its_secrets_are_in_no_log() {
    let (page, log) = (Page::new(), Log::default());
    page.api.node("n", ProvisionState::Manageable).await;
    let _collecting = log.collect();
    let logins = || log.lines().into_iter().filter(|line| line["target"] == "audit").collect::<Vec<Value>>();
    let mut login = None;
    // See audit.rs: a subscriber may be overlooked for a place that another test registers at the same moment.
    for _ in 0..100 {
        tracing::callsite::rebuild_interest_cache();
        login = Some(page.login("alice").await);
        if !logins().is_empty() {
            break;
        }
    }
    let login = login.unwrap();
    page.change(&login.whole()).await.is(202);
    page.try_login("alice", "a wrong one").await.is(401);
    let lines = logins();
    assert_eq!(
        (&lines[0]["fields"]["user"], &lines[0]["fields"]["address"]),
        (&json!("alice"), &json!("127.0.0.1")),
        "{lines:?}"
    );
    let all = Value::from(log.lines()).to_string();
    let value = login.cookie.split('=').nth(1).unwrap();
    for secret in [value, &login.csrf, "a wrong one"] {
        assert!(!all.contains(secret), "{secret} is in {all}");
    }
}
