//! `anneal-controller migrate`: everything from a file of SQLite to PostgreSQL, and then a comparison of both.

use crate::config::Config;
use crate::database::refusal_of_postgres;
use crate::database_key;
use anyhow::{Context, Result, bail, ensure};
use model::ResourceKind;
use std::fmt;
use std::path::{Path, PathBuf};
use store::{StepKind, Store};
use store_postgres::PostgresStore;
use store_sqlite::SqliteStore;

/// Lines of the log of certificates that are compared at once.
const LINES: usize = 1000;

/// Copy and compare; prints what was copied.
pub async fn run(config: &Config, from: &str, to: &str) -> Result<()> {
    let path = file(from)?;
    ensure!(path.is_file(), "--from: {} is not a file", path.display());
    // The same key: what is encrypted in one can be read in the other.
    let key = database_key::load(config).context("the key of the file")?;
    let settings = config.database.at(to)?;
    settings.check().context("--to")?;
    // It locks the file, so no controller runs on it or begins to.
    let source = SqliteStore::open(&path, &key).with_context(|| format!("--from {}", path.display()))?;
    let target = PostgresStore::open(&settings, &key).await.map_err(refusal_of_postgres).context("--to")?;
    let epoch = source.last_epoch().await.context("--from")?;
    target.import(&source, epoch).await.context("copying")?;
    let counts = compare(&source, &target).await?;
    println!("copied and compared: {counts}; leases begin after epoch {epoch}");
    println!("now set [database] url, and keep the key and the file as they are until you are content");
    Ok(())
}

/// The file of `sqlite://PATH`.
fn file(from: &str) -> Result<PathBuf> {
    let path = from.strip_prefix("sqlite://").map(Path::new).filter(|path| path.is_absolute());
    path.map(Path::to_owned).context("--from is not of the form sqlite:///absolute/path")
}

/// How much there is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    nodes: usize,
    events: usize,
    contacts: usize,
    catalogues: usize,
    inventories: usize,
    resources: usize,
    bundles: usize,
    certificates: usize,
    key_changes: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} nodes with {} events, {} contacts, {} catalogues and {} inventories, {} resources, {} bundles, {} certificates \
             with their log, {} changes of the key of certificates",
            self.nodes,
            self.events,
            self.contacts,
            self.catalogues,
            self.inventories,
            self.resources,
            self.bundles,
            self.certificates,
            self.key_changes
        )
    }
}

/// Refuses two values that differ, without quoting them: they may hold secrets.
fn same<T: PartialEq>(what: impl fmt::Display, one: &T, other: &T) -> Result<()> {
    if one != other {
        bail!("{what}: not the same in both databases: do not use the copy");
    }
    Ok(())
}

/// Compare two stores row by row, and count.
async fn compare(source: &dyn Store, target: &dyn Store) -> Result<Counts> {
    let mut counts = Counts::default();
    let nodes = source.nodes().await?;
    same("the nodes", &nodes, &target.nodes().await?)?;
    counts.nodes = nodes.len();
    for uuid in nodes.into_iter().map(|node| node.uuid) {
        let (history, contact) = (source.history(uuid).await?, source.contact(uuid).await?);
        same(format_args!("the history of node {uuid}"), &history, &target.history(uuid).await?)?;
        same(format_args!("the contact of node {uuid}"), &contact, &target.contact(uuid).await?)?;
        counts.events += history.len();
        counts.contacts += usize::from(contact != model::agent::Contact::default());
        for kind in StepKind::ALL {
            let catalogue = source.catalogue(uuid, kind).await?;
            same(
                format_args!("the {} steps of node {uuid}", kind.as_str()),
                &catalogue,
                &target.catalogue(uuid, kind).await?,
            )?;
            counts.catalogues += usize::from(catalogue.is_some());
        }
        let inventory = source.inventory(uuid).await?;
        same(format_args!("the inventory of node {uuid}"), &inventory, &target.inventory(uuid).await?)?;
        counts.inventories += usize::from(inventory.is_some());
    }
    for kind in ResourceKind::ALL {
        let resources = source.resources(kind, None).await?;
        same(
            format_args!("the resources of kind {}", kind.as_str()),
            &resources,
            &target.resources(kind, None).await?,
        )?;
        counts.resources += resources.len();
    }
    let bundles = source.bundles().await?;
    same("the bundles", &bundles, &target.bundles().await?)?;
    counts.bundles = bundles.len();
    counts.certificates = compare_certificates(source, target).await?;
    let changes = source.key_changes().await?;
    same("the changes of the key of certificates", &changes, &target.key_changes().await?)?;
    counts.key_changes = changes.len();
    Ok(counts)
}

