//! The agent of a machine that no node is known for, on loopback: it reports, asks for the verdict, and ends. It never asks for
//! anything else.

use crate::controller;
use crate::life;

use agentd::config::DiscoveryBoot;
use controller::{Controller, Script};
use life::Life;
use ramdisk_init::Exit;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

fn verdict(verdict: &str, seconds_left: u64) -> Value {
    json!({"verdict": verdict, "seconds_left": seconds_left})
}

/// How the agent ends, and what it asked.
async fn ends(script: Script, wait: Duration) -> (Option<Exit>, Vec<String>) {
    let controller = Controller::start(script).await;
    let flags = ["--api-url=API", "--inspection-callback-url=API/v1/continue_inspection"];
    let mut config = life::config(&controller, &flags);
    config.inspection.as_mut().expect("asked for").first_wait = Duration::from_millis(10);
    config.discovery = Some(DiscoveryBoot { wait, after: Exit::Halt });
    let exit = Life::start(config, &Arc::default()).end().await.expect("it ends well");
    (exit, controller.requests())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_reports_waits_for_the_verdict_and_does_nothing_else() {
    for (last, exit) in [("approved", Exit::PowerOff), ("rejected", Exit::Halt)] {
        let verdicts = vec![verdict("waiting", 60), verdict(last, 59)];
        let (ended, requests) = ends(Script { verdicts, ..Script::default() }, LONG).await;
        assert_eq!(ended, Some(exit), "{last}");
        assert_eq!(requests, ["POST /v1/continue_inspection", "GET /v1/lookup", "GET /v1/lookup"], "{last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_the_time_is_over() {
    let over = Script { verdicts: vec![verdict("waiting", 0)], ..Script::default() };
    assert_eq!(ends(over, LONG).await.0, Some(Exit::Halt), "by the controller's clock");
    let forever = || Script { verdicts: vec![verdict("waiting", 60)], ..Script::default() };
    assert_eq!(ends(forever(), Duration::from_millis(10)).await.0, Some(Exit::Halt), "by its own");
}

/// A machine whose report is refused goes on with its disk. A token in the answer makes none the agent of a node.
#[tokio::test(flavor = "multi_thread")]
async fn neither_a_refused_report_nor_a_token_makes_it_more() {
    let refused = Script { inspections: vec![400], ..Script::default() };
    let (ended, requests) = ends(refused, LONG).await;
    assert_eq!((ended, requests), (Some(Exit::Reboot), vec!["POST /v1/continue_inspection".to_owned()]));
    let (ended, requests) = ends(Script::default(), Duration::from_secs(2)).await;
    assert_eq!(ended, Some(Exit::Halt));
    let asked: BTreeSet<_> = requests.iter().map(String::as_str).collect();
    assert_eq!(asked, BTreeSet::from(["GET /v1/lookup", "POST /v1/continue_inspection"]));
}
