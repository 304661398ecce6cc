//! A database of every released schema, filled as its controller filled it, opens and still has its data; and a controller of an
//! earlier schema goes on working on it next to those that migrated it.

use crate::address::{self, Settings};
use crate::connect::{self, Tls};
use crate::migrate::{self, MIGRATIONS, Migration};
use crate::{OpenError, PostgresStore};
use deadpool_postgres::{Client, Pool};
use model::{Cursor, PowerTarget, ProvisionState, ResourceKind, Timestamp};
use postgres_server::{Server, shared};
use std::sync::Arc;
use store::StepKind;
use store::prelude::*;
use stored_secrets::DatabaseKey;
use uuid::{Uuid, uuid};

const NODE: Uuid = uuid!("11111111-1111-4111-8111-111111111111");

/// Rows of each schema, by the number of its migrations. A new migration comes with a new line here; one that needs no other rows
/// has those of the schema before it.
const FIXTURES: &[&str] = &[
    "",
    include_str!("../tests/fixtures/v0001.sql"),
    include_str!("../tests/fixtures/v0001.sql"),
    include_str!("../tests/fixtures/v0001.sql"),
    include_str!("../tests/fixtures/v0001.sql"),
];

/// What a later release might add.
const ADDS: Migration = Migration {
    name: "0005_adds",
    sql: "ALTER TABLE node ADD COLUMN made_up text COLLATE \"C\"; CREATE INDEX node_made_up ON node (made_up)",
    oldest: 1,
};

/// What the one after that might take away.
const TAKES_AWAY: Migration =
    Migration { name: "0006_takes_away", sql: "ALTER TABLE node DROP COLUMN lessee", oldest: 5 };

fn key() -> DatabaseKey {
    DatabaseKey::from_text(&"07".repeat(32)).unwrap()
}

/// A database of the test's own.
struct Fixture {
    server: Arc<Server>,
    name: String,
    settings: Settings,
    pool: Pool,
}

impl Fixture {
    /// With the first `applied` migrations and the rows of their schema.
    async fn new(applied: usize) -> Self {
        let server = shared();
        let name = server.create();
        let settings = Settings::at(&server.url(&name));
        let address = address::read(&settings).unwrap();
        let pool = connect::pool(&address, &Tls::of(&address.trust).unwrap(), &settings, 4).unwrap();
        migrate::apply(&pool, &name, &MIGRATIONS[..applied]).await.unwrap();
        pool.get().await.unwrap().batch_execute(FIXTURES[applied]).await.unwrap();
        Self { server, name, settings, pool }
    }

    async fn open(&self, migrations: &[Migration]) -> Result<PostgresStore, OpenError> {
        PostgresStore::open_with(&self.settings, &key(), migrations).await
    }

    async fn client(&self) -> Client {
        self.pool.get().await.unwrap()
    }

    fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.name, sql)
    }

    /// Another controller reports itself, which knows this schema and is alive for a while.
    fn reports(&self, hostname: &str, schema: usize) {
        let until = "(extract(epoch FROM clock_timestamp()) * 1000000 + 60000000)::bigint";
        self.sql(&format!(
            "INSERT INTO conductor (hostname, schema, doc) SELECT '{hostname}', {schema}, jsonb_set(doc::jsonb,
            '{{alive_until}}', to_jsonb({until}))::text FROM conductor WHERE hostname = 'conductor-1'"
        ));
    }
}

#[tokio::test]
async fn every_released_schema_opens() {
    assert_eq!(FIXTURES.len(), MIGRATIONS.len() + 1, "every schema has a fixture");
    for applied in 0..FIXTURES.len() {
        let fixture = Fixture::new(applied).await;
        let store = fixture.open(MIGRATIONS).await.unwrap();
        if applied == 0 {
            assert_eq!(store.nodes().await.unwrap(), []);
        } else {
            has_its_data(&store).await;
        }
        assert_eq!(
            fixture.sql("SELECT version, oldest FROM anneal_schema"),
            format!("{}|1", MIGRATIONS.len())
        );
    }
}

