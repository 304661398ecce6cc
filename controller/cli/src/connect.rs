//! Which controller, and how to trust it.

use crate::client::Client;
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::tls::Trust;
use clap::Args;
use pinned_tls::Pin;
use reqwest::Url;
use std::path::PathBuf;

/// Options of every command.
#[derive(Debug, Args)]
pub struct Connection {
    /// URL of the controller's API. Where it asks who you are: ANNEAL_USERNAME and ANNEAL_PASSWORD in the environment,
    /// or OS_AUTH_TYPE=http_basic with OS_USERNAME and OS_PASSWORD.
    #[arg(
        long,
        global = true,
        env = "ANNEAL_ENDPOINT",
        default_value = "http://127.0.0.1:6385",
        value_name = "URL"
    )]
    endpoint: String,
    /// Accept exactly the certificate with this SHA-256 (of its DER), whatever its issuer.
    #[arg(
        long,
        global = true,
        env = "ANNEAL_PIN",
        value_name = "sha256:HEX",
        conflicts_with_all = ["cacert", "insecure"]
    )]
    pin: Option<Pin>,
    /// Trust the CAs in this PEM file instead of the system's.
    #[arg(long, global = true, env = "ANNEAL_CACERT", value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,
    /// Accept any certificate. An attacker on the network path can then read and change everything.
    #[arg(long, global = true)]
    insecure: bool,
}

impl Connection {
    /// The client these options describe.
    pub fn client(&self) -> Result<Client, Failure> {
        let usage = |reason: String| Failure::Usage(format!("--endpoint {}: {reason}", self.endpoint));
        let endpoint = Url::parse(&self.endpoint).map_err(|error| usage(error.to_string()))?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(usage("must begin with http:// or https://".to_owned()));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            let why = "--endpoint: a URL with a password is seen and logged by many; set ANNEAL_USERNAME and ANNEAL_PASSWORD";
            return Err(Failure::Usage(why.to_owned()));
        }
        let credentials = match Credentials::from_environment()? {
            Some(credentials) => Some(credentials.header_for(&endpoint)?),
            None => None,
        };
        let checked = self.pin.is_some() || self.cacert.is_some();
        if endpoint.scheme() == "http" && checked {
            return Err(usage(
                "is plain HTTP, where no certificate can be checked; write https://".to_owned(),
            ));
        }
        let trust = match (self.pin, &self.cacert) {
            (Some(pin), _) => Trust::Pinned(pin),
            (None, Some(path)) => Trust::authority(path).map_err(Failure::Usage)?,
            (None, None) if self.insecure => Trust::Any,
            (None, None) => Trust::System,
        };
        Client::new(endpoint, trust, credentials)
    }
}
