//! In-band inspection: the inventory is posted to the controller before the lookup, as ironic-python-agent does it.
//!
//! Once, at the start, and before the lookup: a controller may learn only by this which node a MAC belongs to. An
//! inspection that fails is logged and stops nothing; the controller sees that nothing came.

mod nic_firmware;
mod report;

use crate::config::Inspection;
use crate::http::{ApiUrl, Client, HttpError, shorten};
use crate::state::State;
use agent_protocol::inspection::InspectionAnswer;
use hyper::Method;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinError;

/// Tries.
const ATTEMPTS: u32 = 5;

#[derive(Debug, thiserror::Error)]
enum InspectionError {
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Worth another try: it may be busy or starting.
    #[error("{url} answered {status}: {text}")]
    Busy { url: String, status: u16, text: String },
    #[error("{url} refuses the inventory with {status}: {text}")]
    Refused { url: String, status: u16, text: String },
    #[error("the inventory cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
    #[error("collecting it broke: {0}")]
    Broken(#[from] JoinError),
}

/// Collect and post. The UUID of the node, if the controller returned one; failures are logged. `proved` is the id of this boot,
/// where the controller has taken a proof of it.
pub async fn inspect(
    client: &Client,
    inspection: &Inspection,
    state: &Arc<State>,
    proved: Option<&str>,
) -> Option<String> {
    let query = proved.map_or_else(String::new, |boot_id| format!("?anneal_boot_id={boot_id}"));
    let body = match collected(inspection.clone(), state.clone()).await {
        Ok(body) => body,
        Err(error) => return give_up(&error),
    };
    let mut attempt = 1;
    loop {
        match post(client, &inspection.urls, &query, &body).await {
            Ok(answer) => {
                tracing::info!(node_uuid = answer.uuid, "the inventory is delivered");
                return answer.uuid;
            }
            Err(error) => match pause(&error, attempt, inspection.first_wait) {
                None => return give_up(&error),
                Some(pause) => {
                    tracing::warn!(%error, "inspection; trying again in {:.1} s", pause.as_secs_f64());
                    tokio::time::sleep(pause).await;
                    attempt += 1;
                }
            },
        }
    }
}

/// The body of the request. It is collected on a thread of its own, since it takes its time.
async fn collected(inspection: Inspection, state: Arc<State>) -> Result<Vec<u8>, InspectionError> {
    let report = tokio::task::spawn_blocking(move || report::collect(&inspection, &state)).await?;
    Ok(serde_json::to_vec(&report)?)
}

fn give_up(error: &InspectionError) -> Option<String> {
    tracing::error!(%error, "the inventory could not be delivered; going on without");
    None
}

/// How long to wait after try number `attempt` (from 1); `None`: no further one. Pure. With a first wait of 5 s the
/// waits are ironic-python-agent's: 5, 5, 6, 12 s.
fn pause(error: &InspectionError, attempt: u32, first: Duration) -> Option<Duration> {
    let lasting = matches!(
        error,
        InspectionError::Refused { .. } | InspectionError::Encode(_) | InspectionError::Broken(_)
    );
    if lasting || attempt >= ATTEMPTS {
        return None;
    }
    Some(first.mul_f64((0.3 * f64::from(2_u32.pow(attempt - 1))).max(1.0)))
}

/// To the first controller that answers.
async fn post(
    client: &Client,
    urls: &[ApiUrl],
    query: &str,
    body: &[u8],
) -> Result<InspectionAnswer, InspectionError> {
    let mut unanswered = None;
    for url in urls {
        match client.send(Method::POST, url, query, None, body.to_vec()).await {
            Ok(reply) => return judge(&url.to_string(), reply.status, &reply.body),
            Err(error) => {
                if urls.len() > 1 {
                    tracing::warn!(%url, %error, "controller does not answer");
                }
                unanswered = Some(error);
            }
        }
    }
    Err(unanswered.map_or_else(|| refused("no URL", 0, b""), InspectionError::Http))
}

/// What an answer means. Pure.
fn judge(url: &str, status: u16, body: &[u8]) -> Result<InspectionAnswer, InspectionError> {
    match status {
        // Delivered, whatever is in the answer. The UUID goes into the URL of the lookup.
        200..=299 => {
            let answer: InspectionAnswer = serde_json::from_slice(body).unwrap_or_default();
            let uuid = answer.uuid.filter(|uuid| uuid::Uuid::try_parse(uuid).is_ok());
            Ok(InspectionAnswer { uuid })
        }
        // 404: the controller is not yet waiting for it, when a machine boots faster than its driver believes.
        404 | 409 | 500.. => Err(InspectionError::Busy { url: url.into(), status, text: shorten(body) }),
        _ => Err(refused(url, status, body)),
    }
}

fn refused(url: &str, status: u16, body: &[u8]) -> InspectionError {
    InspectionError::Refused { url: url.into(), status, text: shorten(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_bounded_and_a_refusal_is_final() {
        let busy = judge("u", 409, b"locked").expect_err("busy");
        let first = Duration::from_secs(5);
        let waits: Vec<_> = (1..7).map(|at| pause(&busy, at, first).map(|wait| wait.as_secs())).collect();
        assert_eq!(waits, [Some(5), Some(5), Some(6), Some(12), None, None]);
        assert!(pause(&judge("u", 503, b"").expect_err("busy"), 1, first).is_some());
        assert!(pause(&judge("u", 404, b"").expect_err("busy"), 1, first).is_some());
        for status in [301, 400, 401] {
            assert_eq!(pause(&judge("u", status, b"").expect_err("refused"), 1, first), None, "{status}");
        }
    }

    #[test]
    fn an_answer_may_name_the_node() {
        let uuid = |body: &str| judge("u", 202, body.as_bytes()).expect("delivered").uuid;
        const UUID: &str = "62f4f467-864a-40c0-9b53-0820d3eb102f";
        assert_eq!(uuid(&format!(r#"{{"uuid": "{UUID}", "links": []}}"#)).as_deref(), Some(UUID));
        for body in ["", "{}", "[]", "null", r#"{"uuid": 7}"#, r#"{"uuid": "x&addresses=y"}"#] {
            assert_eq!(uuid(body), None, "{body}");
        }
    }
}
