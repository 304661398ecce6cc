//! A database of every released schema, filled as its controller filled it, opens and still has its data.

use crate::SqliteStore;
use crate::migrate::{self, MIGRATIONS, Migration};
use crate::open_error::OpenError;
use crate::secrets::test_key;
use model::{Cursor, PowerTarget, ProvisionState, ResourceKind, Timestamp};
use rusqlite::Connection;
use std::path::Path;
use store::StepKind;
use store::prelude::*;
use uuid::{Uuid, uuid};

const NODE: Uuid = uuid!("11111111-1111-4111-8111-111111111111");

/// Rows of each schema, by the number of its migrations. A new migration comes with a new line here.
const FIXTURES: &[&str] = &[
    "",
    include_str!("../tests/fixtures/v0006.sql"),
    concat!(include_str!("../tests/fixtures/v0006.sql"), include_str!("../tests/fixtures/v0007.sql")),
    concat!(include_str!("../tests/fixtures/v0008.sql"), include_str!("../tests/fixtures/v0007.sql")),
    // Schema 9 derives what it adds, schema 10 adds what each controller says of itself, schema 11 the log of events, and schema 12
    // machines that no node is known for.
    concat!(include_str!("../tests/fixtures/v0008.sql"), include_str!("../tests/fixtures/v0007.sql")),
    concat!(include_str!("../tests/fixtures/v0008.sql"), include_str!("../tests/fixtures/v0007.sql")),
    concat!(include_str!("../tests/fixtures/v0008.sql"), include_str!("../tests/fixtures/v0007.sql")),
    concat!(include_str!("../tests/fixtures/v0008.sql"), include_str!("../tests/fixtures/v0007.sql")),
];

/// What a later release might do: one table more, and a field in every node.
const NEXT: Migration = Migration {
    name: "0013_made_up",
    sql: "CREATE TABLE made_up (node TEXT PRIMARY KEY NOT NULL REFERENCES node (uuid) ON DELETE CASCADE) STRICT;
          INSERT INTO made_up SELECT uuid FROM node;
          UPDATE node SET doc = json_set(doc, '$.extra.migrated', 'yes');",
};

/// The line of the certificate of the fixtures.
const LINE: &str = r#"{"index":1,"node":"99999999-9999-4999-8999-999999999999","number":1,"certificate":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd"}"#;

/// A database with the first `applied` migrations and the rows of their schema.
fn database(path: &Path, applied: usize) {
    let mut fixture = Connection::open(path).unwrap();
    migrate::apply(&mut fixture, &MIGRATIONS[..applied], 0).unwrap();
    fixture.execute_batch(FIXTURES[applied]).unwrap();
}

/// The file has the schema after `applied` migrations, and SQLite finds no fault in it.
fn is_sound(path: &Path, applied: usize) {
    let file = Connection::open(path).unwrap();
    let now: i64 = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(now, migrate::version(applied));
    let whole: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    assert!(!file.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap(), "rows of no node");
}

#[tokio::test]
async fn every_released_schema_opens() {
    assert_eq!(FIXTURES.len(), MIGRATIONS.len() + 1, "every schema has a fixture");
    for applied in 0..FIXTURES.len() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("anneal.db");
        database(&path, applied);
        let store = SqliteStore::open(&path, &test_key()).unwrap();
        if applied == 0 {
            assert_eq!(store.nodes().await.unwrap(), []);
        } else {
            has_its_data(&store).await;
        }
        drop(store);
        is_sound(&path, MIGRATIONS.len());
    }
}

/// The mechanism that later schemas need: a database of today is opened by a controller that knows one migration more,
/// with all its data; the controller of today then refuses it.
#[tokio::test]
async fn a_later_migration_keeps_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    database(&path, MIGRATIONS.len());
    let later = [MIGRATIONS, &[NEXT]].concat();

    for opened in ["migrated", "opened again"] {
        let store = SqliteStore::open_with(&path, &test_key(), &later).unwrap();
        let node = store.node(NODE).await.unwrap();
        assert_eq!(node.extra["migrated"], "yes", "{opened}");
        drop(store);
        is_sound(&path, later.len());
        let file = Connection::open(&path).unwrap();
        let rows: i64 = file.query_row("SELECT count(*) FROM made_up", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1, "{opened}: the migration ran once");
    }
    has_its_data(&SqliteStore::open_with(&path, &test_key(), &later).unwrap()).await;

    let error = SqliteStore::open(&path, &test_key()).err().expect("the older controller refuses it");
    let expected = migrate::version(later.len());
    assert!(matches!(error, OpenError::Newer { found, .. } if found == expected), "{error}");
    is_sound(&path, later.len());
}

#[test]
fn a_failing_migration_leaves_the_file_at_the_schema_before() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    database(&path, MIGRATIONS.len());
    let bad = Migration { name: "0012_bad", sql: "DELETE FROM node; INSERT INTO nowhere VALUES (1);" };
    let error =
        SqliteStore::open_with(&path, &test_key(), &[MIGRATIONS, &[bad]].concat()).err().expect("it fails");
    assert!(error.to_string().ends_with("anneal.db: migration 0012_bad failed"), "{error}");
    is_sound(&path, MIGRATIONS.len());
    let file = Connection::open(&path).unwrap();
    let nodes: i64 = file.query_row("SELECT count(*) FROM node", [], |row| row.get(0)).unwrap();
    assert_eq!(nodes, 1);
}

