//! An agent's way to its controllers: the one that booted it, and when that does not answer the others that it knows of.

use crate::firmware::CommandLine;
use crate::journal::What;
use crate::machine::Machine;
use anyhow::{Context, Result, anyhow, ensure};
use bench::client::{Answer, Route, send_at};
use hyper::Method;
use pinned_tls::{Accept, Pin, client_config};
use rustls::client::Resumption;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// From connecting to the last byte of an answer. Then another controller is tried, if there is one.
const ANSWER: Duration = Duration::from_secs(10);

/// Where a controller serves agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub address: SocketAddr,
    /// The only certificate that it may show; `None`: plain HTTP.
    pub pin: Option<Pin>,
}

impl Endpoint {
    /// Those of URLs with commas between them, each with the pin at its place.
    ///
    /// # Errors
    /// Those of [`Endpoint::read`].
    pub fn list(urls: &str, pins: Option<&str>) -> Result<Vec<Self>> {
        let mut pins = pins.into_iter().flat_map(|pins| pins.split(','));
        urls.split(',').map(|url| Self::read(url, pins.next())).collect()
    }

    /// Of this URL, with this pin.
    ///
    /// # Errors
    /// When it names no IP address and port, or https without a pin.
    pub fn read(url: &str, pin: Option<&str>) -> Result<Self> {
        let url = url.trim_end_matches('/');
        let (scheme, address) = url.split_once("://").with_context(|| format!("no URL: {url}"))?;
        let pin = match scheme {
            "https" => Some(
                pin.with_context(|| format!("no pin for {url}"))?.parse().map_err(|bad| anyhow!("{bad}"))?,
            ),
            _ => None,
        };
        Ok(Self { address: address.parse().with_context(|| url.to_owned())?, pin })
    }
}

/// The controllers that an agent knows of.
pub struct Contact {
    machine: Arc<Machine>,
    nonce: String,
    routes: Vec<(Endpoint, Route)>,
    at: usize,
}

impl Contact {
    /// The controllers that the boot script names, the one that it is from first, and those that the simulator was started with.
    ///
    /// # Errors
    /// When rustls refuses its own defaults.
    pub fn new(machine: Arc<Machine>, line: &CommandLine) -> Result<Self> {
        let known = [&line.controllers[..], &machine.shared.setup.controllers].concat();
        let mut contact = Self { machine, nonce: line.nonce.clone(), routes: Vec::new(), at: 0 };
        known.into_iter().try_for_each(|endpoint| contact.add(endpoint))?;
        Ok(contact)
    }

    fn add(&mut self, endpoint: Endpoint) -> Result<()> {
        if self.routes.iter().any(|(known, _)| *known == endpoint) {
            return Ok(());
        }
        let tls = endpoint.pin.map(|pin| client_config("the controller", Accept::Only(pin))).transpose()?;
        let tls = tls.map(|mut config| {
            // An agent has few controllers, and there are many agents.
            config.resumption = Resumption::in_memory_sessions(4);
            TlsConnector::from(Arc::new(config))
        });
        let nonce = Some(self.nonce.clone());
        let route = Route { to: endpoint.address, from: self.machine.address, tls, nonce };
        self.routes.push((endpoint, route));
        Ok(())
    }

    /// The answer, in this microversion, of the first controller that gives one, beginning with the one that gave the last.
    ///
    /// # Errors
    /// When none does.
    pub async fn ask(&mut self, version: &str, method: Method, path: &str, body: Vec<u8>) -> Result<Answer> {
        let mut failed = anyhow!("no controller is known");
        for turn in 0..self.routes.len() {
            let at = (self.at + turn) % self.routes.len();
            match self.ask_one(at, version, method.clone(), path, body.clone()).await {
                Ok(answer) => {
                    if at != self.at {
                        self.machine.note(What::Turned { to: self.routes[at].0.address.to_string() });
                        self.at = at;
                    }
                    return Ok(answer);
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn ask_one(
        &self,
        at: usize,
        version: &str,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Answer> {
        let route = &self.routes[at].1;
        let (status, body) = timeout(ANSWER, send_at(route, version, method, path, body)).await??;
        ensure!(status < 500, "{} answers {status}", route.to);
        Ok((status, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_known_by_its_url_and_its_pin() {
        let pin = format!("sha256:{}", "0a".repeat(32));
        let read = Endpoint::read("https://10.99.1.2:6385", Some(&pin)).unwrap();
        assert_eq!(read, Endpoint { address: "10.99.1.2:6385".parse().unwrap(), pin: pin.parse().ok() });
        assert_eq!(Endpoint::read("http://127.0.0.1:1", None).unwrap().pin, None);
        let other = format!("sha256:{}", "0b".repeat(32));
        let (urls, pins) = ("https://10.99.1.2:6385,https://10.99.2.2:6385", format!("{pin},{other}"));
        let both = Endpoint::list(urls, Some(&pins)).unwrap();
        assert_eq!((both.len(), &both[0], both[1].pin), (2, &read, other.parse().ok()));
        assert!(Endpoint::list(urls, Some(&pin)).is_err(), "the second has no pin");
        for bad in ["", "127.0.0.1:1", "https://127.0.0.1:1", "http://name:1"] {
            assert!(Endpoint::read(bad, None).is_err(), "{bad}");
        }
    }
}
