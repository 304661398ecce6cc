//! Asks the controller which node this machine is, until it answers.

use crate::http::{ApiUrl, Client, HttpError, shorten};
use crate::random;
use crate::token::Token;
use agent_protocol::boot_proof::{self, Capabilities};
use agent_protocol::lookup::{BundleOffer, LookupAnswer, MASKED};
use agent_protocol::{HEARTBEAT_MICROVERSION, LOOKUP_MICROVERSION};
use hyper::Method;
use serde::Deserialize;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A controller that answered.
#[derive(Debug, Clone)]
pub struct Controller {
    /// Where.
    pub url: ApiUrl,
    /// Microversion for lookups.
    pub lookup_version: String,
    /// Microversion for heartbeats.
    pub heartbeat_version: String,
    /// The address of ours that it saw.
    pub local: IpAddr,
    /// Whether it takes our boot id in a lookup; Ironic rejects arguments that it does not know.
    pub takes_boot_id: bool,
    /// Whether it takes a proof of our boot.
    pub takes_boot_proof: bool,
}

/// What a lookup brought.
#[derive(Debug, Clone)]
pub struct LookupResult {
    /// UUID of the node.
    pub node_uuid: String,
    /// The token to use.
    pub token: Token,
    /// Within which the controller wants to hear us.
    pub heartbeat_timeout: Duration,
    /// Whether the controller offered Anneal's extension.
    pub extension: bool,
    /// Bundles that this node is to have.
    pub bundles: Vec<BundleOffer>,
}

/// Identity of the agent that sends the request.
#[derive(Debug, Clone, Default)]
pub struct LookupRequest {
    /// MAC addresses of the machine.
    pub macs: Vec<String>,
    /// UUID, when it is known beforehand.
    pub node_uuid: Option<String>,
    /// Boot id: by it an agent whose answer was lost may ask again.
    pub boot_id: Option<String>,
}

/// Why a lookup brought nothing; all of them are worth another try later.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// No answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The node is locked; 409.
    #[error("the node is locked by another operation (409)")]
    Locked,
    /// The controller said no.
    #[error("the controller answered {status}: {text}")]
    Refused {
        /// Status code.
        status: u16,
        /// Body, shortened.
        text: String,
    },
    /// The token has been given to another agent.
    #[error(
        "the controller has already given the token of node {node} to another agent, or to this machine \
         before it restarted; waiting until it forgets that agent"
    )]
    TokenTaken {
        /// UUID.
        node: String,
    },
    /// The answer cannot be used.
    #[error("unusable answer: {0}")]
    Answer(String),
}

/// Judge the answer to a lookup. Pure.
pub fn judge(status: u16, body: &[u8], own: Option<&Token>) -> Result<LookupResult, LookupError> {
    match status {
        200 => {}
        409 => return Err(LookupError::Locked),
        status => return Err(LookupError::Refused { status, text: shorten(body) }),
    }
    let answer: LookupAnswer =
        serde_json::from_slice(body).map_err(|error| LookupError::Answer(error.to_string()))?;
    let timeout = answer.config.heartbeat_timeout;
    if !(timeout.is_finite() && (1.0..=86_400.0).contains(&timeout)) {
        return Err(LookupError::Answer(format!("heartbeat_timeout {timeout} is not within 1 s and a day")));
    }
    let token = match answer.config.agent_token.as_deref() {
        Some(MASKED) => {
            own.cloned().ok_or_else(|| LookupError::TokenTaken { node: answer.node.uuid.clone() })?
        }
        Some(text) => Token::new(text)
            .ok_or_else(|| LookupError::Answer("the token is shorter than 32 characters".into()))?,
        None => return Err(LookupError::Answer("no agent_token in it".into())),
    };
    Ok(LookupResult {
        node_uuid: answer.node.uuid,
        token,
        heartbeat_timeout: Duration::from_secs_f64(timeout),
        extension: answer.config.anneal.is_some_and(|offer| offer.extension >= 1),
        bundles: answer.config.anneal_bundles,
    })
}

/// How long to wait before try number `attempt + 1` (from 0). Random below a doubling ceiling of at
/// most `longest`; a locked node is asked again after 5, 10, then 30 s, as ironic-python-agent does.
pub fn delay(error: &LookupError, attempt: u32, longest: Duration, random: f64) -> Duration {
    const FIRST: Duration = Duration::from_secs(1);
    if let LookupError::Locked = error {
        return Duration::from_secs([5, 10, 30][attempt.min(2) as usize]).min(longest);
    }
    let ceiling = FIRST.saturating_mul(2_u32.saturating_pow(attempt.min(16))).min(longest);
    let floor = FIRST.min(longest);
    floor + ceiling.saturating_sub(floor).mul_f64(random)
}

