//! `anneal node power …`

use super::batch::{Act, each};
use super::selection::Nodes;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::Format;
use crate::view::NodeView;
use crate::wait::{WaitOption, WaitTarget, until};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

/// Nodes, and whether to wait for the power to change.
#[derive(Debug, Args)]
pub struct Of {
    #[command(flatten)]
    nodes: Nodes,
    #[command(flatten)]
    wait: WaitOption,
}

/// What to do with the power.
#[derive(Debug, Subcommand)]
pub enum Power {
    /// Switch on.
    On(Of),
    /// Switch off hard.
    Off(Of),
    /// Reset, or switch off and on.
    Reboot(Of),
    /// Ask the operating system to shut down.
    SoftOff(Of),
    /// Ask the operating system to reboot.
    SoftReboot(Of),
}

/// Switches.
pub async fn run(client: &Client, format: Format, power: Power) -> Result<(), Failure> {
    let (of, target, end) = match power {
        Power::On(of) => (of, "power on", "power on"),
        Power::Off(of) => (of, "power off", "power off"),
        Power::Reboot(of) => (of, "rebooting", "power on"),
        Power::SoftOff(of) => (of, "soft power off", "power off"),
        Power::SoftReboot(of) => (of, "soft rebooting", "power on"),
    };
    let risk = (target != "power on").then_some("what runs on them is interrupted");
    let success = if of.wait.limit().is_some() { "done" } else { "accepted" };
    let one = async |node: &str| {
        let path = ["nodes", node, "states", "power"];
        client.send(Method::PUT, &path, &[], Some(json!({"target": target}))).await?;
        match of.wait.limit() {
            Some(limit) => until(client, node, &WaitTarget::Power(end), limit).await,
            None => client.get(&["nodes", node], &[]).await,
        }
    };
    let view = |node: &Value| power_line(&NodeView::of(node));
    each(client, format, &of.nodes, &Act { risk, success }, view, one).await
}

fn power_line(node: &NodeView) -> String {
    let state = node.power_state.as_deref().unwrap_or("unknown");
    match &node.target_power_state {
        Some(target) => format!("{}: {state}, {target} asked for", node.label()),
        None => format!("{}: {state}", node.label()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_in_one_line() {
        let mut node = NodeView { uuid: "u".into(), ..NodeView::default() };
        assert_eq!(power_line(&node), "u: unknown");
        node.power_state = Some("power off".into());
        node.target_power_state = Some("power on".into());
        assert_eq!(power_line(&node), "u: power off, power on asked for");
    }
}