/// What the fixture of today's schema holds.
async fn has_its_data(store: &SqliteStore) {
    let at = |n: i64| Timestamp(1_790_000_000_000_000 + n);
    let node = store.node_by_ident("rack1-u2").await.unwrap();
    assert_eq!((node.uuid, node.version), (NODE, 7));
    assert_eq!(node.instance_uuid, Some(uuid!("22222222-2222-4222-8222-222222222222")));
    assert_eq!(node.driver_info["redfish_password"], "secret");
    assert_eq!(node.provision_state, ProvisionState::CleanWait);
    assert_eq!(node.target_provision_state, Some(ProvisionState::Available));
    assert_eq!(node.target_power_state, Some(PowerTarget::Reboot));
    assert_eq!(node.wait.as_ref().and_then(|wait| wait.deadline), Some(at(9)));
    assert!(node.traits.contains("CUSTOM_BIOS"));
    assert!(!node.retired);
    let run = node.run.as_ref().unwrap();
    assert_eq!(run.current().unwrap().label(), "deploy.erase_devices");
    assert!(matches!(&run.cursor, Cursor::Issued { accepted: true, at: issued, .. } if *issued == at(2)));
    assert_eq!(store.due(at(5), 9).await.unwrap(), [NODE]);

    let port = store.resource_by_key(ResourceKind::Port, "52:54:00:aa:bb:0c").await.unwrap();
    assert_eq!(store.resources(ResourceKind::Port, Some(NODE)).await.unwrap(), [port]);
    let history = store.history(NODE).await.unwrap();
    assert_eq!((history[0].text.as_str(), history[0].state), ("enrolled", Some(ProvisionState::Enroll)));
    let catalogue = store.catalogue(NODE, StepKind::Clean).await.unwrap().unwrap();
    assert_eq!(catalogue.steps[0].step, "erase_devices");
    let inventory = store.inventory(NODE).await.unwrap().unwrap();
    assert_eq!(inventory.source, "agent");
    assert_eq!(inventory.plugin_data["root_disk"]["name"], "/dev/sda");

    has_its_contact(store, at(3), at(2)).await;
    has_its_resources(store).await;
    has_its_bundles_and_certificates(store).await;

    assert_eq!(store.lease_holder(NODE, at(8)).await.unwrap().as_deref(), Some("conductor-1"));
    let lease = store.take_lease(NODE, "conductor-2", at(9), at(20)).await.unwrap().unwrap();
    assert!(lease.epoch > 41);
    store.update_node(node, vec![], Some(lease)).await.unwrap();
}

async fn has_its_contact(store: &SqliteStore, heartbeat: Timestamp, rival: Timestamp) {
    let contact = store.contact(NODE).await.unwrap();
    assert_eq!((contact.token.as_deref(), contact.last_heartbeat_at), (Some("t0ken"), Some(heartbeat)));
    assert_eq!(contact.progress_at, contact.last_heartbeat_at);
    assert_eq!(contact.rival.as_ref().unwrap().at, rival);
    let state = contact.anneal().unwrap();
    assert_eq!(state.progress.as_ref().unwrap()["bytes"], 1);
    assert_eq!(state.evidence_key.as_deref(), Some("ed25519:00"));
}

async fn has_its_resources(store: &SqliteStore) {
    let volumes = store.resources(ResourceKind::VolumeTarget, Some(NODE)).await.unwrap();
    assert_eq!(volumes.len(), 1);
    assert_eq!((volumes[0].version, volumes[0].text("volume_type")), (2, Some("iscsi")));
    assert_eq!(volumes[0].field("properties")["auth_password"], "secret");
    assert_eq!(volumes[0].key.as_deref(), Some("11111111-1111-4111-8111-111111111111 0"));
    let template = store.resource(ResourceKind::DeployTemplate, "CUSTOM_BIOS").await.unwrap();
    assert_eq!((template.uuid, template.version), (uuid!("77777777-7777-4777-8777-777777777777"), 3));
    let step = &template.field("steps")[0];
    assert_eq!((&step["step"], &step["priority"]), (&"apply_configuration".into(), &150.into()));
}

async fn has_its_bundles_and_certificates(store: &SqliteStore) {
    let bundles = store.bundles().await.unwrap();
    let found: Vec<_> =
        bundles.iter().map(|bundle| (bundle.name.as_str(), bundle.scope.to_string())).collect();
    assert_eq!(found, [("acme-raid", "driver:redfish".to_owned()), ("acme-raid", format!("node:{NODE}"))]);
    assert_eq!(bundles[0].digest, "ab".repeat(32));
    assert_eq!(bundles[0].signed_by.as_deref(), Some("0123456789abcdef"));
    assert_eq!((bundles[0].size, &bundles[0].manifest["entry"][0]), (4321, &"/bin/acme".into()));
    // Of a node that was deleted.
    let of = uuid!("99999999-9999-4999-8999-999999999999");
    let certificates = store.certificates(of).await.unwrap();
    assert_eq!(certificates.len(), 1);
    assert_eq!((certificates[0].number, certificates[0].finding.as_str()), (1, "erased"));
    // Those of before there was a log get their lines.
    let line = store.certificate_log(1, 9).await.unwrap();
    assert_eq!(line, [LINE]);
    assert!(certificates[0].file.starts_with(r#"{"payload":"{}""#), "{}", certificates[0].file);
}

#[tokio::test]
async fn the_log_of_certificates_is_neither_changed_nor_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("anneal.db");
    database(&path, MIGRATIONS.len());
    let file = Connection::open(&path).unwrap();
    for sql in ["UPDATE certificate_log SET line = '{}'", "DELETE FROM certificate_log"] {
        let refused = file.execute(sql, []).unwrap_err().to_string();
        assert!(refused.contains("the log of certificates is never"), "{refused}");
    }
    drop(file);
    let store = SqliteStore::open(&path, &test_key()).unwrap();
    assert_eq!(store.certificate_log(1, 9).await.unwrap(), [LINE]);
    assert_eq!(store.key_changes().await.unwrap(), [r#"{"by_old":{},"by_new":{}}"#]);
}
