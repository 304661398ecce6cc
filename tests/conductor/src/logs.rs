//! The logs of the ramdisk: whom they are asked of and when, what is stored first, and how they are kept.

use crate::situation::{NOW, Scripted, heard, issued, node, snapshot};
use crate::world::{Fault, World};
use bmc::Builtin;
use conductor::agent_client::AgentClient;
use conductor::decision::{Action, Decision, Outcome};
use conductor::log_archive::LogArchive;
use conductor::settings::CollectLogs;
use conductor::stages::{apply_outcome, decide};
use conductor::{Executor, LiveExecutor, Settings};
use model::run::{Cursor, Logs};
use model::{Contact, Node, ProvisionState, Verb};
use reqwest::StatusCode;
use room::SimClock;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, prelude::*};

fn settings(logs_collect: CollectLogs) -> Settings {
    Settings { logs_collect, ..Settings::default() }
}

/// A node whose step has just failed, `seconds` after its agent was heard.
fn failed(seconds: u64, logs_collect: CollectLogs, abort: bool) -> Node {
    let mut node = node(ProvisionState::CleanWait, issued("boot-1", true), 1);
    node.run.as_mut().unwrap().abort = abort;
    let snapshot = snapshot(node, heard("boot-1"), NOW.after(Duration::from_secs(seconds)));
    let kind = if abort { "Cancelled" } else { "CleaningError" };
    let status = room::failed("c0", kind, "the disk cannot be written");
    let ask = Action::AskCommand { command_id: "c0".into() };
    let change = apply_outcome(&snapshot, &ask, Outcome::Command(status), &settings(logs_collect));
    assert_eq!(change.node.provision_state, ProvisionState::CleanFail);
    change.node
}

fn logs(node: &Node) -> Option<&Logs> {
    node.run.as_ref().unwrap().logs.as_ref()
}

/// Not of who is silent, which would hold the node for the length of a call, and not when a user wanted it to end.
#[test]
fn they_are_wanted_of_an_agent_that_is_heard_when_its_run_has_failed() {
    use CollectLogs::{Always, Never, OnFailure};
    for collect in [OnFailure, Always] {
        let node = failed(10, collect, false);
        assert_eq!(logs(&node), Some(&Logs::Wanted));
        // Also after a controller has died: it is due.
        assert_eq!(node.next_wake_at, Some(NOW.after(Duration::from_secs(10))));
    }
    assert_eq!(logs(&failed(10, Never, false)), None);
    assert_eq!(logs(&failed(300, OnFailure, false)), None);
    assert_eq!(logs(&failed(10, OnFailure, true)), None);
}

