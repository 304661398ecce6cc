//! Heartbeats: when (pure) and how.

use crate::VERSION;
use crate::executor::Executor;
use crate::http::{ApiUrl, Client, shorten};
use crate::lookup::{self, Controller, LookupError, LookupRequest, LookupResult};
use crate::random;
use crate::state::State;
use agent_protocol::heartbeat::Heartbeat;
use hyper::Method;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Share of `heartbeat_timeout` between beats, drawn anew each time (ironic-python-agent's).
const SHARE: Range<f64> = 0.3..0.6;
/// After an error, in seconds.
const RETRY: Range<f64> = 5.0..10.0;
/// Longest wait between tries while the controller refuses us, in seconds.
const LONGEST_RETRY: f64 = 60.0;
/// A forced heartbeat comes no sooner than this after the previous one when the controller is an Ironic.
const IRONIC_GAP: Duration = Duration::from_secs(5);
/// Between heartbeats while a command reports progress, to a controller that offered the extension.
const PROGRESS_GAP: Duration = Duration::from_secs(2);

/// How the previous heartbeat went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// 202.
    Accepted,
    /// No answer, 5xx or 409.
    Failed,
    /// The controller does not take this agent for the node's: 400, 401, 403, 404.
    Refused,
}

/// What the next heartbeat depends on.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// From the lookup.
    pub heartbeat_timeout: Duration,
    /// The controller offered the extension.
    pub extension: bool,
    /// The previous one.
    pub outcome: Outcome,
    /// How many in a row were not accepted.
    pub failures: u32,
    /// A random number in [0, 1), drawn once per beat.
    pub random: f64,
}

/// What is going on in the agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activity {
    /// A command has ended since the previous heartbeat.
    pub ended: bool,
    /// A running command reports progress.
    pub progress: bool,
}

impl Pace {
    /// How long after the previous heartbeat the next one is due. Pure.
    pub fn due_after(&self, activity: Activity) -> Duration {
        let between = |range: &Range<f64>| range.start + (range.end - range.start) * self.random;
        match self.outcome {
            // Commands that end do not add load to a controller that fails.
            Outcome::Failed => return Duration::from_secs_f64(between(&RETRY)),
            Outcome::Refused => {
                let factor = f64::from(2_u32.saturating_pow(self.failures.saturating_sub(1).min(8)));
                return Duration::from_secs_f64((between(&RETRY) * factor).min(LONGEST_RETRY));
            }
            Outcome::Accepted => {}
        }
        let regular = self.heartbeat_timeout.mul_f64(between(&SHARE));
        let forced = match (activity.ended, self.extension) {
            (true, true) => Duration::ZERO,
            (true, false) => IRONIC_GAP,
            (false, _) => regular,
        };
        let lively = if activity.progress && self.extension { PROGRESS_GAP } else { regular };
        regular.min(forced).min(lively)
    }
}

/// The fixed part of every heartbeat.
#[derive(Debug, Clone)]
pub struct HeartbeatTemplate {
    /// Where the agent's API is.
    pub callback_url: String,
    /// The agent's certificate, PEM.
    pub verify_ca: Option<String>,
}

/// Send heartbeats without end. When the controller does not answer, they go to the next of `urls` that does.
pub async fn run(
    executor: Arc<Executor>,
    client: Client,
    urls: &[ApiUrl],
    mut controller: Controller,
    request: LookupRequest,
    mut found: LookupResult,
    template: HeartbeatTemplate,
) {
    let (mut failures, mut is_first) = (0, true);
    loop {
        let sent = Instant::now();
        let outcome = match beat(executor.state(), &client, &controller, &found, &template).await {
            Ok(()) => {
                tracing::debug!(node_uuid = found.node_uuid, "heartbeat accepted");
                Outcome::Accepted
            }
            Err(BeatError::Refused { status, text }) => {
                tracing::error!(
                    node_uuid = found.node_uuid,
                    status,
                    error = text,
                    "the controller refuses this agent's heartbeat; looking up again"
                );
                look_again(executor.state(), &client, &controller, &request, &mut found).await;
                Outcome::Refused
            }
            Err(error) => {
                tracing::warn!(node_uuid = found.node_uuid, url = %controller.url, %error, "heartbeat failed");
                let others = lookup::others(urls, &controller.url);
                match beat_another(executor.state(), &client, &others, &found, &template).await {
                    Some(other) => {
                        tracing::info!(url = %other.url, "another controller accepts the heartbeats");
                        controller = other;
                        Outcome::Accepted
                    }
                    None => Outcome::Failed,
                }
            }
        };
        failures = if outcome == Outcome::Accepted { 0 } else { failures + 1 };
        if outcome == Outcome::Accepted && std::mem::take(&mut is_first) {
            tracing::info!(node_uuid = found.node_uuid, "the first heartbeat is accepted");
        }
        let pace = Pace {
            heartbeat_timeout: found.heartbeat_timeout,
            extension: found.extension,
            outcome,
            failures,
            random: random::unit(),
        };
        rest(&executor, sent, &pace).await;
    }
}