/// Controllers of two versions: the newer has added to the schema, and the older one is started again next to it. Then all are of
/// the newer version, and the next takes away what the older one used.
#[tokio::test]
async fn a_controller_starts_on_a_newer_schema_until_that_has_taken_something_away() {
    let fixture = Fixture::new(MIGRATIONS.len()).await;
    let newer = [MIGRATIONS, &[ADDS]].concat();
    drop(fixture.open(&newer).await.unwrap());
    let older = fixture.open(MIGRATIONS).await.unwrap();
    has_its_data(&older).await;
    drop(older);

    let newest = [MIGRATIONS, &[ADDS, TAKES_AWAY]].concat();
    fixture.reports("late", MIGRATIONS.len());
    let refused = fixture.open(&newest).await.err().expect("one is alive that would fail");
    assert!(matches!(&refused, OpenError::OldController { hostname, .. } if hostname == "late"), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("0006_takes_away") && text.contains("schemas up to 4 and must know 5"), "{text}");
    assert_eq!(
        fixture.sql("SELECT version FROM anneal_schema"),
        newer.len().to_string(),
        "nothing was changed"
    );

    fixture.sql("UPDATE conductor SET schema = 5 WHERE hostname = 'late'");
    drop(fixture.open(&newest).await.unwrap());
    let refused = fixture.open(MIGRATIONS).await.err().expect("what it uses is gone");
    assert!(matches!(refused, OpenError::Newer { found: 6, known: 4, .. }), "{refused}");
}

/// One that died does not stand in the way.
#[tokio::test]
async fn a_report_that_has_expired_says_nothing() {
    let fixture = Fixture::new(MIGRATIONS.len()).await;
    let newest = [MIGRATIONS, &[ADDS, TAKES_AWAY]].concat();
    assert_eq!(fixture.sql("SELECT hostname, schema FROM conductor"), "conductor-1|1");
    fixture.open(&newest).await.unwrap();
}

#[tokio::test]
async fn a_failing_migration_leaves_the_database_at_the_schema_before() {
    let fixture = Fixture::new(MIGRATIONS.len()).await;
    let bad = Migration { name: "0005_bad", sql: "DELETE FROM node; SELECT * FROM nowhere", oldest: 4 };
    let error = fixture.open(&[MIGRATIONS, &[bad]].concat()).await.err().expect("it fails");
    assert!(error.to_string().ends_with("migration 0005_bad failed"), "{error}");
    has_its_data(&fixture.open(MIGRATIONS).await.unwrap()).await;
}

