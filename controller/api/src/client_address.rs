//! The address that a request came from.

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, header};
use http_server::ClientAddress;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// The address of the client, where the server has noted it.
pub(crate) fn of(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ClientAddress>().map(|client| client.0)
}

/// Put the client's own address in the place of a proxy's: the last one in `Forwarded` (RFC 7239) that is no trusted proxy.
/// The header of any other client changes nothing.
pub(crate) fn behind_proxies(request: &mut Request, trusted: &[IpNet]) {
    let Some(peer) = of(request.extensions()).map(|peer| peer.to_canonical()) else { return };
    let client = forwarded(request.headers(), peer, trusted);
    if client != peer {
        request.extensions_mut().insert(ClientAddress(client));
    }
}

fn forwarded(headers: &HeaderMap, peer: IpAddr, trusted: &[IpNet]) -> IpAddr {
    let is_proxy = |address: &IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut client = peer;
    let values: Vec<_> = headers.get_all(header::FORWARDED).iter().collect();
    for value in values.into_iter().rev() {
        let Ok(text) = value.to_str() else { return client };
        for element in text.rsplit(',') {
            if !is_proxy(&client) {
                return client;
            }
            // A proxy that does not say whom it speaks for speaks for itself.
            let Some(address) = element.split(';').find_map(sender) else { return client };
            client = address;
        }
    }
    client
}

/// The address in `for=192.0.2.43`, `for="[2001:db8::17]:4711"`.
fn sender(pair: &str) -> Option<IpAddr> {
    let (name, value) = pair.trim().split_once('=')?;
    let value = value.trim().trim_matches('"');
    let address = value.parse::<SocketAddr>().map(|socket| socket.ip());
    let address = address.ok().or_else(|| value.trim_matches(['[', ']']).parse().ok());
    address.filter(|_| name.eq_ignore_ascii_case("for")).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_say_whom_they_speak_for() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        let client = |values: &[&str], peer: &str| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::FORWARDED, value.parse().unwrap());
            }
            forwarded(&headers, peer.parse().unwrap(), &trusted).to_string()
        };
        assert_eq!(client(&[], "10.0.0.1"), "10.0.0.1");
        assert_eq!(client(&["for=192.0.2.7"], "10.0.0.1"), "192.0.2.7");
        assert_eq!(client(&["For=\"[2001:db8::7]:4711\";proto=https"], "10.0.0.1"), "2001:db8::7");
        assert_eq!(client(&["for=192.0.2.9, for=192.0.2.7"], "10.0.0.1"), "192.0.2.7", "the last counts");
        assert_eq!(client(&["for=192.0.2.7, for=10.0.0.2"], "10.0.0.1"), "192.0.2.7");
        assert_eq!(client(&["for=192.0.2.7", "for=10.0.0.2:80"], "10.0.0.1"), "192.0.2.7");
        assert_eq!(client(&["for=192.0.2.7"], "192.0.2.1"), "192.0.2.1", "no proxy of ours");
        assert_eq!(client(&["for=_hidden"], "10.0.0.1"), "10.0.0.1");
        assert_eq!(client(&["by=192.0.2.7"], "10.0.0.1"), "10.0.0.1");
    }
}
