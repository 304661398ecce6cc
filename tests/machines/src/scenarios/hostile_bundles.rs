//! Bundles that mean ill, on a real node: they harm nothing but their own steps.

use anyhow::{Context, Result, ensure};
use lab::controller::Controller;
use lab::disk::Bus;
use lab::wait;
use serde_json::json;

use crate::desk::Desk;
use crate::node::Node;
use crate::stage::{ERASE, LONG, METADATA, NODE, SHORT, Stage, manageable, through, verb};

pub const ABOUT: &str =
    "a fork bomb, a flood, a burglar, a thief of steps, and those that hang or exit: the disk is erased";

/// What they say once the harm is under way.
const ON: &str = "harm is on";

/// Report `ON` as progress.
const REPORT: &str = r#"notify progress '{"id":'$id',"percent":1,"text":"harm is on","disks":[]}'"#;

/// In the middle of a step, until they are stopped: what they do.
const ENDLESS: [(&str, &str); 2] = [
    ("bomb", "bomb() { bomb | bomb & }; bomb; REPORT; while :; do :; done"),
    ("flood", "REPORT; while :; do busybox head -c 10737418240 /dev/zero; done"),
];

/// A disk that it was not granted, in every way, and the network.
const BURGLAR: &str = "on_run() {
    echo no > /dev/sda; busybox mknod /scratch/sda b 8 0; busybox mount -t devtmpfs none /scratch
    busybox nc -w 1 10.0.2.2 80; busybox reboot -f; refuse -32003 'nothing to be had'; }";

/// Steps of the agent's own, under its name and before it.
const THIEF: &str = r#"on_steps() { answer '{"steps":[{"interface":"deploy","step":"erase_devices_metadata","priority":99,"idempotent":true},{"interface":"deploy","step":"erase_devices","priority":98,"idempotent":true}],"priorities":[{"interface":"deploy","step":"erase_devices","priority":0}]}'; }"#;

/// Phases before a step runs.
const PHASES: [&str; 5] = ["hello", "detect", "init", "inventory", "steps"];

pub async fn story(stage: Stage) -> Result<()> {
    let desk = Desk::new(stage.dir.join("desk")).await?;
    let disk = stage.disk("HOSTILE", Bus::Sata, 32)?;
    let mut site = stage.site(&desk.trusted()?).await?;
    // Its BMC answers while this is kept.
    let _node = manageable(&mut site, &[&disk]).await?;
    let controller = &site.controller;

    let (endless, phases) =
        if stage.long { (&ENDLESS[..], &PHASES[..]) } else { (&ENDLESS[..1], &PHASES[..2]) };
    for (name, harm) in endless {
        bring(&desk, name, &format!("on_run() {{ {}; }}", harm.replace("REPORT", REPORT))).await?;
    }
    bring(&desk, "burglar", BURGLAR).await?;
    for (name, _) in endless {
        stopped_by_its_user(controller, name).await.context(name)?;
    }
    let burgled = through(controller, clean("burglar"), "clean failed").await?;
    burgled.ensure_says(&["deploy.burglar_step", "nothing to be had"])?;
    let answer = burgled.results("deploy.burglar_step").first().map(ToString::to_string).unwrap_or_default();
    for refused in ["/dev/sda: ", "mknod: ", "mount: ", "Network is unreachable"] {
        ensure!(answer.contains(refused), "{refused:?} is not in {answer}");
    }
    disk.ensure_untouched()?;
    managed(controller).await?;

    bring(&desk, "thief", THIEF).await?;
    for phase in phases {
        bring(&desk, &format!("hangs_{phase}"), &format!("on_{phase}() {{ busybox sleep 3600; }}")).await?;
        bring(&desk, &format!("exits_{phase}"), &format!("on_{phase}() {{ exit 3; }}")).await?;
    }
    let clean = through(controller, verb("provide"), "available").await?;
    for step in [METADATA, ERASE] {
        ensure!(clean.records(step)?.len() == 1, "{}", clean.anneal()["run"]);
    }
    disk.ensure_erased()
}

/// A bundle with the good manager, but for these functions, for all nodes. Its step runs when it is asked for.
async fn bring(desk: &Desk, name: &str, instead: &str) -> Result<()> {
    let steps = json!({"steps": [{
        "interface": "deploy", "step": format!("{name}_step"), "priority": 0, "abortable": true, "idempotent": true,
    }]});
    desk.manager(name, &format!("on_steps() {{ answer '{steps}'; }}\n{instead}"))?;
    desk.build(name, true).await?;
    desk.add(name, "all").await
}

fn clean(name: &str) -> serde_json::Value {
    json!({"target": "clean", "clean_steps": [{"interface": "deploy", "step": format!("{name}_step"), "args": {}}]})
}

/// The harm is under way, the agent is heard all the same, and the step ends when its user says so.
async fn stopped_by_its_user(controller: &Controller, name: &str) -> Result<()> {
    controller.provision_with(NODE, clean(name)).await?;
    wait::until("the harm to be under way, and reported in a heartbeat", LONG, || async {
        let node = Node::now(controller, NODE).await?;
        ensure!(!node.state().ends_with("failed"), "{}: {}", node.state(), node.last_error());
        // The progress of the step before is shown until the next heartbeat.
        let runs = node.state() == "clean wait" && node.0["clean_step"]["step"] == format!("{name}_step");
        Ok((runs && node.anneal()["progress"].to_string().contains(ON)).then_some(()))
    })
    .await?;
    controller.provision(NODE, "abort").await?;
    let ended = Node(controller.node_in(NODE, &["clean failed"], SHORT).await?);
    ended.ensure_says(&[
        &format!("deploy.{name}_step"),
        "did not stop within 10 s",
        "a user asked to abort",
    ])?;
    managed(controller).await
}

/// Out of the failure, whose reason is still shown.
async fn managed(controller: &Controller) -> Result<()> {
    controller.provision(NODE, "manage").await?;
    controller.node_in(NODE, &["manageable"], SHORT).await.map(drop)
}
