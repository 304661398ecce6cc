//! Every provision state: how a node gets there, and that what is advised there leads out.

use super::Seen;
use super::scene::Scene;
use model::ProvisionState;
use model::ProvisionState as P;
use room::Kind;
use serde_json::{Value, json};
use sim::faults::Faults;
use std::time::Duration;

const ANNEAL: Option<Kind> = Some(Kind::Anneal);

/// The scenes of all states.
pub fn all() -> Seen {
    let mut seen = Seen::default();
    for state in ProvisionState::ALL {
        seen.add(of(state));
    }
    seen.add(without_an_agent());
    seen.add(waits_of_steps());
    seen.add(flags());
    seen
}

fn bmc() -> Faults {
    Faults { bmc: 2.0, ..Faults::default() }
}

fn boot_fails() -> Faults {
    Faults { boot_fails: 1.0, ..Faults::default() }
}

fn step_fails() -> Faults {
    Faults { step_fails: 1.0, ..Faults::default() }
}

/// A step for a manual cleaning, a deployment or a service that stops the run until a user says so.
fn hold(kind: &str) -> Value {
    json!({kind: [{"interface": "deploy", "step": "hold"}]})
}

/// The scene that reaches a state and leaves it by what is advised. A new state does not compile before it has one.
fn of(state: ProvisionState) -> Seen {
    match state {
        // The way of a node of which nothing is asked but what is advised.
        P::Enroll | P::Verifying | P::Manageable | P::Cleaning | P::CleanWait | P::Available => advised_way(),
        P::Deploying | P::DeployWait | P::Active | P::Deleting => in_use(),
        P::Inspecting | P::InspectWait => inspected(),
        P::Adopting => adopted(),
        P::Rescuing | P::RescueWait | P::Rescue | P::Unrescuing => rescued(),
        P::Servicing | P::ServiceWait => serviced(),
        P::CleanHold => held(P::Manageable, P::CleanHold, "clean", hold("clean_steps")),
        P::DeployHold => held_deployment(),
        P::ServiceHold => held(P::Active, P::ServiceHold, "service", hold("service_steps")),
        P::CleanFail => fails(P::Manageable, "provide", json!({}), step_fails(), state, P::Available),
        P::DeployFail => fails(P::Available, "active", json!({}), step_fails(), state, P::Active),
        P::InspectFail => fails(P::Manageable, "inspect", json!({}), boot_fails(), state, P::Manageable),
        P::AdoptFail => fails(P::Manageable, "adopt", json!({}), bmc(), state, P::Active),
        P::RescueFail => {
            let password = json!({"rescue_password": "let me in"});
            fails(P::Active, "rescue", password, boot_fails(), state, P::Active)
        }
        P::UnrescueFail => unrescue_fails(),
        P::ServiceFail => {
            let steps = json!({"service_steps": [{"interface": "bios", "step": "tune"}]});
            fails(P::Active, "service", steps, step_fails(), state, P::Active)
        }
        P::Error => fails(P::Active, "deleted", json!({}), bmc(), state, P::Available),
    }
}

/// From the enrolment into this state.
async fn reach(scene: &Scene, state: ProvisionState) {
    match state {
        P::Manageable => scene.managed().await,
        P::Available => scene.available().await,
        P::Active => scene.active().await,
        other => panic!("no scene begins in {}", other.as_str()),
    }
}

fn advised_way() -> Seen {
    Scene::play("the advised way", ANNEAL, |scene| async {
        let given = scene.follow_to(P::Available).await;
        assert_eq!(given, ["anneal node manage n1", "anneal node provide n1"]);
        scene
    })
}

fn in_use() -> Seen {
    Scene::play("in use and out of use", ANNEAL, |scene| async {
        scene.available().await;
        assert_eq!(scene.follow_to(P::Active).await, ["anneal node deploy n1"]);
        let why = scene.why().await;
        assert_eq!(why["waits_for"]["what"], "nothing");
        scene.follow(&Scene::commands(&why)[0]).await;
        scene.until_state(P::Deleting).await;
        assert!(scene.follow_to(P::Available).await.is_empty(), "the controller goes on by itself");
        scene
    })
}