#[derive(Deserialize)]
struct Root {
    anneal: Option<Capabilities>,
    default_version: RootVersion,
}

#[derive(Deserialize)]
struct RootVersion {
    version: String,
}

/// Ask each controller in turn for its version; the first that answers is ours.
pub async fn greet(client: &Client, urls: &[ApiUrl]) -> Result<Controller, LookupError> {
    let mut last = None;
    for url in urls {
        match greet_one(client, url).await {
            Ok(controller) => return Ok(controller),
            Err(error) => {
                if urls.len() > 1 {
                    tracing::warn!(%url, %error, "controller does not answer");
                }
                last = Some(error);
            }
        }
    }
    Err(last.unwrap_or_else(|| LookupError::Answer("no controller is configured".into())))
}

/// The other controllers, from the one behind this to the one before it.
pub fn others(urls: &[ApiUrl], this: &ApiUrl) -> Vec<ApiUrl> {
    let at = urls.iter().position(|url| url == this).map_or(0, |at| at + 1);
    urls[at..].iter().chain(&urls[..at]).filter(|url| *url != this).cloned().collect()
}

async fn greet_one(client: &Client, url: &ApiUrl) -> Result<Controller, LookupError> {
    let reply = client.send(Method::GET, url, "/", None, Vec::new()).await?;
    if reply.status != 200 {
        return Err(LookupError::Refused { status: reply.status, text: shorten(&reply.body) });
    }
    let root: Root = serde_json::from_slice(&reply.body)
        .map_err(|error| LookupError::Answer(format!("GET / of {url} is not an Ironic API's: {error}")))?;
    let server = &root.default_version.version;
    Ok(Controller {
        url: url.clone(),
        lookup_version: microversion(server, LOOKUP_MICROVERSION)?,
        heartbeat_version: microversion(server, HEARTBEAT_MICROVERSION)?,
        local: reply.local,
        takes_boot_id: root.anneal.is_some(),
        takes_boot_proof: root.anneal.is_some_and(|can| can.boot_proof >= boot_proof::VERSION),
    })
}

/// The lower of the server's and ours. Agent tokens exist since 1.62: below, there is no talking.
fn microversion(server: &str, ours: &str) -> Result<String, LookupError> {
    const LOWEST: u32 = 62;
    let minor = |text: &str| text.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
    let (Some(server_minor), Some(ours)) = (minor(server), minor(ours)) else {
        return Err(LookupError::Answer(format!("API version {server:?} is not 1.N")));
    };
    if server_minor < LOWEST {
        return Err(LookupError::Answer(format!(
            "API version {server} has no agent tokens; 1.{LOWEST} is needed"
        )));
    }
    Ok(format!("1.{}", server_minor.min(ours)))
}

/// One lookup.
pub async fn ask(
    client: &Client,
    controller: &Controller,
    request: &LookupRequest,
    own: Option<&Token>,
) -> Result<LookupResult, LookupError> {
    let mut path = format!("/v1/lookup?addresses={}", request.macs.join(",").replace(':', "%3A"));
    if let Some(uuid) = &request.node_uuid {
        path = format!("{path}&node_uuid={uuid}");
    }
    if let Some(boot_id) = request.boot_id.as_deref().filter(|_| controller.takes_boot_id) {
        path = format!("{path}&anneal_boot_id={boot_id}");
    }
    let version = Some(controller.lookup_version.as_str());
    let reply = client.send(Method::GET, &controller.url, &path, version, Vec::new()).await?;
    judge(reply.status, &reply.body, own)
}

/// One lookup; by another controller, which is `controller` from then on, if this one does not answer.
pub async fn ask_any(
    client: &Client,
    urls: &[ApiUrl],
    controller: &Mutex<Controller>,
    request: &LookupRequest,
    own: Option<&Token>,
) -> Result<LookupResult, LookupError> {
    let current = || controller.lock().unwrap_or_else(PoisonError::into_inner);
    let this = current().clone();
    match ask(client, &this, request, own).await {
        Err(LookupError::Http(error)) if urls.len() > 1 => {
            tracing::warn!(url = %this.url, %error, "lookup");
            let other = greet(client, &others(urls, &this.url)).await?;
            *current() = other.clone();
            ask(client, &other, request, own).await
        }
        answered => answered,
    }
}

