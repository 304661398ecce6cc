//! `[webhooks.NAME]` of the configuration.

use image_source::{authorities, pin};
use model::{EventKind, LoggedEvent};
use pinned_tls::{Accept, client_config};
use reqwest::{Client, Url, redirect};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Fewer characters of a secret could be guessed.
const SHORTEST_SECRET: usize = 16;

/// One webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where events are sent: `https://…`, or `http://` on loopback.
    pub url: String,
    /// File whose first line is the secret that signs.
    pub secret_file: PathBuf,
    /// Only events of these types; empty: of all.
    #[serde(default)]
    pub types: Vec<String>,
    /// Only events of nodes that these projects own; empty: of all nodes.
    #[serde(default)]
    pub projects: Vec<String>,
    /// PEM file of the authorities whose certificates the receiver may have; empty: those of the system.
    #[serde(default)]
    pub ca_file: PathBuf,
    /// Fingerprint of the receiver's certificate: no other counts, and `ca_file` has no effect.
    #[serde(default)]
    pub pin: String,
    /// How often an event is tried before it becomes a dead letter.
    #[serde(default = "max_tries")]
    pub max_tries: u32,
    /// Limit of one try.
    #[serde(default = "timeout_s")]
    pub timeout_s: u32,
}

const fn max_tries() -> u32 {
    16
}

const fn timeout_s() -> u32 {
    10
}

impl Webhook {
    /// Check what the types do not.
    ///
    /// # Errors
    /// The setting, and why it cannot be used; without the URL, which may hold a password.
    pub fn check(&self) -> Result<(), String> {
        let url: Url = self.url.parse().map_err(|_| "url is no URL".to_owned())?;
        let host = url.host_str().unwrap_or_default();
        let is_loopback = host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse()
                .is_ok_and(|address: std::net::IpAddr| address.is_loopback());
        match url.scheme() {
            "https" => {}
            "http" if is_loopback => {}
            _ => return Err("url must be https://, or http:// on loopback".to_owned()),
        }
        for name in &self.types {
            if !EventKind::ALL.iter().any(|kind| kind.as_str() == name) {
                return Err(format!("types: there are no events of type {name:?}"));
            }
        }
        if !(1..=100).contains(&self.max_tries) {
            return Err("max_tries must be 1 to 100".to_owned());
        }
        if !(1..=20).contains(&self.timeout_s) {
            return Err("timeout_s must be 1 to 20".to_owned());
        }
        self.secret().map(drop)?;
        self.client().map(drop)
    }

    /// Whether it gets this event.
    pub fn wants(&self, event: &LoggedEvent) -> bool {
        let kind = event.event.kind.as_str();
        let of = |list: &[String], value: Option<&str>| {
            list.is_empty() || list.iter().any(|one| Some(one.as_str()) == value)
        };
        of(&self.types, Some(kind)) && of(&self.projects, event.owner.as_deref())
    }

    /// The secret, as the file has it now.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn secret(&self) -> Result<Vec<u8>, String> {
        let text = read(&self.secret_file).map_err(|why| format!("secret_file: {why}"))?;
        let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii().to_vec();
        if line.len() < SHORTEST_SECRET {
            return Err(format!("secret_file: its first line has less than {SHORTEST_SECRET} characters"));
        }
        Ok(line)
    }

    /// What sends the requests.
    ///
    /// # Errors
    /// `ca_file` or `pin` cannot be used.
    pub fn client(&self) -> Result<Client, String> {
        let limit = Duration::from_secs(u64::from(self.timeout_s));
        Client::builder()
            .timeout(limit)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .tls_backend_preconfigured(self.tls()?)
            .build()
            .map_err(|error| error.without_url().to_string())
    }

    fn tls(&self) -> Result<ClientConfig, String> {
        if !self.pin.is_empty() {
            let pin = pin(&self.pin).map_err(|why| format!("pin: {why}"))?;
            return client_config("the receiver", Accept::Only(pin)).map_err(|error| error.to_string());
        }
        let file = match self.ca_file.as_os_str().is_empty() {
            true => Path::new("/etc/ssl/certs/ca-certificates.crt"),
            false => &self.ca_file,
        };
        // Without authorities no certificate is accepted: plain HTTP on loopback needs none.
        let roots = match read(file) {
            Ok(pem) => authorities(&pem).map_err(|why| format!("ca_file: {why}"))?,
            Err(why) if !self.ca_file.as_os_str().is_empty() => return Err(format!("ca_file: {why}")),
            Err(_) => rustls::RootCertStore::empty(),
        };
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.map_err(|error| error.to_string())?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}
