//! Carries a call to an agent: HTTPS with the certificate of the agent pinned. The content of calls is opaque here.

use crate::connections::Connections;
use async_trait::async_trait;
use pinned_tls::{Accept, Pin, chain};
use reqwest::{Method, StatusCode, Url};
use std::time::Duration;

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
    /// Largest answer that is read, in bytes.
    pub limit: usize,
}

/// Carries calls to agents. Simulations have their own.
#[async_trait]
pub trait AgentTransport: Send + Sync {
    /// Status and body of the answer.
    ///
    /// # Errors
    /// Why there is no answer, in one sentence without the URL. The call may have arrived nevertheless.
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String>;

    /// As [`AgentTransport::call`], for an answer that is not held in memory: `sink` gets it as it arrives. Returns its status.
    ///
    /// # Errors
    /// As [`AgentTransport::call`]; also when the sink refuses.
    async fn download(&self, call: AgentCall, sink: &mut dyn AnswerSink) -> Result<StatusCode, String> {
        let (status, bytes) = self.call(call).await?;
        sink.receive(status, &bytes).await?;
        Ok(status)
    }
}

/// Takes an answer as it arrives.
#[async_trait]
pub trait AnswerSink: Send {
    /// The next bytes of an answer with this status.
    ///
    /// # Errors
    /// It wants no more of it.
    async fn receive(&mut self, status: StatusCode, chunk: &[u8]) -> Result<(), String>;
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

impl Https {
    async fn send(&self, call: AgentCall) -> Result<reqwest::Response, String> {
        let client = self.connections.to(accept(call.certificate.as_deref())?)?;
        let mut request = client.request(call.method, call.url).header("content-type", "application/json");
        if let Some(body) = call.body {
            request = request.body(body);
        }
        request.send().await.map_err(describe)
    }
}

#[async_trait]
impl AgentTransport for Https {
    async fn call(&self, call: AgentCall) -> Result<(StatusCode, Vec<u8>), String> {
        let limit = call.limit;
        let answer = self.send(call).await?;
        Ok((answer.status(), read(answer, limit).await?))
    }

    async fn download(&self, call: AgentCall, sink: &mut dyn AnswerSink) -> Result<StatusCode, String> {
        let limit = call.limit;
        let mut answer = self.send(call).await?;
        let (status, mut received) = (answer.status(), 0);
        while let Some(chunk) = answer.chunk().await.map_err(describe)? {
            received += chunk.len();
            if received > limit {
                return Err(too_large(limit));
            }
            sink.receive(status, &chunk).await?;
        }
        Ok(status)
    }
}

fn too_large(limit: usize) -> String {
    format!("the answer is larger than {limit} bytes")
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

async fn read(mut answer: reqwest::Response, limit: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(describe)? {
        if bytes.len() + chunk.len() > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Without the URL, which holds the token.
fn describe(error: reqwest::Error) -> String {
    chain(&error.without_url())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_is_read_of_an_answer_than_the_call_allows() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let agent = tokio::spawn(async move {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 1024];
                let _ = stream.read(&mut head).await.unwrap();
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\n12345";
                stream.write_all(answer).await.unwrap();
            }
        });
        let https = Https::new(Duration::from_secs(20));
        let url: Url = format!("http://{address}/").parse().unwrap();
        let call =
            |limit| AgentCall { method: Method::GET, url: url.clone(), body: None, certificate: None, limit };
        let (status, bytes) = https.call(call(5)).await.unwrap();
        assert_eq!((status, bytes.as_slice()), (StatusCode::OK, b"12345".as_slice()));
        assert_eq!(https.call(call(4)).await.unwrap_err(), "the answer is larger than 4 bytes");
        agent.await.unwrap();
    }

    #[test]
    fn only_the_certificate_of_the_heartbeat_is_the_agents() {
        let pem = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
        assert!(matches!(accept(Some(pem)), Ok(Accept::Only(pin)) if pin == Pin::of_der(b"abc")));
        assert!(matches!(accept(None), Ok(Accept::None)));
        assert!(accept(Some("no PEM")).is_err());
    }
}