/// Wait until the next heartbeat is due, watching the agent's activity.
async fn rest(executor: &Executor, sent: Instant, pace: &Pace) {
    let mut activity = Activity::default();
    loop {
        activity.progress = executor.state().running().is_some_and(|running| running.progress.is_some());
        let due = sent + pace.due_after(activity);
        // A command may begin, and begin to report progress, at any time: look again before long.
        let look = Instant::now() + PROGRESS_GAP;
        tokio::select! {
            () = tokio::time::sleep_until(due) => return,
            () = executor.heartbeat_due() => activity.ended = true,
            () = tokio::time::sleep_until(look), if pace.extension => {}
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum BeatError {
    #[error(transparent)]
    Http(#[from] crate::http::HttpError),
    #[error("the controller answered {status}: {text}")]
    Refused { status: u16, text: String },
    #[error("the controller answered {status}: {text}")]
    Status { status: u16, text: String },
    #[error("heartbeat cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
}

async fn beat(
    state: &State,
    client: &Client,
    controller: &Controller,
    found: &LookupResult,
    template: &HeartbeatTemplate,
) -> Result<(), BeatError> {
    let body = serde_json::to_vec(&Heartbeat {
        callback_url: template.callback_url.clone(),
        agent_token: Some(found.token.expose().to_owned()),
        agent_version: Some(VERSION.to_owned()),
        agent_verify_ca: template.verify_ca.clone(),
        anneal: found.extension.then(|| state.heartbeat()),
    })?;
    let path = format!("/v1/heartbeat/{}", found.node_uuid);
    let version = Some(controller.heartbeat_version.as_str());
    let reply = client.send(Method::POST, &controller.url, &path, version, body).await?;
    match reply.status {
        202 => Ok(()),
        status @ (400 | 401 | 403 | 404) => Err(BeatError::Refused { status, text: shorten(&reply.body) }),
        status => Err(BeatError::Status { status, text: shorten(&reply.body) }),
    }
}

/// Send the heartbeat to the first of these controllers that accepts it.
async fn beat_another(
    state: &State,
    client: &Client,
    urls: &[ApiUrl],
    found: &LookupResult,
    template: &HeartbeatTemplate,
) -> Option<Controller> {
    for url in urls {
        let Ok(controller) = lookup::greet(client, std::slice::from_ref(url)).await else { continue };
        match beat(state, client, &controller, found, template).await {
            Ok(()) => return Some(controller),
            Err(error) => tracing::warn!(%url, %error, "heartbeat failed"),
        }
    }
    None
}

/// Who are we now? The old identity stays unless the controller gives a new one.
async fn look_again(
    state: &State,
    client: &Client,
    controller: &Controller,
    request: &LookupRequest,
    found: &mut LookupResult,
) {
    match lookup::ask(client, controller, request, Some(&found.token)).await {
        Ok(fresh) => {
            state.set_lookup_result(fresh.token.clone(), fresh.extension);
            *found = fresh;
        }
        Err(error @ LookupError::Refused { .. }) => {
            tracing::error!(%error, "the controller does not know this machine now");
        }
        Err(error) => tracing::warn!(%error, "lookup"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pace(extension: bool, outcome: Outcome, failures: u32, random: f64) -> Pace {
        Pace { heartbeat_timeout: Duration::from_secs(300), extension, outcome, failures, random }
    }

    const IDLE: Activity = Activity { ended: false, progress: false };
    const ENDED: Activity = Activity { ended: true, progress: false };
    const BUSY: Activity = Activity { ended: false, progress: true };

    #[test]
    fn an_ended_command_is_reported_at_once_only_to_a_controller_that_offered_it() {
        assert_eq!(pace(true, Outcome::Accepted, 0, 0.5).due_after(ENDED), Duration::ZERO);
        assert_eq!(pace(false, Outcome::Accepted, 0, 0.5).due_after(ENDED), IRONIC_GAP);
    }

    #[test]
    fn progress_hurries_only_a_controller_that_offered() {
        assert_eq!(pace(true, Outcome::Accepted, 0, 0.5).due_after(BUSY), PROGRESS_GAP);
        assert_eq!(pace(false, Outcome::Accepted, 0, 0.0).due_after(BUSY), Duration::from_secs(90));
    }

    #[test]
    fn refusals_back_off() {
        let waits: Vec<u64> = (1..6)
            .map(|failures| pace(true, Outcome::Refused, failures, 0.0).due_after(ENDED).as_secs())
            .collect();
        assert_eq!(waits, [5, 10, 20, 40, 60]);
    }

    proptest! {
        #[test]
        fn beats_stay_within_their_bounds(random in 0.0..1.0_f64, extension: bool, failures in 0..100_u32) {
            let idle = pace(extension, Outcome::Accepted, 0, random).due_after(IDLE).as_secs_f64();
            prop_assert!((90.0..=180.0).contains(&idle));
            let failed = pace(extension, Outcome::Failed, failures, random).due_after(ENDED).as_secs_f64();
            prop_assert!((5.0..=10.0).contains(&failed));
            let refused = pace(extension, Outcome::Refused, failures, random).due_after(ENDED).as_secs_f64();
            prop_assert!((5.0..=60.0).contains(&refused));
        }
    }
}