/// The statements of the controller of schema 1 (commit dfb8c6b5), as it sends them. Never edited: it may be running next to a
/// newer one.
mod schema_1 {
    pub const VERSION: &str = "SELECT version FROM anneal_schema";
    pub const REPORT: &str = "INSERT INTO conductor (hostname, doc) VALUES ($1, $2)
        ON CONFLICT (hostname) DO UPDATE SET doc = excluded.doc";
    pub const REPORTS: &str = "SELECT doc FROM conductor ORDER BY hostname";
    pub const TAKE: &str = "INSERT INTO lease (node, epoch, holder, until) VALUES ($1, nextval('lease_epoch'), $2, $3) ON CONFLICT (node)
        DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, until = excluded.until WHERE lease.holder = excluded.holder OR lease.until <= $4 RETURNING epoch";
    pub const IS_NEWEST: &str = "SELECT 1 FROM lease WHERE node = $1 AND epoch = $2 FOR SHARE";
    pub const RENEW: &str = "UPDATE lease SET until = $3 WHERE node = $1 AND epoch = $2";
    pub const RELEASE: &str = "DELETE FROM lease WHERE node = $1 AND epoch = $2";
    pub const LOCK: &str =
        "SELECT version, CASE WHEN $2 THEN doc END FROM node WHERE uuid = $1 FOR NO KEY UPDATE";
    pub const UPDATE: &str = "UPDATE node SET version = $1, next_wake_at = $2, at_work = $3, description = $4, created_at = $6, name = $7, instance_uuid = $8, driver = $9, provision_state = $10, doc = $11 WHERE uuid = $5";
    pub const EVENT: &str = "INSERT INTO event (node, at, doc)
        SELECT $1, at, doc FROM unnest($2::bigint[], $3::text[]) WITH ORDINALITY AS new (at, doc, place) ORDER BY place";
    pub const CONTACT: &str =
        "INSERT INTO contact (node, doc) VALUES ($1, $2) ON CONFLICT (node) DO UPDATE SET doc = excluded.doc";
    pub const LOOK: &str = "SELECT CASE WHEN n.version IS DISTINCT FROM $2 THEN n.doc END, c.doc
        FROM node n LEFT JOIN contact c ON c.node = n.uuid WHERE n.uuid = $1";
    pub const DUE: &str =
        "SELECT uuid FROM node WHERE next_wake_at <= $1 ORDER BY next_wake_at, uuid LIMIT $2";
    pub const INSERT_NODE: &str = "INSERT INTO node (version, next_wake_at, at_work, description, uuid, created_at, driver, provision_state, maintenance, retired, doc) VALUES ($1, NULL, false, NULL, $2, $3, $4, $5, false, false, $6)";
    pub const RESOURCE: &str = "INSERT INTO resource (kind, version, key, description, uuid, created_at, node_uuid, address, doc) VALUES ($1, 1, $2, NULL, $3, $4, $5, $2, $6)";
    pub const CERTIFICATE: &str = "INSERT INTO certificate (id, node, number, doc) VALUES ($1, $2, $3, $4)";
    pub const LINE: &str = "INSERT INTO certificate_log (seq, certificate, line) VALUES ($1, $2, $3)";
    pub const CATALOGUE: &str = "INSERT INTO catalogue (node, kind, doc) VALUES ($1, $2, $3)
        ON CONFLICT (node, kind) DO UPDATE SET doc = excluded.doc";
    pub const INVENTORY: &str = "INSERT INTO inventory (node, doc) VALUES ($1, $2) ON CONFLICT (node) DO UPDATE SET doc = excluded.doc";
    pub const BUNDLE: &str = "INSERT INTO bundle (name, scope, digest, node, doc) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (name, scope) DO UPDATE SET digest = excluded.digest, node = excluded.node, doc = excluded.doc";
    pub const AT_WORK: &str = "SELECT uuid FROM node WHERE at_work";
    pub const DELETE: &str = "DELETE FROM node WHERE uuid = $1";
}

