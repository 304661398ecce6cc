//! The boot of a machine that no node is known for: report the hardware, wait for an operator, end. The agent serves nothing here,
//! is given no token and no command, and writes to no disk.

use crate::config::{Config, DiscoveryBoot, Inspection};
use crate::http::{ApiUrl, Client, HttpError};
use crate::inspection;
use crate::random;
use crate::state::State;
use agent_protocol::LOOKUP_MICROVERSION;
use agent_protocol::discovery::{DiscoveryAnswer, DiscoveryLookup, Verdict};
use hyper::Method;
use ramdisk_init::Exit;
use std::sync::Arc;
use std::time::Duration;

/// Wait before the second question; each later one is twice as long, up to [`LONGEST`].
const FIRST: Duration = Duration::from_secs(2);
/// Longest wait between two questions.
const LONGEST: Duration = Duration::from_secs(30);

/// Report, wait, and say how the machine is to end. `macs`: its MAC addresses.
pub async fn run(
    config: &Config,
    boot: DiscoveryBoot,
    client: &Client,
    state: &Arc<State>,
    macs: &[String],
) -> Exit {
    tracing::info!(
        "no node is known for this machine: it waits for an operator, for {} s",
        boot.wait.as_secs()
    );
    let decided = async {
        if !reported(config.inspection.as_ref(), client, state).await {
            // Perhaps a server of a known node, which has started by an interface that is no port: it goes on with its disk.
            return Exit::Reboot;
        }
        let verdict = verdict(&config.api_urls, client, macs).await;
        tracing::info!(?verdict, "the wait is over");
        exit(verdict, boot.after)
    };
    tokio::time::timeout(boot.wait, decided).await.unwrap_or(boot.after)
}

/// What follows from a verdict. An approved machine is off until the controller boots it. Pure.
fn exit(verdict: Verdict, after: Exit) -> Exit {
    match verdict {
        Verdict::Approved => Exit::PowerOff,
        Verdict::Waiting | Verdict::Rejected => after,
    }
}

/// Whether the controller has taken the report.
async fn reported(inspection: Option<&Inspection>, client: &Client, state: &Arc<State>) -> bool {
    match inspection {
        Some(inspection) => inspection::inspect(client, inspection, state, None).await.is_some(),
        None => false,
    }
}

/// An operator's verdict; `Waiting` when the controller says that the time is over.
async fn verdict(urls: &[ApiUrl], client: &Client, macs: &[String]) -> Verdict {
    let mut asked = 0;
    loop {
        match ask(urls, client, macs).await {
            Ok(DiscoveryAnswer { verdict: Verdict::Waiting, seconds_left: 1.. }) => {}
            Ok(DiscoveryAnswer { verdict, .. }) => return verdict,
            Err(error) => tracing::warn!(error, "waiting for an operator; asking again"),
        }
        tokio::time::sleep(pause(asked, random::unit())).await;
        asked += 1;
    }
}

/// How long to wait before the question after number `asked` (from 0): half of it is random, so that a rack does not ask at once.
fn pause(asked: u32, random: f64) -> Duration {
    let whole = FIRST.saturating_mul(2_u32.saturating_pow(asked.min(16))).min(LONGEST);
    whole.mul_f64(0.5 + random / 2.0)
}

/// The answer of the first controller that answers.
async fn ask(urls: &[ApiUrl], client: &Client, macs: &[String]) -> Result<DiscoveryAnswer, String> {
    let path = format!("/v1/lookup?addresses={}", macs.join(",").replace(':', "%3A"));
    let mut unanswered: Option<HttpError> = None;
    for url in urls {
        match client.send(Method::GET, url, &path, Some(LOOKUP_MICROVERSION), Vec::new()).await {
            Ok(reply) => return judge(reply.status, &reply.body),
            Err(error) => unanswered = Some(error),
        }
    }
    Err(unanswered.map_or_else(|| "no controller is named".to_owned(), |error| error.to_string()))
}

/// What an answer means. Pure.
fn judge(status: u16, body: &[u8]) -> Result<DiscoveryAnswer, String> {
    if status != 200 {
        return Err(format!("the controller answered {status}"));
    }
    let answer: DiscoveryLookup = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(answer.anneal_discovery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_approved_machine_is_off_whatever_is_configured() {
        for (verdict, after, expected) in [
            (Verdict::Approved, Exit::Reboot, Exit::PowerOff),
            (Verdict::Rejected, Exit::Reboot, Exit::Reboot),
            (Verdict::Waiting, Exit::Reboot, Exit::Reboot),
            (Verdict::Waiting, Exit::PowerOff, Exit::PowerOff),
        ] {
            assert_eq!(exit(verdict, after), expected, "{verdict:?} {after:?}");
        }
    }

    #[test]
    fn questions_come_less_and_less_often() {
        let waits = |random: f64| (0..6).map(|asked| pause(asked, random).as_secs()).collect::<Vec<_>>();
        assert_eq!(waits(1.0), [2, 4, 8, 16, 30, 30]);
        assert_eq!(waits(0.0), [1, 2, 4, 8, 15, 15]);
        assert_eq!(pause(u32::MAX, 1.0), LONGEST);
    }

    #[test]
    fn an_answer_with_a_token_is_no_verdict() {
        let waiting = br#"{"anneal_discovery":{"verdict":"waiting","seconds_left":7}}"#;
        let answer = DiscoveryAnswer { verdict: Verdict::Waiting, seconds_left: 7 };
        assert_eq!(judge(200, waiting), Ok(answer));
        let lookup = br#"{"node":{"uuid":"u"},"config":{"heartbeat_timeout":300.0,"agent_token":"x"}}"#;
        for (status, body) in [(200, &lookup[..]), (404, waiting), (200, b"")] {
            assert!(judge(status, body).is_err(), "{status}");
        }
    }
}
