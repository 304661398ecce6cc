//! A controller's way to the agent.

use agentd::http::{ApiUrl, Client};
use agentd::tls::Trust;
use hyper::Method;
use pinned_tls::Pin;
use serde_json::Value;

/// The agent as the controller sees it: reached only over the certificate that its heartbeat brought.
pub struct Remote {
    client: Client,
    url: ApiUrl,
    token: String,
}

impl Remote {
    /// From a heartbeat.
    pub fn of(heartbeat: &Value) -> Self {
        let text = |key: &str| heartbeat[key].as_str().expect(key).to_owned();
        let trust = Trust::Pins(vec![Pin::of_pem(&text("agent_verify_ca")).expect("certificate")]);
        Self {
            client: Client::new(Some(&trust)).expect("client"),
            url: text("callback_url").parse().expect("callback URL"),
            token: text("agent_token"),
        }
    }

    /// POST a command.
    pub async fn post(&self, command: &Value, wait: bool) -> (u16, Value) {
        let path = format!("/v1/commands/?wait={wait}&agent_token={}", self.token);
        self.send(Method::POST, &path, command.to_string().into_bytes()).await
    }

    /// GET a command.
    pub async fn get(&self, id: &str, wait: bool) -> (u16, Value) {
        let path = format!("/v1/commands/{id}?wait={wait}&agent_token={}", self.token);
        self.send(Method::GET, &path, Vec::new()).await
    }

    async fn send(&self, method: Method, path: &str, body: Vec<u8>) -> (u16, Value) {
        let reply = self.client.send(method, &self.url, path, None, body).await.expect("the agent answers");
        (reply.status, serde_json::from_slice(&reply.body).expect("JSON"))
    }
}