/// The database as the newest controller has migrated it, and a controller of schema 1 that had begun before: whatever it asks and
/// writes works, and the newer one reads it.
#[tokio::test]
async fn a_controller_of_schema_1_goes_on_next_to_one_of_today() {
    let fixture = Fixture::new(1).await;
    let old = fixture.client().await;
    let at = |n: i64| 1_790_000_000_000_000 + n;
    let take = async |holder: &str, now: i64| -> Option<i64> {
        let rows = old.query(schema_1::TAKE, &[&NODE, &holder, &(now + 12_000_000), &now]).await.unwrap();
        rows.first().map(|row| row.get(0))
    };
    let before = take("old", at(9)).await.expect("it has expired");
    let today = fixture.open(MIGRATIONS).await.unwrap();

    let report = old.query_one(schema_1::REPORTS, &[]).await.unwrap();
    let report: String = report.get(0);
    assert_eq!(
        old.execute(schema_1::REPORT, &[&"old", &report.replace("conductor-1", "old")]).await.unwrap(),
        1
    );
    assert!(today.conductors().await.unwrap().iter().any(|one| one.hostname == "old"));
    assert!(old.query_one(schema_1::VERSION, &[]).await.unwrap().get::<_, i64>(0) > 1);

    // Its lease of before the migration is still its own; later ones are newer, whichever controller takes them.
    assert_eq!(old.execute(schema_1::RENEW, &[&NODE, &before, &at(20)]).await.unwrap(), 1);
    assert_eq!(old.query(schema_1::IS_NEWEST, &[&NODE, &before]).await.unwrap().len(), 1);
    let todays =
        today.take_lease(NODE, "today", Timestamp(at(20)), Timestamp(at(30))).await.unwrap().unwrap();
    assert_eq!(old.execute(schema_1::RENEW, &[&NODE, &before, &at(99)]).await.unwrap(), 0, "it has lost it");
    assert_eq!(take("old", at(29)).await, None);
    let after = take("old", at(30)).await.expect("it has expired");
    assert!(before.cast_unsigned() < todays.epoch && todays.epoch < after.cast_unsigned(), "epochs go back");
    assert_eq!(old.query(schema_1::IS_NEWEST, &[&NODE, &after]).await.unwrap().len(), 1);

    writes_all(&old).await;
    let node = today.node(NODE).await.unwrap();
    assert_eq!((node.version, node.name.as_deref()), (8, Some("renamed")));
    assert_eq!(today.node_by_ident("renamed").await.unwrap(), node);
    assert_eq!(today.history(NODE).await.unwrap().len(), 2);
    let logged = today.events(None, 9).await.unwrap().events;
    let logged: Vec<_> = logged.iter().map(|(_, event)| (event.node, event.event.text.as_str())).collect();
    assert_eq!(logged, [(Some(NODE), "renamed")], "what it wrote, and nothing of before the migration");
    assert_eq!(today.contact(NODE).await.unwrap().token.as_deref(), Some("another"));
    assert_eq!(today.certificates(NODE).await.unwrap().len(), 1);
    assert_eq!(
        today.resource_by_key(ResourceKind::Port, "52:54:00:aa:bb:0d").await.unwrap().node,
        Some(NODE)
    );
    assert_eq!(old.execute(schema_1::RELEASE, &[&NODE, &after]).await.unwrap(), 1);
    today.update_node(node, vec![], None).await.unwrap();
    let known: Vec<Uuid> =
        old.query(schema_1::AT_WORK, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(known, [NODE]);
    assert_eq!(old.execute(schema_1::DELETE, &[&NODE]).await.unwrap(), 1);
    assert!(today.node(NODE).await.is_err());
}

/// Everything else that it writes.
async fn writes_all(old: &Client) {
    let doc = |sql: &'static str| async move {
        let row = old.query_one(sql, &[]).await.unwrap();
        row.get::<_, String>(0)
    };
    let locked = old.query_one(schema_1::LOCK, &[&NODE, &true]).await.unwrap();
    let (version, node): (i64, String) = (locked.get(0), locked.get(1));
    assert_eq!(version, 7);
    let looked = old.query_one(schema_1::LOOK, &[&NODE, &Some(6_i64)]).await.unwrap();
    assert_eq!(looked.get::<_, String>(0), node);
    let due = old.query(schema_1::DUE, &[&i64::MAX, &9_i64]).await.unwrap();
    assert_eq!(due.len(), 1);
    let renamed = node.replace("\"version\":7", "\"version\":8").replace("rack1-u2", "renamed");
    let instance = uuid!("22222222-2222-4222-8222-222222222222");
    let wake = Some(1_790_000_000_000_005_i64);
    let written = old
        .execute(
            schema_1::UPDATE,
            &[
                &8_i64,
                &wake,
                &true,
                &None::<&str>,
                &NODE,
                &1_780_000_000_000_000_i64,
                &"renamed",
                &instance,
                &"redfish",
                &"clean wait",
                &renamed,
            ],
        )
        .await;
    assert_eq!(written.unwrap(), 1);
    let event =
        doc("SELECT doc FROM event").await.replace("enrolled", "renamed").replace("66666666-", "66666667-");
    let at = 1_790_000_000_000_001_i64;
    assert_eq!(old.execute(schema_1::EVENT, &[&NODE, &vec![at], &vec![event]]).await.unwrap(), 1);
    let contact = doc("SELECT doc FROM contact").await.replace("t0ken", "another");
    assert_eq!(old.execute(schema_1::CONTACT, &[&NODE, &contact]).await.unwrap(), 1);
    let other = uuid!("11111111-1111-4111-8111-111111111112");
    let another = node.replace(&NODE.to_string(), &other.to_string()).replace("rack1-u2", "other");
    let added =
        old.execute(schema_1::INSERT_NODE, &[&7_i64, &other, &at, &"redfish", &"clean wait", &another]).await;
    assert_eq!(added.unwrap(), 1);
    let (old_mac, mac) = ("52:54:00:aa:bb:0c", "52:54:00:aa:bb:0d");
    let port = uuid!("55555555-5555-4555-8555-555555555556");
    let text = doc("SELECT doc FROM resource WHERE kind = 'port'").await.replace(old_mac, mac);
    let text =
        text.replace("55555555-5555-4555-8555-555555555555", &port.to_string()).replace("eno1", "eno2");
    let added = old.execute(schema_1::RESOURCE, &[&"port", &mac, &port, &at, &NODE, &text]).await;
    assert_eq!(added.unwrap(), 1);
    let id = "ce".repeat(32);
    let text = doc("SELECT doc FROM certificate").await.replace(&"cd".repeat(32), &id);
    let text = text.replace("99999999-9999-4999-8999-999999999999", &NODE.to_string());
    assert_eq!(old.execute(schema_1::CERTIFICATE, &[&id, &NODE, &1_i64, &text]).await.unwrap(), 1);
    assert_eq!(old.execute(schema_1::LINE, &[&2_i64, &id, &"{}"]).await.unwrap(), 1);
    let catalogue = doc("SELECT doc FROM catalogue").await;
    assert_eq!(old.execute(schema_1::CATALOGUE, &[&NODE, &"deploy", &catalogue]).await.unwrap(), 1);
    let inventory = doc("SELECT doc FROM inventory").await;
    assert_eq!(old.execute(schema_1::INVENTORY, &[&NODE, &inventory]).await.unwrap(), 1);
    let bundle = doc("SELECT doc FROM bundle WHERE scope = 'driver:redfish'").await;
    let digest = "ab".repeat(32);
    let put = old
        .execute(schema_1::BUNDLE, &[&"acme-raid", &"driver:redfish", &digest, &None::<Uuid>, &bundle])
        .await;
    assert_eq!(put.unwrap(), 1);
}

