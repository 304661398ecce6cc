//! The URL at which an agent wants to be called. The controller sends it the node's secrets, so it must be the agent's own
//! address, and only a port of it.

use crate::app::Settings;
use crate::error::ApiError;
use axum::http::Uri;
use std::net::{IpAddr, Ipv4Addr};

/// Longest URL that is kept, in bytes.
const URL_MAX: usize = 1024;

/// A URL with the right parts.
#[derive(Debug, PartialEq, Eq)]
pub struct CallbackUrl {
    /// Whether it is https.
    pub secure: bool,
    host: String,
}

/// Where a heartbeat comes from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sender {
    /// The address of its connection; `None` in tests without a socket.
    pub peer: Option<IpAddr>,
    /// The address that fetched the boot script: the node's lease.
    pub lease: Option<IpAddr>,
}

impl CallbackUrl {
    /// Read http or https, a host and a port: no user, path, query or fragment. Ironic also takes an empty one, from agents
    /// that only send heartbeats; they could not be sent commands.
    ///
    /// # Errors
    /// 400 in Ironic's words.
    pub fn parse(url: &str) -> Result<Self, ApiError> {
        let bad = || ApiError::invalid("An issue with the supplied \"callback_url\" has been detected.");
        // The parser drops fragments.
        if url.len() > URL_MAX || url.contains('#') {
            return Err(bad());
        }
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        let has_path = !matches!(uri.path(), "" | "/");
        if authority.host().is_empty()
            || authority.as_str().contains('@')
            || has_path
            || uri.query().is_some()
        {
            return Err(bad());
        }
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(bad()),
        };
        Ok(Self { secure, host: authority.host().trim_matches(['[', ']']).to_owned() })
    }

    /// Whether the sender may be called there.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, sender: Sender, settings: &Settings) -> Result<(), String> {
        let Some(peer) = sender.peer.map(|peer| peer.to_canonical()) else { return Ok(()) };
        let host: IpAddr = self.host.parse().map_err(|_| format!("{} is no IP address", self.host))?;
        let host = host.to_canonical();
        if host.is_loopback() && peer.is_loopback() {
            return Ok(());
        }
        if host.is_loopback() || host.is_unspecified() || host.is_multicast() || is_link_local(host) {
            return Err(format!("{host} is no address of another host"));
        }
        if settings.own_addresses.contains(&host) {
            return Err(format!("{host} is an address of this controller"));
        }
        let listed = settings.callback_networks.iter().any(|network| network.contains(&host));
        if host == peer || sender.lease == Some(host) || listed {
            return Ok(());
        }
        Err(format!("{host} is not where the heartbeat comes from ({peer}), nor in agent.callback_networks"))
    }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local() || address == Ipv4Addr::BROADCAST,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callback_urls() {
        assert!(CallbackUrl::parse("https://[2001:db8::1]:9999").unwrap().secure);
        assert!(!CallbackUrl::parse("http://192.0.2.7:9999/").unwrap().secure);
        for bad in [
            "",
            "x",
            "ftp://x",
            "http://",
            "//host",
            "http://user:pw@host/",
            "http://h/?x=1",
            "http://a b/",
            "https://192.0.2.7:9999/redfish/v1#",
            "https://192.0.2.7:9999/#",
            "https://192.0.2.7:9999#x",
            "https://192.0.2.7:9999/v1",
        ] {
            assert!(CallbackUrl::parse(bad).is_err(), "{bad}");
        }
        assert!(CallbackUrl::parse(&format!("http://{}", "a".repeat(URL_MAX))).is_err());
    }

    #[test]
    fn an_agent_is_called_only_where_it_speaks_from() {
        let settings = Settings {
            callback_networks: vec!["198.51.100.0/24".parse().unwrap(), "127.0.0.0/8".parse().unwrap()],
            own_addresses: vec!["198.51.100.1".parse().unwrap(), "192.0.2.1".parse().unwrap()],
            ..Settings::default()
        };
        let lease = Some("192.0.2.8".parse().unwrap());
        let check = |host: &str, peer: &str| {
            let url = CallbackUrl::parse(&format!("https://{host}:9999")).unwrap();
            url.check(Sender { peer: peer.parse().ok(), lease }, &settings)
        };
        for (host, peer) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7", "::ffff:192.0.2.7"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("192.0.2.8", "192.0.2.7"),
            ("198.51.100.9", "192.0.2.7"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.5"),
        ] {
            assert_eq!(check(host, peer), Ok(()), "{host} from {peer}");
        }
        for (host, peer, why) in [
            ("192.0.2.9", "192.0.2.7", "not where the heartbeat comes from (192.0.2.7)"),
            ("127.0.0.1", "192.0.2.7", "no address of another host"),
            ("[::1]", "192.0.2.7", "no address of another host"),
            ("0.0.0.0", "127.0.0.1", "no address of another host"),
            ("169.254.169.254", "169.254.169.254", "no address of another host"),
            ("[fe80::1]", "fe80::1", "no address of another host"),
            ("[::ffff:127.0.0.1]", "192.0.2.7", "no address of another host"),
            ("192.0.2.1", "192.0.2.1", "address of this controller"),
            ("198.51.100.1", "192.0.2.7", "address of this controller"),
            ("node.example", "192.0.2.7", "no IP address"),
        ] {
            let error = check(host, peer).unwrap_err();
            assert!(error.contains(why), "{host} from {peer}: {error}");
        }
    }
}
