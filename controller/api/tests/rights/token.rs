//! A controller without users: its operator token is the password, whatever the name.

use super::callers::basic;
use super::world::World;
use api::Auth;
use api::auth::OperatorToken;
use api::endpoint::OPEN;
use std::sync::Arc;

const TOKEN: &str = "5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5c0ffee5";

async fn world() -> World {
    let token = OperatorToken::new(TOKEN.to_owned(), "/state/operator.token".into());
    World::new(Auth::Token(Arc::new(token))).await
}

#[tokio::test]
async fn every_guarded_endpoint_needs_the_token_and_the_answer_names_its_file() {
    let world = world().await;
    for row in api::endpoints().into_iter().filter(|row| row.policy != OPEN) {
        let before = world.api.everything().await;
        for header in [None, Some(basic("root", "wrong")), Some(basic(TOKEN, ""))] {
            let answer = world.call(&row, header.as_deref()).await.is(401);
            assert_eq!(answer.header("anneal-token-file"), Some("/state/operator.token"), "{}", answer.text);
            assert!(!answer.text.contains("token"), "{}", answer.text);
        }
        assert_eq!(world.api.everything().await, before, "{} {}", row.method, row.path);
    }
    // Only operators learn whether a path exists.
    world.ask("GET", "/v1/nosuch", None, None).await.is(401);
    world.ask("GET", "/v1/nosuch", Some(&basic("x", TOKEN)), None).await.is(404);
}

#[tokio::test]
async fn who_has_the_token_is_an_administrator_under_the_name_that_was_sent() {
    let world = world().await;
    let header = basic("alice", TOKEN);
    let path = format!("/v1/nodes/{}/maintenance", world.node.uuid);
    let body = serde_json::json!({"reason": "a look inside"});
    world.ask("PUT", &path, Some(&header), Some(body)).await.is(202);
    let history = world.api.store.history(world.node.uuid).await.unwrap();
    let sender = history.last().unwrap().sender.clone().unwrap();
    assert_eq!(sender.user.as_deref(), Some("alice"));
}

/// Agents have no token of operators.
#[tokio::test]
async fn what_is_open_to_agents_needs_no_token() {
    let (open, guarded) = (World::new(Auth::NoAuth).await, world().await);
    for row in api::endpoints().into_iter().filter(|row| row.policy == OPEN) {
        let (all, answer) = (open.call(&row, None).await, guarded.call(&row, None).await);
        assert_eq!(answer.status, all.status, "{} {}: {}", row.method, row.path, answer.text);
        assert_eq!(answer.header("anneal-token-file"), None, "{} {}", row.method, row.path);
    }
}