/// Ask until an answer comes. Waits between tries are random below a ceiling that doubles up to `longest`.
pub async fn persist<T, F>(what: &str, longest: Duration, mut attempt: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, LookupError>>,
{
    let mut failures = 0;
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) => {
                let pause = delay(&error, failures, longest, random::unit());
                tracing::warn!(%error, "{what}; trying again in {:.1} s", pause.as_secs_f64());
                failures += 1;
                tokio::time::sleep(pause).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TOKEN: &str = "yYLAPgCuO2saMMTy9PX_uZiebhASd9v7x3IPqqMlQ_I";

    fn answer(token: serde_json::Value, offer: serde_json::Value) -> Vec<u8> {
        let mut config =
            json!({ "heartbeat_timeout": 30, "agent_token": token, "agent_token_required": true });
        if !offer.is_null() {
            config["anneal"] = offer;
        }
        json!({ "node": { "uuid": "62f4f467-864a-40c0-9b53-0820d3eb102f" }, "config": config })
            .to_string()
            .into_bytes()
    }

    #[test]
    fn an_answer_gives_token_timeout_and_offer() {
        let found = judge(200, &answer(json!(TOKEN), json!({ "extension": 1 })), None).expect("usable");
        assert!(found.token.matches(TOKEN) && found.extension);
        assert_eq!(found.heartbeat_timeout, Duration::from_secs(30));
        let ironic = judge(200, &answer(json!(TOKEN), json!(null)), None).expect("usable");
        assert!(!ironic.extension);
    }

    #[test]
    fn a_masked_token_is_ours_only_if_we_have_one() {
        let body = answer(json!("******"), json!(null));
        assert!(matches!(judge(200, &body, None), Err(LookupError::TokenTaken { .. })));
        let own = Token::new(TOKEN).expect("token");
        assert!(judge(200, &body, Some(&own)).is_ok_and(|found| found.token.matches(TOKEN)));
    }

    #[test]
    fn refusals_and_unusable_answers_are_different_errors() {
        assert!(matches!(judge(409, b"", None), Err(LookupError::Locked)));
        assert!(matches!(judge(404, b"{}", None), Err(LookupError::Refused { status: 404, .. })));
        for body in [&b""[..], b"[]", &answer(json!("short"), json!(null)), &answer(json!(null), json!(null))]
        {
            assert!(matches!(judge(200, body, None), Err(LookupError::Answer(_))));
        }
    }

    #[test]
    fn waits_grow_to_the_longest_and_no_further() {
        let longest = Duration::from_secs(60);
        let refused = LookupError::Refused { status: 404, text: String::new() };
        assert_eq!(delay(&refused, 0, longest, 0.99), Duration::from_secs(1));
        for attempt in 0..100 {
            let most = delay(&refused, attempt, longest, 1.0);
            assert!(most <= longest && most >= delay(&refused, attempt, longest, 0.0));
        }
        assert_eq!(delay(&refused, 30, longest, 1.0), longest);
        let locked: Vec<u64> =
            (0..4).map(|attempt| delay(&LookupError::Locked, attempt, longest, 0.0).as_secs()).collect();
        assert_eq!(locked, [5, 10, 30, 30]);
    }

    #[test]
    fn the_others_are_tried_from_the_next_on() {
        let urls: Vec<ApiUrl> =
            ["http://a", "http://b", "http://c"].map(|url| url.parse().expect("a URL")).to_vec();
        let shown = |this: &str| -> Vec<String> {
            others(&urls, &this.parse().expect("a URL")).iter().map(ToString::to_string).collect()
        };
        assert_eq!(shown("http://b"), ["http://c:80", "http://a:80"]);
        assert_eq!(shown("http://c"), ["http://a:80", "http://b:80"]);
        assert_eq!(shown("http://x"), ["http://a:80", "http://b:80", "http://c:80"]);
    }

    #[test]
    fn microversions_are_negotiated_down() {
        let both = |server| microversion(server, "1.68").map_err(|error| error.to_string());
        assert_eq!(both("1.115"), Ok("1.68".into()));
        assert_eq!(both("1.65"), Ok("1.65".into()));
        assert!(both("1.50").is_err_and(|text| text.contains("1.50")));
        assert!(both("2").is_err());
    }
}