/// What the fixture holds, read as today.
async fn has_its_data(store: &PostgresStore) {
    let at = |n: i64| Timestamp(1_790_000_000_000_000 + n);
    let node = store.node_by_ident("rack1-u2").await.unwrap();
    assert_eq!((node.uuid, node.version), (NODE, 7));
    assert_eq!(node.driver_info["redfish_password"], "secret");
    assert_eq!(node.provision_state, ProvisionState::CleanWait);
    assert_eq!(node.target_power_state, Some(PowerTarget::Reboot));
    let run = node.run.as_ref().unwrap();
    assert_eq!(run.current().unwrap().label(), "deploy.erase_devices");
    assert!(matches!(&run.cursor, Cursor::Issued { accepted: true, at: issued, .. } if *issued == at(2)));
    assert_eq!(store.due(at(5), 9).await.unwrap(), [NODE]);
    let port = store.resource_by_key(ResourceKind::Port, "52:54:00:aa:bb:0c").await.unwrap();
    assert_eq!(store.resources(ResourceKind::Port, Some(NODE)).await.unwrap(), [port]);
    assert_eq!(store.history(NODE).await.unwrap()[0].text, "enrolled");
    let catalogue = store.catalogue(NODE, StepKind::Clean).await.unwrap().unwrap();
    assert_eq!(catalogue.steps[0].step, "erase_devices");
    assert_eq!(store.inventory(NODE).await.unwrap().unwrap().source, "agent");
    assert_eq!(store.contact(NODE).await.unwrap().token.as_deref(), Some("t0ken"));
    let volumes = store.resources(ResourceKind::VolumeTarget, Some(NODE)).await.unwrap();
    assert_eq!(volumes[0].field("properties")["auth_password"], "secret");
    assert_eq!(store.bundles().await.unwrap().len(), 2);
    let of = uuid!("99999999-9999-4999-8999-999999999999");
    assert_eq!(store.certificates(of).await.unwrap().len(), 1);
    assert_eq!(store.certificate_log(1, 9).await.unwrap().len(), 1);
    assert_eq!(store.conductors().await.unwrap()[0].hostname, "conductor-1");
    assert_eq!(store.lease_holder(NODE, at(8)).await.unwrap().as_deref(), Some("conductor-1"));
}
