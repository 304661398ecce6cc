//! Sends one event.

use crate::settings::Webhook;
use crate::signature::{HEADER, signature};
use model::{LoggedEvent, Timestamp};
use pinned_tls::chain;
use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use store::EventCursor;

/// What one webhook is sent with.
pub struct Sender {
    name: String,
    settings: Webhook,
    client: Client,
}

impl Sender {
    /// Of this webhook.
    ///
    /// # Errors
    /// As [`Webhook::client`].
    pub fn new(name: &str, settings: Webhook) -> Result<Self, String> {
        let client = settings.client()?;
        Ok(Self { name: name.to_owned(), settings, client })
    }

    /// Send an event, and wait until the receiver has taken it: it answered 2xx.
    ///
    /// # Errors
    /// Why it did not, without URL and secret.
    pub async fn send(&self, cursor: EventCursor, event: &LoggedEvent, now: Timestamp) -> Result<(), String> {
        let body = api::view_event(cursor, event).to_string();
        let settings = self.settings.clone();
        let read = tokio::task::spawn_blocking(move || settings.secret()).await;
        let secret = read.map_err(|error| format!("secret_file: {error}"))??;
        let signed = signature(&secret, now.0.div_euclid(1_000_000), body.as_bytes());
        let request = self.client.post(&self.settings.url).header(CONTENT_TYPE, "application/json");
        let request = request.header(HEADER, signed).header("anneal-webhook", &self.name);
        // The body of the answer is not read: dropping it closes the connection if there is one.
        let answer = request.body(body).send().await.map_err(describe)?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answered with status {}", status.as_u16())),
        }
    }
}

fn describe(error: reqwest::Error) -> String {
    match error.is_timeout() {
        true => "it did not answer in time".to_owned(),
        false => chain(&error.without_url()),
    }
}
