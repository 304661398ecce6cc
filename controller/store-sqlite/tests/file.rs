//! The file: its mode, its lock, and the files that are rejected and left as they were.

use model::{Cursor, Node, Run, RunKind, Timestamp};
use rusqlite::Connection;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use store::prelude::*;
use store::{StepKind, StoreError, TokenRequest};
use store_sqlite::{DatabaseKey, OpenError, SqliteStore};
use uuid::Uuid;

const SECRET: &str = "hunter2";

fn key() -> DatabaseKey {
    DatabaseKey::from_text(&"07".repeat(32)).unwrap()
}

fn node(name: &str) -> Node {
    let mut node = Node::enrolled(Uuid::new_v4(), "redfish", Timestamp(1));
    node.name = Some(name.to_owned());
    node.driver_info.insert("redfish_password".to_owned(), SECRET.into());
    node.run = Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(1)) });
    node
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn refused(path: &Path) -> OpenError {
    SqliteStore::open(path, &key()).err().expect("it is refused")
}

#[tokio::test]
async fn only_the_owner_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    store.create_node(node("one"), vec![]).await.unwrap();
    let files = ["anneal.db", "anneal.db-wal", "anneal.db-shm"].map(|name| dir.path().join(name));
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    drop(store);
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let store = SqliteStore::open(&path, &key()).unwrap();
    store.create_node(node("two"), vec![]).await.unwrap();
    for file in &files {
        assert_eq!(mode(file), 0o600, "{} after it had been readable", file.display());
    }
}

#[tokio::test]
async fn a_second_controller_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    let alias = dir.path().join("alias.db");
    std::os::unix::fs::symlink(&path, &alias).unwrap();
    for path in [&path, &alias] {
        let message = refused(path).to_string();
        let expected = format!("anneal.db is in use by another controller (pid {})", std::process::id());
        assert!(message.ends_with(&expected), "{message}");
    }
    store.create_node(node("one"), vec![]).await.expect("the first is not disturbed");
    drop(store);
    SqliteStore::open(&path, &key()).expect("it is free again");
}

#[test]
fn a_newer_schema_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    drop(SqliteStore::open(&path, &key()).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = refused(&path);
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    let message = error.to_string();
    assert!(message.contains("anneal.db has schema 99"), "{message}");
    let version = |connection: Connection| -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(version(Connection::open(&path).unwrap()), 99);
}

/// Schemas 1 to 5 were never released; the error says what to do with such a database.
#[test]
fn a_database_from_before_the_first_release_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    for schema in 1..=5 {
        let sql = format!(
            "PRAGMA application_id = 0x416E6E6C; PRAGMA user_version = {schema};
             CREATE TABLE IF NOT EXISTS node (uuid TEXT, doc TEXT);"
        );
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        let before = std::fs::read(&path).unwrap();
        let error = refused(&path);
        assert!(matches!(error, OpenError::Older { found, .. } if found == schema), "{error}");
        let message = error.to_string();
        for part in [path.to_str().unwrap(), "start with a new state_dir", "enrol the nodes again"] {
            assert!(message.contains(part), "{message} says {part:?}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("notes.txt");
    std::fs::write(
        &text,
        "not a database at all, but long enough to have a header of one hundred bytes. ".repeat(9),
    )
    .unwrap();
    let other = dir.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x);").unwrap();
    for file in [&text, &other] {
        std::fs::set_permissions(file, Permissions::from_mode(0o644)).unwrap();
        let before = std::fs::read(file).unwrap();
        let error = refused(file);
        assert!(
            matches!(&error, OpenError::Foreign { path } if path.ends_with(file.file_name().unwrap())),
            "{error}"
        );
        assert_eq!(std::fs::read(file).unwrap(), before);
        assert_eq!(mode(file), 0o644);
    }
    assert!(matches!(refused(dir.path()), OpenError::Foreign { .. }), "a directory");
    let message = refused(&dir.path().join("missing/anneal.db")).to_string();
    assert!(message.contains("missing/anneal.db"), "{message}");
}

#[tokio::test]
async fn everything_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    let kept = store.create_node(node("one"), vec![]).await.unwrap();
    store
        .grant_token(kept.uuid, TokenRequest::without_nonce("token", Some("boot"), Timestamp(1)))
        .await
        .unwrap();
    let contact = store.contact(kept.uuid).await.unwrap();
    let lease = store.take_lease(kept.uuid, "me", Timestamp(0), Timestamp(9)).await.unwrap().unwrap();
    store.release_lease(lease).await.unwrap();
    drop(store);

    let store = SqliteStore::open(&path, &key()).unwrap();
    assert_eq!(store.nodes().await.unwrap(), std::slice::from_ref(&kept));
    assert_eq!(store.contact(kept.uuid).await.unwrap(), contact);
    let next = store.take_lease(kept.uuid, "me", Timestamp(0), Timestamp(9)).await.unwrap().unwrap();
    assert!(next.epoch > lease.epoch, "epochs grow across restarts");
}

