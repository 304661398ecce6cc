//! The files of users: read anew when they change, and closed when they cannot be read.

use super::callers::{basic, hash};
use super::world::World;
use api::auth::Users;
use api::{Auth, ClientAddress};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// As people write files: a new one in the place of the old.
fn write(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

#[tokio::test]
async fn a_change_of_the_files_counts_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (passwords, roles) = (dir.path().join("htpasswd"), dir.path().join("roles"));
    write(&passwords, &format!("alice:{}\nbob:{}\n", hash("a"), hash("b")));
    write(&roles, "alice: admin\nbob: reader\n");
    let users = Users::open(passwords.clone(), Some(roles.clone())).unwrap();
    let world = World::new(Auth::Basic(Arc::new(users))).await;
    let ask = async |user: &str, password: &str| {
        let header = basic(user, password);
        let body = Some(serde_json::json!({"driver": "fake-hardware"}));
        world.ask("POST", "/v1/nodes", Some(&header), body).await.status
    };
    assert_eq!((ask("alice", "a").await, ask("bob", "b").await), (201, 403));

    write(&roles, "alice: reader\nbob: admin\n");
    assert_eq!((ask("alice", "a").await, ask("bob", "b").await), (403, 201));
    write(&passwords, &format!("bob:{}\n", hash("new")));
    assert_eq!((ask("alice", "a").await, ask("bob", "b").await, ask("bob", "new").await), (401, 401, 201));

    // A file that cannot be read rejects every login, and remembered credentials are forgotten.
    write(&roles, "bob: king\n");
    assert_eq!(ask("bob", "new").await, 401);
    write(&roles, "bob: admin\n");
    assert_eq!(ask("bob", "new").await, 201);
    std::fs::remove_file(&passwords).unwrap();
    assert_eq!(ask("bob", "new").await, 401);

    let refused = Users::open(passwords, None).map(drop).unwrap_err().to_string();
    assert!(refused.contains("htpasswd"), "{refused}");
    write(&roles, "# people\nbob: king\n");
    write(&dir.path().join("htpasswd"), &format!("bob:{}\n", hash("new")));
    let refused = Users::open(dir.path().join("htpasswd"), Some(roles)).map(drop).unwrap_err().to_string();
    assert!(refused.contains("roles, line 2: \"king\" is no role"), "{refused}");
}

/// A good password costs one bcrypt, a bad one costs one each time, and so does an unknown user.
#[tokio::test]
async fn only_what_was_good_is_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let passwords = dir.path().join("htpasswd");
    let slow = bcrypt::hash("right", 9).unwrap();
    write(&passwords, &format!("alice:{slow}\n"));
    let world = World::new(Auth::Basic(Arc::new(Users::open(passwords, None).unwrap()))).await;
    let ask = async |user: &str, password: &str, status: u16| {
        let begun = Instant::now();
        world.ask("GET", "/v1/drivers", Some(&basic(user, password)), None).await.is(status);
        begun.elapsed()
    };
    let first = ask("alice", "right", 200).await;
    // What a busy machine adds to one, it does not add to the fastest of several.
    let mut remembered = first;
    for _ in 0..20 {
        remembered = remembered.min(ask("alice", "right", 200).await);
    }
    assert!(remembered < first / 4, "{remembered:?} is not much less than {first:?}");
    let one = || {
        let begun = Instant::now();
        assert!(bcrypt::verify("right", &slow).unwrap());
        begun.elapsed()
    };
    let cost = one().min(one()).min(one());
    for (user, password) in [("alice", "wrong"), ("unknown", "right")] {
        let mut fastest = ask(user, password, 401).await;
        for _ in 0..2 {
            fastest = fastest.min(ask(user, password, 401).await);
        }
        assert!(fastest > cost / 4, "{user}: {fastest:?}, and a bcrypt takes {cost:?}");
    }
}

/// Operators who are remembered, and those at other addresses, are not locked out.
#[tokio::test]
async fn wrong_passwords_are_limited_by_address() {
    let dir = tempfile::tempdir().unwrap();
    let passwords = dir.path().join("htpasswd");
    write(&passwords, &format!("alice:{}\nbob:{}\n", hash("a"), hash("b")));
    let world = World::new(Auth::Basic(Arc::new(Users::open(passwords, None).unwrap()))).await;
    let ask = async |client: &str, path: &str, user: &str, password: &str| {
        let request = axum::http::Request::get(path)
            .header("Authorization", basic(user, password))
            .extension(ClientAddress(client.parse().unwrap()));
        world.api.raw(request.body(axum::body::Body::empty()).unwrap()).await
    };
    let (bad, good) = ("192.0.2.1", "192.0.2.2");
    assert_eq!(ask(bad, "/v1/drivers", "alice", "a").await.status, 200);
    let mut rejected = 0;
    // More than one burst, however slowly this machine computes them.
    let limited = loop {
        // A path that does not exist is answered in the same way, and costs as much.
        let path = if rejected % 2 == 0 { "/v1/drivers" } else { "/v1/nothing" };
        let answer = ask(bad, path, "alice", "wrong").await;
        match answer.status {
            401 if rejected < 200 => rejected += 1,
            _ => break answer.is(429),
        }
    };
    assert!(rejected >= 20, "{rejected}");
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3).contains(&wait), "{wait}");
    assert!(limited.text.contains("Too many passwords are being verified"), "{}", limited.text);
    for path in ["/v1/drivers", "/v1/nothing"] {
        ask(bad, path, "alice", "wrong").await.is(429);
    }
    assert_eq!(ask(bad, "/v1/drivers", "alice", "a").await.status, 200, "she is remembered");
    assert_eq!(ask(good, "/v1/drivers", "bob", "b").await.status, 200, "from another address");
}
