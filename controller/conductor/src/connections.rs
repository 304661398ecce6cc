//! Connections to agents, kept open between calls: a handshake costs more than the call it is for.
//!
//! One HTTP client for each certificate, so that a connection that was opened to the agent of one boot is never
//! used for that of another. A client keeps its connections only while they are in use, and a little longer.

use pinned_tls::{Accept, client_config};
use reqwest::{Client, redirect};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A node that is off does not answer at all; its power is then looked at, so this wait is a short one. It
/// is for a new connection to be opened, and for a kept one to show by an acknowledgement that the node is there.
const ABSENT: Duration = Duration::from_secs(5);
/// An idle connection is closed after this: before the agent does it (ironic-python-agent after 10 s, ours after
/// 15 s), so that no call meets a connection that is being closed; after the next poll of a running step.
const IDLE: Duration = Duration::from_secs(8);
/// How many clients are kept. Beyond that, the least recently used one is dropped.
const MOST: usize = 1024;

/// HTTP clients by the certificate they trust.
#[derive(Debug, Clone)]
pub struct Connections {
    /// Limit of one call.
    timeout: Duration,
    kept: Arc<Mutex<HashMap<Accept, Kept>>>,
}

#[derive(Debug)]
struct Kept {
    client: Client,
    used: Instant,
}

impl Connections {
    /// No connections yet. Calls over them end within `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, kept: Arc::default() }
    }

    /// The client that accepts this certificate. Without a certificate it accepts no server, so it can only use plain HTTP.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn to(&self, accept: Accept) -> Result<Client, String> {
        let now = Instant::now();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get_mut(&accept) {
            known.used = now;
            return Ok(known.client.clone());
        }
        let client = self.client(accept.clone())?;
        if kept.len() >= MOST {
            kept.retain(|_, one| now.duration_since(one.used) < IDLE);
        }
        if kept.len() >= MOST
            && let Some(oldest) =
                kept.iter().min_by_key(|(_, one)| one.used).map(|(accept, _)| accept.clone())
        {
            kept.remove(&oldest);
        }
        kept.insert(accept, Kept { client: client.clone(), used: now });
        Ok(client)
    }

    fn client(&self, accept: Accept) -> Result<Client, String> {
        let tls = client_config("the agent", accept).map_err(|error| error.to_string())?;
        Client::builder()
            .timeout(self.timeout)
            .connect_timeout(ABSENT)
            .tcp_user_timeout(ABSENT)
            .pool_idle_timeout(IDLE)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|error| error.without_url().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinned_tls::Pin;

    #[test]
    fn as_many_are_kept_as_there_is_room_for() {
        let connections = Connections::new(Duration::from_secs(1));
        let pin = |number: usize| Accept::Only(Pin::of_der(&number.to_le_bytes()));
        for number in 0..MOST + 3 {
            connections.to(pin(number)).unwrap();
            connections.to(pin(0)).unwrap();
        }
        let kept = connections.kept.lock().unwrap();
        assert_eq!(kept.len(), MOST);
        for (number, there) in [(0, true), (1, false), (3, false), (4, true), (MOST + 2, true)] {
            assert_eq!(kept.contains_key(&pin(number)), there, "{number}");
        }
    }
}