/// Whatever becomes of them, the node stays as it failed.
#[test]
fn they_change_nothing_but_their_own_state_and_events() {
    let node = failed(10, CollectLogs::OnFailure, false);
    let now = NOW.after(Duration::from_secs(11));
    let seen = snapshot(node.clone(), heard("boot-1"), now);
    let settings = settings(CollectLogs::OnFailure);
    let Decision::Act(action @ Action::CollectLogs(_)) = decide(&seen, &settings) else {
        panic!("not asked")
    };
    let Action::CollectLogs(name) = &action else { unreachable!() };
    assert!(name.starts_with(&node.uuid.to_string()) && name.ends_with("_clean.tar.gz"), "{name}");
    let error = conductor::decision::ActionError { text: "busy".into(), retryable: true, unreachable: false };
    for (outcome, becomes) in
        [(Outcome::Done, Logs::Kept(name.clone())), (Outcome::Failed(error), Logs::Missing("busy".into()))]
    {
        let change = apply_outcome(&seen, &action, outcome, &settings);
        assert_eq!(logs(&change.node), Some(&becomes));
        let mut before = node.clone();
        before.run = change.node.run.clone();
        before.next_wake_at = change.node.next_wake_at;
        assert_eq!(change.node, before);
        let after = snapshot(change.node, heard("boot-1"), now);
        assert!(matches!(decide(&after, &settings), Decision::Sleep { .. }), "it is asked again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_stored_before_they_are_asked_for_and_a_good_one_has_none() {
    let world = World::new().await;
    world.suffer([Fault::StepFails("no")]);
    let _conductor = world.provide(Settings::default()).await;
    world.until_state(ProvisionState::CleanFail).await;
    let node = world.until("logs", |node| logs(node) != Some(&Logs::Wanted)).await;
    assert!(matches!(logs(&node), Some(Logs::Kept(_))) && world.is_on(), "{node:?}");
    let texts = world.texts().await;
    let place = |what: &str| texts.iter().position(|text| text.contains(what)).unwrap();
    assert!(place("-> clean failed") < place("the logs of the ramdisk are kept"), "{texts:#?}");
    world.verb(Verb::Provide).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert_eq!(logs(&node), None);
}

#[tokio::test(start_paused = true)]
async fn always_is_before_the_ramdisk_is_stopped() {
    let world = World::new().await;
    let _conductor = world.provide(settings(CollectLogs::Always)).await;
    let node = world.until_state(ProvisionState::Available).await;
    assert!(matches!(logs(&node), Some(Logs::Kept(_))), "{:?}", logs(&node));
    assert_eq!(node.run.as_ref().unwrap().cursor, Cursor::Done);
}

async fn collected(directory: &Path, result: Value) -> Outcome {
    let answer = json!({"id": "1", "command_name": "collect_system_logs", "command_status": "SUCCEEDED",
        "command_result": result});
    let settings = Settings {
        logs_directory: directory.to_owned(),
        logs_max_mib: 1,
        logs_keep: 2,
        ..Settings::default()
    };
    let agent = Scripted::new(Ok((StatusCode::OK, answer)));
    let agents = AgentClient::over(agent.clone());
    let executor =
        LiveExecutor::new(Arc::new(Builtin::default()), agents, Arc::new(SimClock::start()), settings);
    let contact: Contact = heard("boot-1");
    let node = node(ProvisionState::CleanFail, Cursor::Done, 1);
    let action = Action::CollectLogs(format!("{}_now_clean.tar.gz", node.uuid));
    let outcome = executor.act(1, &node, &contact, &action).await;
    assert_eq!(agent.sent()[0]["name"], "log.collect_system_logs");
    outcome
}

fn names(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("anneal-logs-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// What an agent sends is written as it is or refused; how it names things inside is of no concern.
#[tokio::test]
async fn what_is_no_archive_or_too_large_is_not_kept() {
    let directory = scratch("answers");
    for (result, part) in [
        (json!(null), "could not send its logs"),
        (json!({"system_logs": 7}), "something else"),
        (json!({"system_logs": "*"}), "not base64"),
        (json!({"system_logs": "A".repeat(2 << 20)}), "more than 1 MiB"),
    ] {
        match collected(&directory, result).await {
            Outcome::Failed(error) => assert!(error.text.contains(part), "{}", error.text),
            other => panic!("{part}: {other:?}"),
        }
        assert!(!directory.exists() || names(&directory).is_empty(), "{part}");
    }
    assert_eq!(collected(&directory, json!({"system_logs": "H4sI"})).await, Outcome::Done);
    let kept = directory.join(&names(&directory)[0]);
    assert_eq!(std::fs::read(&kept).unwrap(), [0x1f, 0x8b, 0x08]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&kept)), (0o700, 0o600));
    std::fs::remove_dir_all(directory).unwrap();
}

/// An agent that is killed in the middle of its answer.
#[tokio::test]
async fn an_archive_that_breaks_off_leaves_nothing() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let directory = tempfile::tempdir().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings { logs_directory: directory.path().to_owned(), ..Settings::default() };
    let archive = LogArchive::of(&settings);
    let name = format!("{}_now_clean.tar.gz", uuid::Uuid::nil());
    let half = directory.path().join(format!(".{name}.part"));
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await.unwrap();
        let head =
            "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n{\"command_result\":{\"system_logs\":\"";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&[b'A'; 200_000]).await.unwrap();
        // It is on the disk already.
        while half.metadata().map_or(0, |half| half.len()) < 100_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let contact = Contact { callback_url: Some(format!("http://{address}")), ..heard("boot-1") };
    let agents = AgentClient::new(Duration::from_secs(20));
    let (kept, ()) = tokio::join!(agents.collect_logs(&contact, &archive, &name), serving);
    let error = kept.unwrap_err();
    assert!(error.unreachable && error.text.contains("send its logs"), "{}", error.text);
    assert!(names(directory.path()).is_empty());
}

#[test]
fn the_newest_of_each_node_are_kept_and_nothing_outside_is_touched() {
    let directory = scratch("newest");
    let settings = Settings { logs_directory: directory.clone(), logs_keep: 2, ..Settings::default() };
    let archive = LogArchive::of(&settings);
    let of = |node: char, day: u8| format!("{}_2026-11-{day:02}_clean.tar.gz", node.to_string().repeat(36));
    archive.keep(&of('b', 1), b"other").unwrap();
    for day in [3, 1, 2, 4] {
        archive.keep(&of('a', day), b"first").unwrap();
    }
    // Once more, as after a crash.
    archive.keep(&of('a', 4), b"again").unwrap();
    assert_eq!(names(&directory), [of('a', 3), of('a', 4), of('b', 1)]);
    assert_eq!(std::fs::read(directory.join(of('a', 4))).unwrap(), b"again");
    for name in ["../outside.tar.gz", "x.tar.gz", ""] {
        assert!(archive.keep(name, b"").is_err(), "{name:?}");
    }
    assert!(LogArchive::of(&Settings::default()).keep(&of('a', 5), b"").is_err());
    std::fs::remove_dir_all(directory).unwrap();
}

/// As a controller that was killed finds it.
#[tokio::test(start_paused = true)]
async fn a_controller_that_died_asks_at_its_next_start() {
    let world = World::new().await;
    let now = world.clock.now();
    world
        .put(ProvisionState::CleanFail, |node| {
            let mut run = model::Run::new(model::RunKind::AutomatedClean, now);
            (run.cursor, run.booted, run.logs) = (Cursor::Done, true, Some(Logs::Wanted));
            node.run = Some(run);
            node.next_wake_at = Some(now);
        })
        .await;
    let _conductor = world.conductor(Settings::default());
    let node = world.until("logs", |node| logs(node) != Some(&Logs::Wanted)).await;
    // The machine of this world is off.
    assert!(matches!(logs(&node), Some(Logs::Missing(_))), "{:?}", logs(&node));
    assert_eq!(world.store.node(world.node).await.unwrap().provision_state, ProvisionState::CleanFail);
}
