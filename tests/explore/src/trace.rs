//! A trace in words.

use crate::scenario::TICK;
use crate::transition::Transition;
use crate::world::{Runs, Stand, World};

/// One line of a trace: what happened, and how it stands then.
pub fn line(transition: Transition, world: &World) -> String {
    let node = world.node();
    let cursor = node.run.as_ref().map(|run| format!("{:?}", run.cursor)).unwrap_or_default();
    let cursor = cursor.split([' ', '{']).next().unwrap_or_default().to_owned();
    let step = world.run().and_then(|run| run.current()).map(|step| step.label()).unwrap_or_default();
    let stand = match &world.conductor {
        Stand::Idle => String::new(),
        Stand::Storing(_) => " · half stored".to_owned(),
        Stand::Begun(_) => " · begun".to_owned(),
        Stand::Done(applying) => {
            format!(" · did {}, to store {}", word(&applying.action), word(&applying.outcome))
        }
    };
    let machine = match &world.machine.power.runs {
        Runs::Nothing => "off".to_owned(),
        Runs::Firmware => "booting".to_owned(),
        Runs::Workload => "disk".to_owned(),
        Runs::Agent(agent) => {
            let commands: Vec<String> = agent
                .commands
                .iter()
                .map(|command| format!("{}:{}", command.step, word(&command.state)))
                .collect();
            let token = if agent.token.is_none() { ", no token" } else { "" };
            format!("agent {}{token} [{}]", agent.process, commands.join(" "))
        }
    };
    let why = node.last_error.as_ref().map(|error| format!(" · last_error: {error}")).unwrap_or_default();
    let tick = i64::try_from(TICK.as_micros()).unwrap_or(1);
    format!(
        "{transition:55}  t{:<3} {} {cursor} {step} · boot {} {machine}{stand}{why}",
        world.now().0 / tick - 1_000,
        node.provision_state.as_str(),
        world.machine.power.boot,
        transition = transition.to_string(),
    )
}

/// The first word of a debug text.
fn word(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}
