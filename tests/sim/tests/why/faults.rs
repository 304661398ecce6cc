//! Every fault of the simulator's list, struck while a node is cleaned; and faults of the node's own.

use super::Seen;
use super::scene::Scene;
use model::ProvisionState as P;
use room::Kind;
use serde_json::json;
use sim::faults::{Faults, Strike};
use std::time::Duration;
use store::prelude::*;
use store::{FetchSource, ScriptFetch};

/// The scenes of all faults.
pub fn all() -> Seen {
    let mut seen = Seen::default();
    for (name, faults) in rates() {
        seen.add(suffered(name, faults));
    }
    for strike in strikes() {
        seen.add(struck(strike));
    }
    seen.add(verification_fails());
    seen.add(a_disk_is_missing());
    seen.add(a_foreign_agent());
    seen.add(a_foreign_fetch());
    seen
}

/// Each fault that has a rate, at its worst (a BMC refuses with half of its rate). A new one does not compile before it is here.
fn rates() -> Vec<(&'static str, Faults)> {
    let Faults {
        lasts: _,
        slow: _,
        lost: _,
        unanswered: _,
        twice: _,
        late: _,
        bmc: _,
        step_fails: _,
        step_hangs: _,
        step_lies: _,
        boot_fails: _,
        // Struck one by one below.
        strikes: _,
        // No reason for anything to go wrong.
        clock_jumps: _,
        // What happens to one of several controllers is no fault of the node: another drives it.
        controllers: _,
        // Users are the ones who ask here.
        impatience: _,
    } = Faults::default();
    let none = Faults::default;
    vec![
        ("slow", Faults { slow: 1.0, ..none() }),
        ("lost", Faults { lost: 1.0, ..none() }),
        ("unanswered", Faults { unanswered: 1.0, ..none() }),
        ("twice", Faults { twice: 1.0, ..none() }),
        ("late", Faults { late: 1.0, ..none() }),
        ("bmc", Faults { bmc: 2.0, ..none() }),
        ("step_fails", Faults { step_fails: 1.0, ..none() }),
        ("step_hangs", Faults { step_hangs: 1.0, ..none() }),
        ("step_lies", Faults { step_lies: 1.0, ..none() }),
        ("boot_fails", Faults { boot_fails: 1.0, ..none() }),
    ]
}

/// Every strike. A new one does not compile before it has its place in this chain.
fn strikes() -> impl Iterator<Item = Strike> {
    let after = |strike: &Strike| match strike {
        Strike::Kill => Some(Strike::Freeze),
        Strike::Freeze => Some(Strike::KillAgent),
        Strike::KillAgent => Some(Strike::Reset),
        Strike::Reset => Some(Strike::CutPower),
        Strike::CutPower => Some(Strike::BmcOutage),
        Strike::BmcOutage => Some(Strike::NetworkCut),
        Strike::NetworkCut => Some(Strike::ChangeManagers),
        Strike::ChangeManagers => None,
    };
    std::iter::successors(Some(Strike::Kill), after)
}

/// Whether a cleaning fails of a fault that does not end.
fn ends_the_run(name: &str) -> bool {
    !["slow", "twice"].contains(&name)
}

/// The fault holds on until the cleaning has ended; then it is over, and what is advised leads to AVAILABLE.
fn suffered(name: &'static str, faults: Faults) -> Seen {
    Scene::play(name, Some(Kind::Anneal), |scene| async move {
        scene.managed().await;
        scene.suffer(faults);
        scene.verb("provide", json!({})).await;
        scene.until("rests", |node| matches!(node.provision_state, P::CleanFail | P::Available)).await;
        let failed = scene.node().await.provision_state == P::CleanFail;
        assert_eq!(failed, ends_the_run(name), "{name}: {:#}", scene.why().await);
        scene.heal();
        // Messages in flight arrive.
        tokio::time::sleep(Duration::from_secs(300)).await;
        scene.follow_to(P::Available).await;
        scene
    })
}

/// Struck in the middle of a step.
fn struck(strike: Strike) -> Seen {
    Scene::play(&format!("{strike:?}"), Some(Kind::Anneal), |scene| async move {
        scene.managed().await;
        scene.verb("provide", json!({})).await;
        let runs =
            |node: &model::Node| node.run.as_ref().is_some_and(|run| super::name(&run.cursor) == "accepted");
        scene.until("a step runs", runs).await;
        scene.world.strike(strike).await;
        scene.follow_to(P::Available).await;
        scene
    })
}

fn verification_fails() -> Seen {
    Scene::play("verification fails", Some(Kind::Anneal), |scene| async {
        scene.suffer(Faults { bmc: 2.0, ..Faults::default() });
        scene.verb("manage", json!({})).await;
        scene.until_state(P::Verifying).await;
        scene.until_state(P::Enroll).await;
        let why = scene.why().await;
        assert_eq!(why["waits_for"]["text"], "a user: its BMC could not be verified");
        assert!(why["tried"].to_string().contains("Failed to verify the node"), "{why:#}");
        scene.heal();
        assert_eq!(scene.follow_to(P::Manageable).await, ["anneal node manage n1"]);
        scene
    })
}

/// A disk that an erase has reported before is not in the next report.
fn a_disk_is_missing() -> Seen {
    Scene::play("a disk is missing", Some(Kind::Anneal), |scene| async {
        scene.available().await;
        scene.machine.state().disks.pop();
        scene.follow("anneal node manage n1").await;
        scene.until_state(P::Manageable).await;
        scene.verb("provide", json!({})).await;
        scene.until_state(P::CleanFail).await;
        let given = scene.follow_to(P::Available).await;
        let retire = "anneal node disks retire n1 S2 --reason 'it was taken out of the node'";
        assert_eq!(given, [retire, "anneal node provide n1"]);
        scene
    })
}

/// The node boots an ironic-python-agent, and its row says that it boots ours.
fn a_foreign_agent() -> Seen {
    Scene::play("a foreign agent", Some(Kind::Ipa), |scene| async {
        scene.managed().await;
        scene
            .does("PATCH", "", json!([{"op": "add", "path": "/properties/agent_kind", "value": "anneal"}]))
            .await;
        scene.verb("provide", json!({})).await;
        scene.until_state(P::CleanFail).await;
        let given = scene.follow_to(P::Available).await;
        let declared = "anneal node set n1 --property agent_kind=ironic-python-agent";
        assert_eq!(given, [declared, "anneal node provide n1"]);
        scene
    })
}

/// Another address fetches the boot script of each boot, until the run fails.
fn a_foreign_fetch() -> Seen {
    Scene::play("a foreign fetch of the boot script", Some(Kind::Anneal), |scene| async {
        scene.managed().await;
        scene.verb("provide", json!({})).await;
        while scene.node().await.provision_state != P::CleanFail {
            let contact = scene.world.disk.contact(scene.machine.uuid).await.unwrap();
            let fetched = contact.boot.as_ref().is_some_and(|boot| boot.fetched_from.is_some());
            if fetched && contact.rival.is_none() {
                let mac = scene.machine.mac.parse().unwrap();
                let fetch = ScriptFetch {
                    by: FetchSource::Nic(mac),
                    from: [10, 9, 9, 9].into(),
                    at: scene.world.now(),
                    medium: None,
                };
                scene.world.disk.fetch_script(scene.machine.uuid, fetch).await.unwrap();
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let why = scene.why().await;
        assert!(why["tried"].to_string().contains("10.9.9.9"), "{why:#}");
        assert_eq!(scene.follow_to(P::Available).await, ["anneal node provide n1"]);
        scene
    })
}