fn inspected() -> Seen {
    Scene::play("inspected", ANNEAL, |scene| async {
        scene.managed().await;
        scene.follow("anneal node inspect n1").await;
        scene.until_state(P::InspectWait).await;
        assert!(scene.follow_to(P::Manageable).await.is_empty());
        scene
    })
}

fn adopted() -> Seen {
    Scene::play("adopted", ANNEAL, |scene| async {
        scene.managed().await;
        scene.verb("adopt", json!({})).await;
        assert!(scene.follow_to(P::Active).await.is_empty());
        scene
    })
}

fn rescued() -> Seen {
    Scene::play("rescued", ANNEAL, |scene| async {
        scene.active().await;
        scene.verb("rescue", json!({"rescue_password": "let me in"})).await;
        scene.until_state(P::Rescue).await;
        assert_eq!(scene.follow_to(P::Active).await, ["anneal node unrescue n1"]);
        scene
    })
}

fn serviced() -> Seen {
    Scene::play("serviced", ANNEAL, |scene| async {
        scene.active().await;
        let steps = json!([{"interface": "bios", "step": "tune"}]);
        scene.verb("service", json!({"service_steps": steps})).await;
        scene.until_state(P::ServiceWait).await;
        assert!(scene.follow_to(P::Active).await.is_empty());
        // An abort is advised while it can be given, and leads on by what is advised then.
        scene.verb("service", json!({"service_steps": steps})).await;
        scene
            .until("a step runs", |node| {
                node.service_step.is_some() && node.provision_state == P::ServiceWait
            })
            .await;
        let commands = Scene::commands(&scene.why().await);
        assert_eq!(commands, ["anneal node abort n1"]);
        scene.follow(&commands[0]).await;
        scene.until_state(P::ServiceFail).await;
        assert_eq!(scene.follow_to(P::Active).await, ["anneal node abort n1"]);
        scene
    })
}

fn held(from: ProvisionState, state: ProvisionState, verb: &'static str, body: Value) -> Seen {
    Scene::play(state.as_str(), ANNEAL, |scene| async move {
        reach(&scene, from).await;
        scene.verb(verb, body).await;
        scene.until_state(state).await;
        assert_eq!(scene.follow_to(from).await, ["anneal node unhold n1"]);
        scene
    })
}

fn held_deployment() -> Seen {
    Scene::play("deploy hold", ANNEAL, |scene| async {
        scene.available().await;
        let traits = json!([{"op": "add", "path": "/instance_info/traits", "value": ["CUSTOM_FIRMWARE"]}]);
        scene.does("PATCH", "", traits).await;
        scene.verb("active", json!({})).await;
        scene.until_state(P::DeployHold).await;
        assert_eq!(scene.follow_to(P::Active).await, ["anneal node unhold n1"]);
        scene
    })
}

/// A verb that fails because of a fault: until it is removed, a command that is followed ends where it began; then it leads on.
fn fails(
    from: ProvisionState,
    verb: &'static str,
    body: Value,
    fault: Faults,
    state: ProvisionState,
    goal: ProvisionState,
) -> Seen {
    Scene::play(state.as_str(), ANNEAL, |scene| async move {
        reach(&scene, from).await;
        scene.suffer(fault);
        scene.verb(verb, body).await;
        scene.until_state(state).await;
        let error = scene.node().await.last_error.unwrap();
        let why = scene.why().await;
        let tried = why["tried"].as_array().unwrap();
        let last = tried.iter().find(|tried| tried["text"] == format!("the last error: {error}").as_str());
        let last = last.unwrap_or_else(|| panic!("{why:#}"));
        assert!(last["at"] == why["waits_for"]["since"] && last["age_s"].is_u64(), "{why:#}");
        scene.heal();
        assert!(!scene.follow_to(goal).await.is_empty());
        scene
    })
}

