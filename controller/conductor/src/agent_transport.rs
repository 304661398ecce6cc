//! Carries a call to an agent: HTTPS with the certificate of the agent pinned. The content of calls is opaque here.

use crate::connections::Connections;
use async_trait::async_trait;
use pinned_tls::{Accept, Pin};
use reqwest::{Method, StatusCode, Url};
use std::time::Duration;

/// Largest answer read from an agent (logs come base64 in one).
const MAX_ANSWER: usize = 64 << 20;

/// One call. The URL holds the token: it must stay out of every message.
pub struct AgentCall {
    /// `GET` or `POST`.
    pub method: Method,
    /// Where, with the token in the query.
    pub url: Url,
    /// A command as JSON.
    pub body: Option<Vec<u8>>,
    /// PEM of the certificate that the agent sent with its first, token-checked heartbeat: no other is trusted.
    pub certificate: Option<String>,
}

/// Carries calls to agents. Simulations have their own.
#[async_trait]
pub trait AgentTransport: Send + Sync {
    /// Status and body of the answer.
    ///
    /// # Errors
    /// Why there is no answer, in one sentence without the URL. The call may have arrived nevertheless.
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String>;
}

/// HTTPS with the certificate of the agent pinned.
pub struct Https {
    connections: Connections,
}

impl Https {
    /// Calls end within `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Self { connections: Connections::new(timeout) }
    }
}

#[async_trait]
impl AgentTransport for Https {
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String> {
        let client = self.connections.to(accept(call.certificate.as_deref())?)?;
        let mut request = client.request(call.method, call.url).header("content-type", "application/json");
        if let Some(body) = call.body {
            request = request.body(body);
        }
        let answer = request.send().await.map_err(describe)?;
        Ok((answer.status(), read(answer).await?))
    }
}

fn accept(pem: Option<&str>) -> Result<Accept, String> {
    match pem {
        Some(pem) => {
            let pin =
                Pin::of_pem(pem).map_err(|error| format!("the certificate of the heartbeat: {error}"))?;
            Ok(Accept::Only(pin))
        }
        None => Ok(Accept::None),
    }
}

async fn read(mut answer: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(describe)? {
        if bytes.len() + chunk.len() > MAX_ANSWER {
            return Err(format!("the answer is larger than {MAX_ANSWER} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The error with its chain, without the URL (which holds the token).
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_certificate_of_the_heartbeat_is_the_agents() {
        let pem = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
        assert!(matches!(accept(Some(pem)), Ok(Accept::Only(pin)) if pin == Pin::of_der(b"abc")));
        assert!(matches!(accept(None), Ok(Accept::None)));
        assert!(accept(Some("no PEM")).is_err());
    }
}
