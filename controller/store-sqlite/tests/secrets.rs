//! Passwords are in no byte of the database's files, and are lost without their key.

use model::hello::{Hello, HelloNonce};
use model::{Node, Resource, ResourceKind, Run, RunKind, Timestamp};
use rusqlite::Connection;
use std::path::Path;
use store::ResourceWrite;
use store::prelude::*;
use store_sqlite::{DatabaseKey, OpenError, SqliteStore, are_encrypted, backup, forget};
use uuid::Uuid;

const PASSWORDS: [&str; 5] =
    ["hunter2-bmc", "hunter2-config-drive", "hunter2-iscsi", "hunter2-renewed", "hunter2-hello"];

fn key() -> DatabaseKey {
    DatabaseKey::from_text(&"07".repeat(32)).unwrap()
}

fn node() -> Node {
    let mut node = Node::enrolled(Uuid::from_u128(7), "redfish", Timestamp(1));
    node.name = Some("rack1".to_owned());
    node.driver_info.insert("redfish_address".into(), "https://192.0.2.7".into());
    node.driver_info.insert("redfish_password".into(), PASSWORDS[0].into());
    node.instance_info.insert("configdrive".into(), serde_json::json!({"user_data": PASSWORDS[1]}));
    node
}

fn volume() -> Resource {
    let mut volume = Resource::new(ResourceKind::VolumeTarget, Uuid::from_u128(8), Timestamp(1));
    volume.node = Some(node().uuid);
    volume.fields.insert("properties".into(), serde_json::json!({"auth_password": PASSWORDS[2]}));
    volume
}

/// A password that is in a file of the directory.
fn found_in(dir: &Path) -> Option<String> {
    let files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.to_str().unwrap().ends_with("anneal.db")), "{files:?}");
    files.iter().find_map(|file| {
        let bytes = std::fs::read(file).unwrap();
        let is_in = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        PASSWORDS
            .into_iter()
            .find(|password| is_in(password))
            .map(|found| format!("{found} in {}", file.display()))
    })
}

#[tokio::test]
async fn no_byte_of_database_log_and_backup_is_of_a_password() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    let hello = Hello { nonce: HelloNonce::shown(PASSWORDS[4]), limit_s: 60, heard_at: None };
    let run = Run { hello: Some(hello), ..Run::new(RunKind::Deploy, Timestamp(1)) };
    let deployed = Node { run: Some(run), ..node() };
    let mut stored = store.create_node(deployed, vec![]).await.unwrap();
    let volume = store.write_resource(ResourceWrite::Create(volume()), None, vec![]).await.unwrap();
    stored.driver_info.insert("redfish_password".into(), PASSWORDS[3].into());
    let stored = store.update_node(stored, vec![], None).await.unwrap();
    assert!(std::fs::metadata(dir.path().join("anneal.db-wal")).unwrap().len() > 0);
    assert_eq!(found_in(dir.path()), None, "while it is open");
    backup::backup(&path, &dir.path().join("copy")).unwrap();
    assert_eq!(store.node_by_ident("rack1").await.unwrap(), stored);
    assert_eq!(store.nodes().await.unwrap(), std::slice::from_ref(&stored));
    let volumes = store.resources(ResourceKind::VolumeTarget, Some(stored.uuid)).await.unwrap();
    assert_eq!(volumes, [volume]);
    drop(store);
    assert_eq!(found_in(dir.path()), None, "closed, and in the backup");
    let again = SqliteStore::open(&path, &key()).unwrap();
    assert_eq!(again.node(stored.uuid).await.unwrap(), stored);
}

/// As a controller without encryption left it: the first start encrypts it, and no free page keeps a password.
#[tokio::test]
async fn a_plain_database_is_encrypted_at_the_first_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    drop(SqliteStore::open(&path, &key()).unwrap());
    let plain = Connection::open(&path).unwrap();
    plain.execute("DELETE FROM secret_key", []).unwrap();
    let (node_uuid, doc) = (node().uuid.to_string(), serde_json::to_string(&node()).unwrap());
    plain.execute("INSERT INTO node (uuid, doc) VALUES (?1, ?2)", [&node_uuid, &doc]).unwrap();
    let doc = serde_json::to_string(&volume()).unwrap();
    let ids = ["volume_target", &volume().uuid.to_string(), &doc];
    plain.execute("INSERT INTO resource (kind, uuid, doc) VALUES (?1, ?2, ?3)", ids).unwrap();
    // What an earlier password left in a free page.
    plain.execute_batch("CREATE TABLE old (doc TEXT)").unwrap();
    plain.execute("INSERT INTO old VALUES (?1)", [PASSWORDS[3].repeat(1000)]).unwrap();
    plain.execute_batch("DROP TABLE old").unwrap();
    drop(plain);
    assert!(found_in(dir.path()).is_some());
    assert!(!are_encrypted(&path).unwrap());

    let store = SqliteStore::open(&path, &key()).unwrap();
    assert_eq!(found_in(dir.path()), None);
    assert!(are_encrypted(&path).unwrap());
    assert_eq!(store.nodes().await.unwrap()[0].driver_info, node().driver_info);
    assert_eq!(store.nodes().await.unwrap()[0].instance_info, node().instance_info);
    let volumes = store.resources(ResourceKind::VolumeTarget, None).await.unwrap();
    assert_eq!(volumes[0].fields, volume().fields);
}

#[tokio::test]
async fn another_key_is_refused_and_forgotten_secrets_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    store.create_node(node(), vec![]).await.unwrap();
    store.write_resource(ResourceWrite::Create(volume()), None, vec![]).await.unwrap();
    assert!(matches!(forget(&path), Err(OpenError::InUse { .. })));
    drop(store);

    let other = DatabaseKey::generate().unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = SqliteStore::open(&path, &other).err().unwrap();
    assert!(matches!(refused, OpenError::WrongKey { .. }), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), before, "it is left as it was");

    let forgotten = forget(&path).unwrap();
    let shown: Vec<_> = forgotten.iter().map(|one| format!("{}: {}", one.of, one.names.join(" "))).collect();
    let volume_line = format!("volume_target {}: auth_password", volume().uuid);
    assert_eq!(shown, ["rack1: redfish_password configdrive".to_owned(), volume_line]);
    let store = SqliteStore::open(&path, &other).unwrap();
    let rest = store.node_by_ident("rack1").await.unwrap();
    assert_eq!(rest.driver_info["redfish_address"], "https://192.0.2.7");
    assert!(!rest.driver_info.contains_key("redfish_password"));
}

/// A user that can write the file, and does not have the key, gives a node no other node's password.
#[tokio::test]
async fn a_password_that_was_moved_to_another_row_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    let store = SqliteStore::open(&path, &key()).unwrap();
    store.create_node(node(), vec![]).await.unwrap();
    let thief = Node { uuid: Uuid::from_u128(9), name: Some("thief".to_owned()), ..node() };
    store.create_node(thief.clone(), vec![]).await.unwrap();
    drop(store);
    let moved = "UPDATE node SET doc = json_set(doc, '$.driver_info.redfish_password',
                 (SELECT json_extract(doc, '$.driver_info.redfish_password') FROM node WHERE name = 'rack1'))
                 WHERE name = 'thief'";
    assert_eq!(Connection::open(&path).unwrap().execute(moved, []).unwrap(), 1);
    let store = SqliteStore::open(&path, &key()).unwrap();
    let error = store.node(thief.uuid).await.unwrap_err().chain();
    assert!(error.contains("cannot be decrypted") && error.contains(&thief.uuid.to_string()), "{error}");
    store.node_by_ident("rack1").await.unwrap();
}
