//! The header is read, and answered, as Ironic's middleware does (fixtures/ironic_basic.py).

use super::callers::hash;
use super::world::World;
use crate::common;
use api::Auth;
use api::auth::Users;
use std::sync::Arc;

#[tokio::test]
async fn the_header_is_answered_as_ironic_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("htpasswd");
    std::fs::write(&file, format!("operator:{}\n", hash("right"))).unwrap();
    let world = World::new(Auth::Basic(Arc::new(Users::open(file, None).unwrap()))).await;
    let recorded = common::fixture(include_str!("../fixtures/ironic_basic.json"));
    let answers = recorded["answers"].as_array().unwrap();
    assert!(answers.iter().any(|row| row["status"] == 200) && answers.len() > 10);
    for row in answers {
        let answer = world.ask("GET", "/v1/nodes", row["sent"].as_str(), None).await;
        assert_eq!(answer.status, row["status"], "{}: {}", row["sent"], answer.text);
        if answer.status != 200 {
            assert_eq!(answer.body, row["body"], "{}", row["sent"]);
            assert_eq!(
                answer.header("WWW-Authenticate"),
                row["www_authenticate"].as_str(),
                "{}",
                row["sent"]
            );
            assert_eq!(answer.header("Content-Type"), row["content_type"].as_str());
        }
    }
    // Without a file of roles every user in the file is an administrator.
    let header = super::callers::basic("operator", "right");
    world.ask("DELETE", "/v1/nodes/n", Some(&header), None).await.is(204);
}
