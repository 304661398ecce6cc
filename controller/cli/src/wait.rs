//! `--wait`: look at the node until it is where it should be, or cannot get there any more.

use crate::client::Client;
use crate::failure::Failure;
use crate::output::{duration, printable};
use crate::view::NodeView;
use clap::Args;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Time between two looks.
pub const PAUSE: Duration = Duration::from_secs(1);
/// How long a controller may be away (a restart, say) before a waiting command gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The option `--wait`.
#[derive(Debug, Args)]
pub struct WaitOption {
    /// Wait until it is done: without limit, or for so many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "0")]
    wait: Option<u64>,
}

impl WaitOption {
    /// Whether to wait, and how long at most.
    pub fn limit(&self) -> Option<Option<Duration>> {
        self.wait.map(|seconds| (seconds > 0).then(|| Duration::from_secs(seconds)))
    }
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitTarget {
    /// This provision state.
    State(String),
    /// Any state in which nothing happens by itself, failed ones included: what an abort leads to.
    Rest,
    /// This power state, reached.
    Power(&'static str),
}

/// How a node stands to a goal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// On its way.
    Waiting,
    /// There.
    Reached,
    /// It will not get there by itself.
    Lost(String),
}

/// How `node` stands to `goal`. Pure.
pub fn judge(node: &NodeView, goal: &WaitTarget) -> Verdict {
    let because = match &node.last_error {
        Some(error) => format!(": {}", printable(error)),
        None => String::new(),
    };
    match goal {
        WaitTarget::State(state) if node.state() == state && !node.has_failed() => Verdict::Reached,
        // A retired node is cleaned and then kept out of service: the right end of the same road.
        WaitTarget::State(state)
            if state == "available"
                && node.state() == "manageable"
                && node.retired == Some(true)
                && node.last_error.is_none() =>
        {
            Verdict::Reached
        }
        WaitTarget::State(state) if node.has_failed() || node.is_stable() => {
            Verdict::Lost(format!("node {} is {:?}, not {state:?}{because}", node.label(), node.state()))
        }
        WaitTarget::Rest if node.has_failed() || node.is_stable() => Verdict::Reached,
        WaitTarget::State(_) | WaitTarget::Rest => Verdict::Waiting,
        WaitTarget::Power(_) if node.target_power_state.is_some() => Verdict::Waiting,
        WaitTarget::Power(state)
            if node.power_state.as_deref() == Some(state) && node.last_error.is_none() =>
        {
            Verdict::Reached
        }
        WaitTarget::Power(state) => Verdict::Lost(format!(
            "node {} is {:?}, not {state:?}{because}",
            node.label(),
            node.power_state.as_deref().unwrap_or("unknown")
        )),
    }
}

/// One line on where `node` is.
pub fn status_line(node: &NodeView) -> String {
    let mut line = format!("{}: {}", node.label(), node.state());
    if let Some(target) = &node.target_power_state {
        line.push_str(&format!(", {target} asked for"));
    }
    if let Some(step) = node.step() {
        line.push_str(&format!(", step {step}"));
    }
    if let Some(wait) = &node.driver_internal_info.anneal.wait {
        line.push_str(&format!(", waiting: {}", wait.reason));
    }
    printable(&line)
}

/// Looks at the node `ident` until `goal` is reached and gives the node as it is then. Changes are printed
/// on standard error.
pub async fn until(
    client: &Client,
    ident: &str,
    goal: &WaitTarget,
    limit: Option<Duration>,
) -> Result<Value, Failure> {
    let begun = Instant::now();
    let mut away_since: Option<Instant> = None;
    let mut printed = String::new();
    loop {
        match client.get(&["nodes", ident], &[]).await {
            Ok(body) => {
                away_since = None;
                let node = NodeView::of(&body);
                let line = status_line(&node);
                if line != printed {
                    eprintln!("{line}");
                    printed = line;
                }
                match judge(&node, goal) {
                    Verdict::Reached => return Ok(body),
                    Verdict::Lost(why) => return Err(Failure::Ended(why)),
                    Verdict::Waiting => {}
                }
            }
            Err(failure @ Failure::Unreachable { .. }) => {
                let since = *away_since.get_or_insert_with(|| {
                    eprintln!("{failure}; still trying");
                    Instant::now()
                });
                if since.elapsed() >= PATIENCE {
                    return Err(failure);
                }
            }
            Err(failure) => return Err(failure),
        }
        if limit.is_some_and(|limit| begun.elapsed() >= limit) {
            let waited = duration(begun.elapsed().as_secs());
            return Err(Failure::Timeout(format!("gave up waiting after {waited}; last seen: {printed}")));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(state: &str, last_error: Option<&str>) -> NodeView {
        NodeView {
            name: Some("n1".into()),
            provision_state: Some(state.into()),
            last_error: last_error.map(str::to_owned),
            ..NodeView::default()
        }
    }

    #[test]
    fn provision_goals() {
        let goal = WaitTarget::State("available".into());
        assert_eq!(judge(&node("clean wait", None), &goal), Verdict::Waiting);
        assert_eq!(judge(&node("clean hold", None), &goal), Verdict::Waiting);
        assert_eq!(judge(&node("available", None), &goal), Verdict::Reached);
        let lost = "node n1 is \"clean failed\", not \"available\": sda: I/O error";
        assert_eq!(judge(&node("clean failed", Some("sda: I/O error")), &goal), Verdict::Lost(lost.into()));
        let lost = "node n1 is \"enroll\", not \"manageable\": no BMC";
        let manage = WaitTarget::State("manageable".into());
        assert_eq!(judge(&node("enroll", Some("no BMC")), &manage), Verdict::Lost(lost.into()));
        let mut retired = node("manageable", None);
        assert!(matches!(judge(&retired, &goal), Verdict::Lost(_)));
        retired.retired = Some(true);
        assert_eq!(judge(&retired, &goal), Verdict::Reached);
        retired.last_error = Some("sda: I/O error".into());
        assert!(matches!(judge(&retired, &goal), Verdict::Lost(why) if why.contains("I/O error")));
        assert_eq!(judge(&node("clean failed", None), &WaitTarget::Rest), Verdict::Reached);
        assert_eq!(judge(&node("clean wait", None), &WaitTarget::Rest), Verdict::Waiting);
    }

    #[test]
    fn power_goals() {
        let goal = WaitTarget::Power("power on");
        let mut seen = node("manageable", None);
        seen.target_power_state = Some("power on".into());
        assert_eq!(judge(&seen, &goal), Verdict::Waiting);
        seen.target_power_state = None;
        seen.power_state = Some("power off".into());
        assert!(matches!(judge(&seen, &goal), Verdict::Lost(_)));
        seen.power_state = Some("power on".into());
        assert_eq!(judge(&seen, &goal), Verdict::Reached);
        seen.last_error = Some("BMC: 500".into());
        assert!(matches!(judge(&seen, &goal), Verdict::Lost(_)));
    }
}
