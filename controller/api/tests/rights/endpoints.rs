//! Every row of the table × every caller: 401 without valid credentials, 403 or 404 for callers without access, and
//! for callers with access the answer that an administrator gets. A rejected request has changed nothing.

use super::callers::{User, WITHOUT_ROLE, basic, strangers};
use super::world::{ABSENT, CERTIFICATE, RESOURCE, RESOURCES, World, about_a_node};
use crate::common::Answer;
use crate::common::test_store::StoreKind;
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use api::Auth;
use api::auth::policy::{lesser, names};
use api::endpoint::{Endpoint, OPEN};
use axum::body::Body;
use axum::http::Request;
use std::collections::BTreeSet;

/// What the path of a row names that a project does not see unless it is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Nothing,
    /// A node, or what hangs on one.
    Own,
    /// A node that the body names.
    InBody,
}

fn about(row: &Endpoint) -> About {
    match row.path {
        path if about_a_node(path) => About::Own,
        path if path.starts_with("/v1/ports/{") || path.starts_with("/v1/anneal/certificates/{id}") => {
            About::Own
        }
        path if RESOURCES.iter().any(|(_, root)| path.starts_with(root)) => About::Own,
        "/v1/ports" | "/v1/portgroups" | "/v1/volume/connectors" | "/v1/volume/targets"
            if row.method == "POST" =>
        {
            About::InBody
        }
        _ => About::Nothing,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Reached,
    Forbidden,
    /// As for what is not there.
    Absent,
}

fn expected(row: &Endpoint, user: User) -> Expected {
    let about = about(row);
    let of_a_project = user.is_of_a_project();
    let sees = user.may(match row.path {
        path if path.starts_with("/v1/allocations/{") => "baremetal:allocation:get",
        path if path.starts_with("/v1/runbooks/{") => "baremetal:runbook:get",
        _ => "baremetal:node:get",
    });
    if of_a_project && !sees && about == About::Own {
        return Expected::Absent;
    }
    let relation = if of_a_project && about == About::Nothing { "stranger" } else { user.relation };
    let may = |policy: &str| user.may_as(policy, relation);
    let passes = |policy: &str| match about {
        About::InBody if !sees => user.may_as(policy, "owner") || user.may_as(policy, "lessee"),
        _ => may(policy),
    };
    // `inspection_rule` has a `list_all` and no `list`.
    let known = |policy: &String| names().any(|name| name == policy.as_str());
    if passes(row.policy) || lesser(row.policy).filter(known).is_some_and(|lesser| passes(&lesser)) {
        return if about == About::InBody && !sees { Expected::Absent } else { Expected::Reached };
    }
    Expected::Forbidden
}

fn guarded() -> impl Iterator<Item = Endpoint> {
    api::endpoints().into_iter().filter(|row| row.policy != OPEN)
}

#[test]
fn every_row_has_a_policy_that_the_table_knows() {
    let names: BTreeSet<_> = names().collect();
    for row in guarded() {
        assert!(names.contains(row.policy), "{} {}: {}", row.method, row.path, row.policy);
    }
    let open: Vec<_> = api::endpoints().into_iter().filter(|row| row.policy == OPEN).collect();
    let open: BTreeSet<_> = open.iter().map(|row| row.path).collect();
    let meant =
        ["/", "/v1", "/v1/continue_inspection", "/v1/heartbeat", "/v1/heartbeat/{ident}", "/v1/lookup"];
    assert!(meant.iter().all(|path| open.contains(path)), "{open:?}");
    for path in open.difference(&meant.into()) {
        let own = [
            // Agents, before they have a token: they show the nonce of their boot.
            "/v1/anneal/boot_proof",
            "/v1/anneal/boot_proof/answer",
            "/v1/anneal/images/{name}",
            "/v1/anneal/openapi",
            // The login.
            "/v1/anneal/session",
            "/v1/healthcheck",
            "/v1/healthcheck/alive",
        ];
        assert!(own.contains(path), "{path} is open: to whom, and why?");
    }
    let agents: Vec<_> = guarded().filter(|row| row.agents).map(|row| row.path).collect();
    assert_eq!(agents, ["/v1/anneal/bundles/{digest}/file"]);
}

#[tokio::test]
async fn a_request_without_the_password_is_rejected_and_changes_nothing() {
    for row in guarded() {
        let world = World::guarded().await;
        let before = world.api.everything().await;
        for (who, header, status) in strangers() {
            let answer = world.call(&row, header.as_deref()).await;
            assert_eq!(answer.status, status, "{} {} with {who}: {}", row.method, row.path, answer.text);
            let realm = answer.header("WWW-Authenticate");
            assert_eq!(realm, (status == 401).then_some("Basic realm=\"Baremetal API\""), "{who}");
        }
        if row.method == "GET" {
            let path = world.path(&row, false).await;
            assert_eq!(world.ask("HEAD", &path, None, None).await.status, 401, "HEAD {}", row.path);
        }
        let answer = world.call(&row, Some(&basic(WITHOUT_ROLE, "right"))).await;
        assert_eq!(answer.status, 403, "{} {} without a role: {}", row.method, row.path, answer.text);
        assert!(answer.fault().contains(row.policy), "{}", answer.text);
        assert_eq!(world.api.everything().await, before, "{} {} changed something", row.method, row.path);
    }
}

/// With PostgreSQL one of so many callers of an endpoint is tried: to make a world takes long there, and rights are decided above
/// the store.
const ONE_ON_POSTGRESQL: usize = 5;

#[tokio::test]
async fn each_role_has_ironics_access_and_no_more() {
    let is_tried = |number: usize| {
        StoreKind::asked() != Some(StoreKind::Postgres) || number.is_multiple_of(ONE_ON_POSTGRESQL)
    };
    for (at, row) in guarded().enumerate() {
        let open = World::new(Auth::NoAuth).await;
        let all = open.call(&row, None).await;
        for (_, user) in User::all().enumerate().filter(|(number, _)| is_tried(at + number)) {
            let world = World::guarded().await;
            let before = world.api.everything().await;
            let what = format!("{} {} by {}", row.method, row.path, user.name());
            let expected = expected(&row, user);
            let answer = world.call(&row, Some(&user.header())).await;
            match expected {
                Expected::Reached => {
                    assert_eq!(answer.status, all.status, "{what}: {}\n{}", answer.text, all.text);
                    continue;
                }
                Expected::Forbidden => {
                    assert_eq!(answer.status, 403, "{what}: {}", answer.text);
                    let named = [Some(row.policy.to_owned()), lesser(row.policy)];
                    let fault = answer.fault();
                    assert!(named.iter().flatten().any(|policy| fault.ends_with(policy.as_str())), "{fault}");
                }
                Expected::Absent => {
                    let absent = absent(&world, &row, user).await;
                    assert!(matches!(answer.status, 400 | 404), "{what}: {}", answer.text);
                    assert_eq!(
                        (answer.status, plain(&world, &answer)),
                        (absent.status, plain(&world, &absent)),
                        "{what}"
                    );
                }
            }
            assert_eq!(world.api.everything().await, before, "{what} changed something");
        }
    }
}

/// The answer to the same about something that is not there.
async fn absent(world: &World, row: &Endpoint, user: User) -> Answer {
    let path = world.path(row, true).await.replace(CERTIFICATE, ABSENT);
    let mut body = world.body(row);
    if let Some(node) = body.as_mut().and_then(|body| body.get_mut("node_uuid")) {
        *node = ABSENT.into();
    }
    world.ask(row.method.as_str(), &path, Some(&user.header()), body).await
}

/// A text without the names of things.
fn plain(world: &World, answer: &Answer) -> String {
    let mut text = answer.text.clone();
    let (node, port) = (world.node.uuid.to_string(), world.port.uuid.to_string());
    for name in [&*node, &*port, &RESOURCE.to_string(), CERTIFICATE, ABSENT] {
        text = text.replace(name, "X");
    }
    text
}

/// An open endpoint answers every caller alike and never asks for credentials.
#[tokio::test]
async fn what_is_open_is_open() {
    for row in api::endpoints().into_iter().filter(|row| row.policy == OPEN) {
        let all = World::new(Auth::NoAuth).await.call(&row, None).await;
        for auth in [World::guarded().await, World::new(Auth::Agents).await] {
            for header in
                [None, Some(basic("system-admin", "wrong")), Some(User::all().next().unwrap().header())]
            {
                let answer = auth.call(&row, header.as_deref()).await;
                assert_eq!(answer.status, all.status, "{} {}: {}", row.method, row.path, answer.text);
            }
        }
    }
}

/// An API that accepts only agents (`noauth`, off loopback) accepts no password.
#[tokio::test]
async fn an_api_for_agents_only_rejects_everything_else() {
    for row in guarded() {
        let world = World::new(Auth::Agents).await;
        let before = world.api.everything().await;
        for header in [None, Some(basic("system-admin", "right"))] {
            let answer = world.call(&row, header.as_deref()).await.is(403);
            assert!(answer.fault().contains("loopback"), "{}", answer.text);
        }
        assert_eq!(world.api.everything().await, before);
    }
    World::new(Auth::Agents).await.ask("GET", "/v1/nosuch", None, None).await.is(403);
}

/// The file of a bundle is an operator's with a password, or an agent's that names itself: no other caller gets it.
#[tokio::test]
async fn an_agent_comes_in_by_its_token_where_it_may() {
    for (world, refused) in [(World::guarded().await, 401), (World::new(Auth::Agents).await, 403)] {
        for row in guarded() {
            let path = world.path(&row, false).await;
            let agent = |names: &[&str]| {
                let mut request = Request::builder().method(row.method.clone()).uri(&path);
                for name in names {
                    request = request.header(*name, world.node.uuid.to_string());
                }
                world.api.raw(request.body(Body::empty()).unwrap())
            };
            for half in [NODE_HEADER, TOKEN_HEADER] {
                agent(&[half]).await.is(refused);
            }
            let answer = agent(&[NODE_HEADER, TOKEN_HEADER]).await;
            if row.agents {
                // The handler's own refusal of a wrong token.
                assert!(answer.is(403).fault().contains("agent token"));
            } else {
                answer.is(refused);
            }
        }
    }
}

#[tokio::test]
async fn unauthenticated_callers_do_not_learn_which_paths_exist() {
    let world = World::guarded().await;
    let reader = User::all().next().unwrap().header();
    for (method, path, status) in
        [("GET", "/v1/nosuch", 404), ("POST", "/v1/drivers", 405), ("GET", "/x/y", 404)]
    {
        world.ask(method, path, None, None).await.is(401);
        world.ask(method, path, Some(&basic("system-admin", "wrong")), None).await.is(401);
        world.ask(method, path, Some(&reader), None).await.is(status);
    }
    // Other ways to write a path lead through the same door.
    for path in ["/nodes", "//v1//nodes/", "/v1/nodes/n/", "/v1/%6eodes", "/v1/nodes/%6e"] {
        let answer = world.ask("GET", path, None, None).await;
        assert_eq!(answer.status, 401, "{path}: {}", answer.text);
    }
}
