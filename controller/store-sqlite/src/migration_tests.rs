//! A database of every earlier schema, filled as its controller filled it, opens and tells the same.

use crate::SqliteStore;
use crate::migrate::{self, MIGRATIONS};
use model::{Cursor, PowerTarget, ProvisionState, ResourceKind, Timestamp};
use rusqlite::Connection;
use store::{StepKind, Store};
use uuid::{Uuid, uuid};

/// Rows of each schema, by version. A new migration comes with a new line here.
const FIXTURES: &[&str] = &[
    "",
    include_str!("../tests/fixtures/v0001.sql"),
    include_str!("../tests/fixtures/v0002.sql"),
    include_str!("../tests/fixtures/v0003.sql"),
    include_str!("../tests/fixtures/v0004.sql"),
    include_str!("../tests/fixtures/v0005.sql"),
];

#[tokio::test]
async fn every_earlier_schema_opens() {
    assert_eq!(FIXTURES.len(), MIGRATIONS.len() + 1, "every schema has a fixture");
    for (version, rows) in FIXTURES.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("anneal.db");
        let mut fixture = Connection::open(&path).unwrap();
        migrate::apply(&mut fixture, &MIGRATIONS[..version], 0).unwrap();
        fixture.execute_batch(rows).unwrap();
        drop(fixture);

        let store = SqliteStore::open(&path).unwrap();
        if version == 0 {
            assert_eq!(store.nodes().await.unwrap(), []);
        } else {
            if version >= 2 {
                tells_of_templates_and_inventory(&store).await;
            } else {
                assert_eq!(store.templates().await.unwrap(), []);
                assert_eq!(store.inventory(NODE).await.unwrap(), None);
            }
            tells_the_same(&store).await;
        }
        if version >= 3 {
            tells_of_bundles(&store).await;
        } else {
            assert_eq!(store.bundles().await.unwrap(), []);
        }
        tells_of_certificates(&store, version >= 4).await;
        tells_of_resources(&store, version >= 5).await;
        drop(store);
        let migrated = Connection::open(&path).unwrap();
        let now: i64 = migrated.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(usize::try_from(now), Ok(MIGRATIONS.len()));
        let whole: String = migrated.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok");
        let strays = migrated.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap();
        assert!(!strays, "schema {version} leaves rows of no node");
    }
}

const NODE: Uuid = uuid!("11111111-1111-4111-8111-111111111111");

/// Since schema 2.
async fn tells_of_templates_and_inventory(store: &SqliteStore) {
    let template = store.template("CUSTOM_BIOS").await.unwrap();
    assert_eq!(template.uuid, uuid!("77777777-7777-4777-8777-777777777777"));
    assert_eq!((template.version, template.steps[0].step.as_str()), (3, "apply_configuration"));
    assert_eq!(template.steps[0].priority, Some(150.into()));
    let inventory = store.inventory(NODE).await.unwrap().unwrap();
    assert_eq!(inventory.source, "agent");
    assert_eq!(inventory.plugin_data["root_disk"]["name"], "/dev/sda");
    assert!(store.node(NODE).await.unwrap().traits.contains("CUSTOM_BIOS"));
    assert_eq!(store.history(NODE).await.unwrap()[0].state, Some(ProvisionState::Enroll));
    let contact = store.contact(NODE).await.unwrap();
    assert_eq!(contact.progress_at, contact.last_heartbeat_at);
}

/// Since schema 3.
async fn tells_of_bundles(store: &SqliteStore) {
    let bundles = store.bundles().await.unwrap();
    let found: Vec<_> =
        bundles.iter().map(|bundle| (bundle.name.as_str(), bundle.scope.to_string())).collect();
    let node = format!("node:{NODE}");
    assert_eq!(found, [("acme-raid", "driver:redfish".to_owned()), ("acme-raid", node)]);
    assert_eq!(bundles[0].digest, "ab".repeat(32));
    assert_eq!(bundles[0].signed_by.as_deref(), Some("0123456789abcdef"));
    assert_eq!((bundles[0].size, &bundles[0].manifest["entry"][0]), (4321, &"/bin/acme".into()));
}

/// Since schema 4; one of a node that is gone.
async fn tells_of_certificates(store: &SqliteStore, there: bool) {
    let of = uuid!("99999999-9999-4999-8999-999999999999");
    let found = store.certificates(of).await.unwrap();
    assert_eq!(found.len(), usize::from(there));
    if there {
        assert_eq!((found[0].number, found[0].finding.as_str()), (1, "erased"));
        assert!(found[0].file.starts_with(r#"{"payload":"{}""#), "{}", found[0].file);
        let contact = store.contact(NODE).await.unwrap();
        let state = contact.anneal().unwrap();
        assert_eq!(state.evidence_key.as_deref(), Some("ed25519:00"));
    }
}

/// Since schema 5.
async fn tells_of_resources(store: &SqliteStore, there: bool) {
    let found = store.resources(ResourceKind::VolumeTarget, Some(NODE)).await.unwrap();
    assert_eq!(found.len(), usize::from(there));
    if there {
        assert_eq!((found[0].version, found[0].text("volume_type")), (2, Some("iscsi")));
        assert_eq!(found[0].key.as_deref(), Some("11111111-1111-4111-8111-111111111111 0"));
    }
}

async fn tells_the_same(store: &SqliteStore) {
    let uuid = NODE;
    let at = |n: i64| Timestamp(1_790_000_000_000_000 + n);
    let node = store.node_by_ident("rack1-u2").await.unwrap();
    assert_eq!((node.uuid, node.version), (uuid, 7));
    assert_eq!(node.instance_uuid, Some(uuid!("22222222-2222-4222-8222-222222222222")));
    assert_eq!(node.driver_info["redfish_password"], "secret");
    assert_eq!(node.provision_state, ProvisionState::CleanWait);
    assert_eq!(node.target_provision_state, Some(ProvisionState::Available));
    assert_eq!(node.target_power_state, Some(PowerTarget::Reboot));
    assert_eq!(node.wait.as_ref().and_then(|wait| wait.deadline), Some(at(9)));
    let run = node.run.as_ref().unwrap();
    assert_eq!(run.current().unwrap().label(), "deploy.erase_devices");
    assert!(matches!(&run.cursor, Cursor::Issued { accepted: true, at: issued, .. } if *issued == at(2)));
    assert_eq!(store.due(at(5), 9).await.unwrap(), [uuid]);

    let port = store.port_by_address("52:54:00:aa:bb:0c").await.unwrap();
    assert_eq!(store.ports(Some(uuid)).await.unwrap(), [port]);
    assert_eq!(store.history(uuid).await.unwrap()[0].text, "enrolled");
    let contact = store.contact(uuid).await.unwrap();
    assert_eq!((contact.token.as_deref(), contact.last_heartbeat_at), (Some("t0ken"), Some(at(3))));
    assert_eq!(contact.anneal().unwrap().progress.as_ref().unwrap()["bytes"], 1);
    assert_eq!(contact.rival.unwrap().at, at(2));
    let catalogue = store.catalogue(uuid, StepKind::Clean).await.unwrap().unwrap();
    assert_eq!(catalogue.steps[0].step, "erase_devices");
    assert_eq!(store.lease_holder(uuid, at(8)).await.unwrap().as_deref(), Some("conductor-1"));
    let lease = store.take_lease(uuid, "conductor-2", at(9), at(20)).await.unwrap().unwrap();
    assert!(lease.epoch > 41);
    store.update_node(node, vec![], Some(lease)).await.unwrap();
}