/// Damaged rows: the error names the row, contains no secret, and affects no other row.
#[tokio::test]
async fn a_damaged_document_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    let bad = store.create_node(node("bad"), vec![]).await.unwrap();
    let good = store.create_node(node("good"), vec![]).await.unwrap();
    store.grant_token(bad.uuid, TokenRequest::without_nonce(SECRET, None, Timestamp(1))).await.unwrap();
    drop(store);
    let damage = Connection::open(&path).unwrap();
    damage.pragma_update(None, "ignore_check_constraints", "ON").unwrap();
    for sql in [
        // serde's own message would quote the value it did not expect.
        "UPDATE node SET doc = json_set(doc, '$.maintenance', 'hunter2') WHERE name = 'bad'",
        "UPDATE contact SET doc = CAST(x'7b22746f6b656e223a22ff227d' AS TEXT)",
        "INSERT INTO catalogue (node, kind, doc) SELECT uuid, 'clean', '{' FROM node WHERE name = 'bad'",
        "INSERT INTO inventory (node, doc) SELECT uuid, '{}' FROM node WHERE name = 'bad'",
    ] {
        assert_eq!(damage.execute(sql, []).unwrap(), 1, "{sql}");
    }
    drop(damage);

    let store = SqliteStore::open(&path, &key()).unwrap();
    let uuid = bad.uuid;
    let check = |outcome: Option<StoreError>, row: String| match outcome {
        Some(error @ StoreError::Failed { .. }) => {
            let message = error.chain();
            assert!(message.contains(&row), "{message} names {row}");
            assert!(!message.contains(SECRET), "{message}");
        }
        other => panic!("{row}: {other:?}"),
    };
    check(store.node(uuid).await.err(), format!("node {uuid}"));
    check(store.node_by_ident("bad").await.err(), format!("node {uuid}"));
    check(store.nodes().await.err(), format!("node {uuid}"));
    check(store.contact(uuid).await.err(), format!("contact {uuid}"));
    check(
        store.grant_token(uuid, TokenRequest::without_nonce("t", None, Timestamp(2))).await.err(),
        format!("node {uuid}"),
    );
    check(store.catalogue(uuid, StepKind::Clean).await.err(), format!("catalogue clean of node {uuid}"));
    check(store.inventory(uuid).await.err(), format!("inventory {uuid}"));

    assert_eq!(store.node(good.uuid).await.unwrap(), good);
    store.forget_agent(uuid, None, None).await.expect("what is forgotten need not be read");
    let repaired = store.update_node(bad, vec![], None).await.expect("a whole document replaces it");
    store.grant_token(uuid, TokenRequest::without_nonce("t", None, Timestamp(2))).await.unwrap();
    assert_eq!(store.nodes().await.unwrap().len(), 2);
    store.delete_node(uuid, repaired.version, vec![]).await.unwrap();
}

/// Overwrite the page at which a table or index begins.
fn damage(path: &Path, name: &str) {
    use std::os::unix::fs::FileExt;
    let file = Connection::open(path).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: i64 = file.query_row(root, [name], |row| row.get(0)).unwrap();
    let size: i64 = file.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    drop(file);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&vec![0xa5; usize::try_from(size).unwrap()], u64::try_from((page - 1) * size).unwrap())
        .unwrap();
}

/// What the conductor reads is read at the start.
#[tokio::test]
async fn a_database_whose_nodes_cannot_be_read_is_refused() {
    for name in ["node", "node_due", "contact", "resource", "lease"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("anneal.db");
        let store = SqliteStore::open(&path, &key()).unwrap();
        let due = Node { next_wake_at: Some(Timestamp(1)), ..node("one") };
        store.create_node(due, vec![]).await.unwrap();
        drop(store);
        damage(&path, name);
        let error = refused(&path);
        assert!(matches!(error, OpenError::Damaged { .. }), "{name}: {error:?}");
    }
}

/// The rest is found by the full check, and then nothing is written any more.
#[tokio::test]
async fn a_fault_that_the_full_check_finds_stops_writes_and_no_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    assert_eq!(store.check().await.unwrap(), None);
    let stored = store.create_node(node("one"), vec![]).await.unwrap();
    assert_eq!(store.check().await.unwrap(), None);
    drop(store);
    damage(&path, "event");
    let store = SqliteStore::open(&path, &key()).unwrap();
    store.check_writable().await.expect("nothing is known yet");
    let found = store.check().await.unwrap().expect("a finding");
    for refused in [store.check_writable().await.err(), store.delete_node(stored.uuid, 1, vec![]).await.err()]
    {
        let error = refused.unwrap().chain();
        assert!(error.contains(&found) && error.contains("restore FILE"), "{error}");
    }
    assert_eq!(store.nodes().await.unwrap(), [stored]);
}

/// JSON nested deeper than the parser goes would be written once and never read again.
#[tokio::test]
async fn what_could_not_be_read_again_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("anneal.db"), &key()).unwrap();
    let stored = store.create_node(node("one"), vec![]).await.unwrap();
    let mut deep = stored.clone();
    let nested = (0..200).fold(serde_json::Value::Null, |inner, _| serde_json::json!([inner]));
    deep.extra.insert("deep".to_owned(), nested);
    let error = store.update_node(deep, vec![], None).await.unwrap_err();
    assert!(error.to_string().contains(&stored.uuid.to_string()), "{error}");
    assert_eq!(store.nodes().await.unwrap(), [stored]);
}