async fn compare_certificates(source: &dyn Store, target: &dyn Store) -> Result<usize> {
    let mut count = 0;
    loop {
        let from = count as u64 + 1;
        let lines = source.certificate_log(from, LINES).await?;
        same("the log of certificates", &lines, &target.certificate_log(from, LINES).await?)?;
        for line in &lines {
            let id = store::certificate_log::certificate_of(line)?;
            same(
                format_args!("certificate {id}"),
                &source.certificate(&id).await?,
                &target.certificate(&id).await?,
            )?;
        }
        count += lines.len();
        if lines.is_empty() {
            return Ok(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::agent::AgentKind;
    use model::history::Severity;
    use model::{
        Bundle, Catalogue, Certificate, Cursor, Event, EventKind, Inventory, Node, Resource, Run, RunKind,
        Scope, Timestamp,
    };
    use postgres_server::{Durability, Server};
    use serde_json::{Map, json};
    use std::sync::Arc;
    use std::time::Instant;
    use store::prelude::*;
    use store::{HeartbeatRecord, ResourceWrite, TokenRequest};
    use uuid::Uuid;

    /// A node with something of everything.
    async fn fill(store: &dyn Store, number: u128) {
        let mut node = Node::enrolled(Uuid::from_u128(number), "redfish", Timestamp(5));
        node.name = Some(format!("n{number}"));
        node.driver_info.insert("redfish_password".into(), "hunter2".into());
        node.other.insert("owner".into(), "a\0".into());
        node.run =
            Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(0)) });
        let event = |text: &str| Event::new(EventKind::Step, Severity::Info, text.to_owned(), Timestamp(6));
        let node = store.create_node(node, vec![event("first"), event("second")]).await.unwrap();
        let uuid = node.uuid;
        store.grant_token(uuid, TokenRequest::without_nonce("token", Some("b"), Timestamp(1))).await.unwrap();
        let beat = HeartbeatRecord {
            callback_url: "https://192.0.2.9:9999".to_owned(),
            verify_ca: None,
            agent_version: None,
            at: Timestamp(2),
            agent: AgentKind::Ipa,
        };
        store.record_heartbeat(uuid, "token", beat).await.unwrap();
        let catalogue =
            Catalogue { steps: vec![], hardware_manager_version: Map::new(), learnt_at: Timestamp(3) };
        store.put_catalogue(uuid, StepKind::Clean, catalogue.clone(), None).await.unwrap();
        store.put_catalogue(uuid, StepKind::Deploy, catalogue, None).await.unwrap();
        let (found, source) = (json!({"cpu": {"count": 1.5}}), "agent".to_owned());
        let inventory =
            Inventory { inventory: found, plugin_data: json!({}), at: Timestamp(4), source, ruled: false };
        store.put_inventory(uuid, inventory).await.unwrap();
        let port = port(number);
        let port = store.write_resource(ResourceWrite::Create(port), None, vec![]).await.unwrap();
        store.write_resource(ResourceWrite::Update(port), None, vec![]).await.unwrap();
        for scope in [Scope::All, Scope::Node(uuid)] {
            store.put_bundle(bundle(&format!("b{number}"), scope), event("added")).await.unwrap();
        }
        let certificate = Certificate {
            id: format!("{number:064x}"),
            node: uuid,
            number: 1,
            at: Timestamp(1),
            finding: "erased".to_owned(),
            command_id: "c".to_owned(),
            file: "{}".to_owned(),
        };
        let lease = store.take_lease(uuid, "old", Timestamp(0), Timestamp(9)).await.unwrap();
        store.certify(node, vec![event("third")], lease, certificate).await.unwrap();
        store.add_key_change(format!("change {number}")).await.unwrap();
    }

    fn port(number: u128) -> Resource {
        let [.., a, b, c] = number.to_be_bytes();
        let mac = format!("52:54:00:{a:02x}:{b:02x}:{c:02x}").parse().unwrap();
        Resource::port(Uuid::from_u128(number << 64), Uuid::from_u128(number), mac, Timestamp(0))
    }

    /// A node as most are: with a password, an event, an agent that was seen, and a port.
    async fn fill_a_little(store: &dyn Store, number: u128) {
        let mut node = Node::enrolled(Uuid::from_u128(number), "redfish", Timestamp(5));
        node.name = Some(format!("n{number}"));
        node.driver_info.insert("redfish_password".into(), format!("hunter{number}").into());
        node.run =
            Some(Run { cursor: Cursor::AwaitAgent, ..Run::new(RunKind::AutomatedClean, Timestamp(0)) });
        let event = Event::new(EventKind::Step, Severity::Info, format!("{number}"), Timestamp(6));
        let uuid = store.create_node(node, vec![event]).await.unwrap().uuid;
        store.grant_token(uuid, TokenRequest::without_nonce("token", Some("b"), Timestamp(1))).await.unwrap();
        store.write_resource(ResourceWrite::Create(port(number)), None, vec![]).await.unwrap();
    }

    fn bundle(name: &str, scope: Scope) -> Bundle {
        Bundle {
            name: name.to_owned(),
            scope,
            digest: "a".repeat(64),
            size: 1,
            version: "1".to_owned(),
            vendor: "v".to_owned(),
            signed_by: None,
            manifest: Map::new(),
            created_at: Timestamp(1),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_is_copied_whole_and_only_to_an_empty_database() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { state_dir: dir.path().into(), ..Config::default() };
        let path = config.database_file();
        let from = format!("sqlite://{}", path.display());
        let server = Server::start(Durability::None);
        let name = server.create();
        let to = server.url(&name);
        assert!(run(&config, &from, &to).await.is_err(), "there is no file");
        let key = database_key::load_or_make(&config).await.unwrap();
        let source = SqliteStore::open(&path, &key).unwrap();
        for number in 1..=3 {
            fill(&source, number).await;
        }
        // Its certificate stays.
        let gone = source.node(Uuid::from_u128(2)).await.unwrap();
        source.delete_node(gone.uuid, gone.version, vec![]).await.unwrap();
        let epoch = source.last_epoch().await.unwrap();
        assert_eq!(epoch, 3);

        let used = format!("{:#}", run(&config, &from, &to).await.unwrap_err());
        assert!(used.contains("in use by another controller"), "{used}");
        assert_eq!(server.sql(&name, "SELECT to_regclass('node') IS NULL"), "t", "nothing was changed");
        drop(source);
        run(&config, &from, &to).await.unwrap();
        let again = format!("{:#}", run(&config, &from, &to).await.unwrap_err());
        assert!(again.contains("already"), "{again}");

        let source = SqliteStore::open(&path, &key).unwrap();
        let target = PostgresStore::open(&config.database.at(&to).unwrap(), &key).await.unwrap();
        let counts = compare(&source, &target).await.unwrap();
        let expected = Counts {
            nodes: 2,
            events: 6,
            contacts: 2,
            catalogues: 4,
            inventories: 2,
            resources: 2,
            bundles: 5,
            certificates: 3,
            key_changes: 3,
        };
        assert_eq!(counts, expected);
        let documents = server.sql(&name, "SELECT doc FROM node");
        assert!(!documents.contains("hunter2"), "{documents}");
        let node = target.node(Uuid::from_u128(1)).await.unwrap();
        assert_eq!(node.driver_info["redfish_password"], "hunter2");
        let lease = target.take_lease(node.uuid, "new", Timestamp(0), Timestamp(9)).await.unwrap().unwrap();
        assert!(lease.epoch > epoch, "{}", lease.epoch);
        // The comparison sees a difference, and does not say which.
        let changed = Node { last_error: Some("hunter2".to_owned()), ..node };
        target.update_node(changed, vec![], None).await.unwrap();
        let differs = format!("{:#}", compare(&source, &target).await.unwrap_err());
        assert!(differs.contains("the nodes") && !differs.contains("hunter2"), "{differs}");
    }

    /// Writers of the file at once: they share its commits.
    const AT_ONCE: u128 = 32;

    #[tokio::test(flavor = "multi_thread")]
    async fn ten_thousand_nodes_are_copied_and_compared_row_by_row() {
        const NODES: u128 = 10_000;
        let dir = tempfile::tempdir().unwrap();
        let config = Config { state_dir: dir.path().into(), ..Config::default() };
        let path = config.database_file();
        let key = database_key::load_or_make(&config).await.unwrap();
        let source = Arc::new(SqliteStore::open(&path, &key).unwrap());
        let mut writers = tokio::task::JoinSet::new();
        for first in 1..=AT_ONCE {
            let source = source.clone();
            writers.spawn(async move {
                for number in (first..=NODES).step_by(usize::try_from(AT_ONCE).unwrap()) {
                    match number % 100 {
                        0 => fill(&*source, number).await,
                        _ => fill_a_little(&*source, number).await,
                    }
                }
            });
        }
        while let Some(ended) = writers.join_next().await {
            ended.unwrap();
        }
        drop(Arc::into_inner(source).expect("no writer is left"));
        let server = Server::start(Durability::None);
        let name = server.create();
        let to = server.url(&name);
        let began = Instant::now();
        run(&config, &format!("sqlite://{}", path.display()), &to).await.unwrap();
        println!("copied and compared in {:?}", began.elapsed());
        let count = |table: &str| server.sql(&name, &format!("SELECT count(*) FROM {table}"));
        let counts = ["node", "event", "contact", "resource", "certificate"].map(count);
        assert_eq!(counts, ["10000", "10200", "10000", "10000", "100"]);
        let plain = server.sql(&name, "SELECT count(*) FROM node WHERE doc LIKE '%hunter%'");
        assert_eq!(plain, "0");
    }

    #[test]
    fn only_an_absolute_path_is_a_file() {
        assert_eq!(file("sqlite:///a/b").unwrap(), Path::new("/a/b"));
        for bad in ["/a/b", "sqlite://a/b", "postgres://u@h/a", ""] {
            assert!(file(bad).is_err(), "{bad}");
        }
    }
}
