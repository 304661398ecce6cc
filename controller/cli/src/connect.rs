//! Which controller, and how to trust it.

use crate::client::Client;
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::tls::Trust;
use clap::Args;
use pinned_tls::Pin;
use reqwest::Url;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Options of every command.
#[derive(Debug, Args)]
pub struct Connection {
    /// URL of the controller's API, or unix:PATH for its socket. Default: the socket /run/anneal/api.sock if this user may
    /// open it, else http://127.0.0.1:6385. Where the controller has users: ANNEAL_USERNAME and ANNEAL_PASSWORD in the
    /// environment, or OS_AUTH_TYPE=http_basic with OS_USERNAME and OS_PASSWORD. Without users, the operator token is found
    /// on the controller's machine.
    #[arg(long, global = true, env = "ANNEAL_ENDPOINT", value_name = "URL")]
    endpoint: Option<String>,
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

/// The socket of a controller that systemd started.
const SOCKET: &str = "/run/anneal/api.sock";
/// The port of a controller on this machine.
const LOCAL: &str = "http://127.0.0.1:6385";

impl Connection {
    /// The client these options describe.
    pub fn client(&self) -> Result<Client, Failure> {
        let socket = match &self.endpoint {
            Some(endpoint) => endpoint.strip_prefix("unix:").map(|path| path.trim_start_matches("//")),
            None => UnixStream::connect(SOCKET).is_ok().then_some(SOCKET),
        };
        match socket {
            // The host of the URL stands in the requests, and is not connected to.
            Some(path) => self.connect("http://localhost", Some(path.into())),
            None => self.connect(self.endpoint.as_deref().unwrap_or(LOCAL), None),
        }
    }

    /// The same over TCP: what other clients can reach.
    pub fn over_tcp(&self) -> Result<Client, Failure> {
        let endpoint = self.endpoint.as_deref().unwrap_or(LOCAL);
        if endpoint.starts_with("unix:") {
            return Err(Failure::Usage("--endpoint: other clients need a URL, not a socket".to_owned()));
        }
        self.connect(endpoint, None)
    }

    fn connect(&self, url: &str, socket: Option<PathBuf>) -> Result<Client, Failure> {
        let usage = |reason: String| Failure::Usage(format!("--endpoint {url}: {reason}"));
        let endpoint = Url::parse(url).map_err(|error| usage(error.to_string()))?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(usage("must begin with http:// or https://".to_owned()));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            let why = "--endpoint: a URL with a password is seen and logged by many; set ANNEAL_USERNAME and ANNEAL_PASSWORD";
            return Err(Failure::Usage(why.to_owned()));
        }
        let credentials = Credentials::from_environment()?;
        if let Some(credentials) = &credentials {
            credentials.header_for(&endpoint)?;
        }
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
        Client::new(endpoint, socket, trust, credentials)
    }
}