fn unrescue_fails() -> Seen {
    Scene::play("unrescue failed", ANNEAL, |scene| async {
        scene.active().await;
        scene.verb("rescue", json!({"rescue_password": "let me in"})).await;
        scene.until_state(P::Rescue).await;
        scene.suffer(bmc());
        scene.verb("unrescue", json!({})).await;
        scene.until_state(P::UnrescueFail).await;
        scene.heal();
        assert_eq!(scene.follow_to(P::Active).await, ["anneal node unrescue n1"]);
        scene
    })
}

/// Steps and inspection by the BMC alone, which refuses at first.
fn without_an_agent() -> Seen {
    Scene::play("without an agent", None, |scene| async {
        scene.managed().await;
        scene.suffer(bmc());
        scene.follow("anneal node inspect n1").await;
        scene.until_state(P::InspectFail).await;
        scene.heal();
        assert_eq!(scene.follow_to(P::Manageable).await, ["anneal node inspect n1"]);
        scene.suffer(bmc());
        scene.follow("anneal node provide n1").await;
        scene.until_state(P::CleanFail).await;
        scene.heal();
        let given = scene.follow_to(P::Active).await;
        assert_eq!(given, ["anneal node provide n1", "anneal node deploy n1"]);
        scene
    })
}

/// The step `wait`, with a time and without one.
fn waits_of_steps() -> Seen {
    Scene::play("the step wait", ANNEAL, |scene| async {
        scene.managed().await;
        let wait = |args: Value| json!({"interface": "power", "step": "wait", "args": args});
        let tune = json!({"interface": "bios", "step": "tune"});
        let steps = json!([tune, wait(json!({"seconds": 30})), wait(json!({}))]);
        scene.verb("clean", json!({"clean_steps": steps})).await;
        scene
            .until("waits for a time", |node| {
                let run = node.run.as_ref();
                run.is_some_and(|run| super::name(&run.cursor) == "pause")
            })
            .await;
        assert_eq!(scene.why().await["waits_for"]["what"], "time");
        assert!(scene.follow_to(P::Manageable).await.is_empty());
        scene
    })
}

/// Maintenance, retirement and protection by a user.
fn flags() -> Seen {
    Scene::play("flags", ANNEAL, |scene| async {
        scene.managed().await;
        scene.does("PATCH", "", json!([{"op": "add", "path": "/retired", "value": true}])).await;
        let given = scene.follow_to(P::Available).await;
        assert_eq!(given, ["anneal node unset n1 --retired", "anneal node provide n1"]);
        scene.does("PUT", "/maintenance", json!({"reason": "a new disk"})).await;
        assert!(scene.why().await["tried"].to_string().contains("it was put into maintenance: a new disk"));
        let given = scene.follow_to(P::Active).await;
        assert_eq!(given, ["anneal node maintenance unset n1", "anneal node deploy n1"]);
        scene.does("PATCH", "", json!([{"op": "add", "path": "/protected", "value": true}])).await;
        assert_eq!(Scene::commands(&scene.why().await), ["anneal node unset n1 --protected"]);
        scene.follow("anneal node unset n1 --protected").await;
        // Power that the BMC does not bring.
        scene.suffer(bmc());
        scene.does("PUT", "/states/power", json!({"target": "power off"})).await;
        scene.until("the power failed", |node| node.target_power_state.is_none()).await;
        let why = scene.why().await;
        assert_eq!(Scene::commands(&why)[0], "anneal node power off n1", "{why:#}");
        scene.heal();
        scene.follow("anneal node power off n1").await;
        assert_eq!(scene.why().await["waits_for"]["what"], "bmc");
        let off = Some(model::PowerState::Off);
        scene.until("off", |node| node.power_state == off && node.target_power_state.is_none()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        scene
    })
}
