//! The commands of docs/high-availability.md, as they are written there but for the names of machines and directories.

use postgres_server::{Durability, Server};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

const PAGE: &str = include_str!("../../../docs/high-availability.md");
const DATA: &str = "/var/lib/postgresql/15/main";

/// The blocks of a kind under a heading, in their order.
fn blocks(kind: &str, heading: &str) -> Vec<String> {
    let start =
        PAGE.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no heading {heading:?}"));
    let part = start.split("\n## ").next().unwrap();
    let fence = format!("```{kind}\n");
    let parts = part.split(&fence).skip(1);
    parts.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// `name = value` lines as arguments of the server.
fn settings(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let pairs: BTreeMap<&str, &str> = lines.map(|line| line.split_once(" = ").expect("a setting")).collect();
    pairs.into_iter().map(|(name, value)| format!("{name}={}", value.trim_matches('\''))).collect()
}

fn started(settings: &[String]) -> Server {
    Server::with(Durability::Full, &settings.iter().map(String::as_str).collect::<Vec<_>>())
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_standby_is_made_and_promoted_as_the_page_says() {
    let mut primary = started(&settings(&blocks("ini", "PostgreSQL's settings")[0]));
    let [role, copy, synchronous] = blocks("sh", "A standby").try_into().expect("three blocks");
    primary.shell(&role);
    let mut standby = Server::empty(&[]);
    let host = primary.dir().to_str().unwrap();
    standby.shell(
        &copy
            .replace(DATA, standby.data().to_str().unwrap())
            .replace("host=db1.example", &format!("host={host}")),
    );
    standby.run();
    let shown = primary.shell(&synchronous);
    assert!(shown.contains("db2"), "{shown}");
    let wanted =
        "SELECT count(*) FROM pg_stat_replication WHERE application_name = 'db2' AND sync_state = 'sync'";
    until("the standby is synchronous", || primary.sql("postgres", wanted) == "1");
    primary.sql("postgres", "CREATE TABLE acknowledged ()");
    primary.kill();
    let [promote] = blocks("sh", "Failover").try_into().expect("one block");
    standby.shell(&promote);
    assert_eq!(standby.sql("postgres", "SELECT count(*) FROM acknowledged"), "0");
    standby.sql("postgres", "CREATE TABLE again ()");
    // More than one standby.
    assert!(PAGE.contains("`'ANY 1 (db2, db3)'`"));
    standby.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (db2, db3)'");
}

#[test]
fn a_database_is_dumped_and_recovered_to_a_point_in_time_as_the_page_says() {
    let heading = "Backup, and recovery to a point in time";
    let [dump, restore, base, recover, reset] = blocks("sh", heading).try_into().expect("five blocks");
    let backup = tempfile::Builder::new().prefix("pg-backup-").tempdir_in("/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(backup.path(), open).unwrap();
    let here = |text: &str, server: Option<&Server>| {
        let text = text.replace("/backup", backup.path().to_str().unwrap());
        server.map_or(text.clone(), |server| text.replace(DATA, server.data().to_str().unwrap()))
    };
    let mut server = started(&settings(&here(&blocks("ini", heading)[0], None)));
    server.shell(&here("mkdir /backup/wal; createdb anneal --encoding UTF8 --template template0", None));
    server.sql("anneal", "CREATE TABLE note (number bigint); INSERT INTO note VALUES (1)");
    let number = |server: &Server| server.sql("anneal", "SELECT number FROM note");
    server.shell(&here(&dump, None));
    server.sql("anneal", "UPDATE note SET number = 2");
    server.shell(&here(&restore, None));
    assert_eq!(number(&server), "1", "as it was dumped");

    server.shell(&here(&base, None));
    server.sql("anneal", "UPDATE note SET number = 3");
    let time = server.sql("postgres", "SELECT clock_timestamp()");
    server.sql("anneal", "UPDATE note SET number = 4");
    server.sql("postgres", "SELECT pg_switch_wal()");
    server.stop();
    let script = recover.replace("2026-11-25 12:00:00+00", &time);
    assert_ne!(script, recover);
    server.shell(&here(&script, Some(&server)));
    server.run();
    until("it takes writes", || server.sql("postgres", "SELECT pg_is_in_recovery()") == "f");
    assert_eq!(number(&server), "3", "as it was at that time");
    server.shell(&reset);
    // A standby goes on beyond that time.
    let standby = server.standby("db2", &[]);
    server.sql("anneal", "UPDATE note SET number = 5");
    until("the standby follows", || number(&standby) == "5");
    assert_eq!(standby.sql("postgres", "SELECT pg_is_in_recovery()"), "t");
    assert!(Path::new(&format!("{}.before", server.data().display())).exists());
}
