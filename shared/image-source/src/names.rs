//! The name in a URL becomes an address: the C library's resolver, within a limit in time. In the ramdisk it is the same one:
//! glibc has it in static programs, too, and needs no other file than `/etc/resolv.conf`.

use std::net::SocketAddr;
use std::time::Duration;

/// Where the C library finds its name servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// What the standard library writes before the reason.
const PREFIX: &str = "failed to lookup address information: ";

/// The first address of `host`, in the order of the C library (RFC 6724).
///
/// # Errors
/// A sentence with the name and the servers that were asked.
pub(crate) async fn resolve(host: &str, port: u16, limit: Duration) -> Result<SocketAddr, String> {
    let asked = tokio::time::timeout(limit, tokio::net::lookup_host((host, port))).await;
    let why = match asked {
        Ok(Ok(mut found)) => match found.next() {
            Some(address) => return Ok(address),
            None => "it has no address".to_owned(),
        },
        Ok(Err(error)) => {
            let text = error.to_string();
            text.strip_prefix(PREFIX).unwrap_or(&text).to_owned()
        }
        Err(_) => format!("no answer within {} s", limit.as_secs()),
    };
    let servers = servers(&std::fs::read_to_string(RESOLV_CONF).unwrap_or_default());
    Err(format!("the name {host} cannot be resolved: {why}; {servers}"))
}

/// What a `resolv.conf` says of name servers.
fn servers(text: &str) -> String {
    let of_line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        words.next().filter(|word| *word == "nameserver").and_then(|_| words.next()).map(str::to_owned)
    };
    match text.lines().filter_map(of_line).collect::<Vec<_>>() {
        none if none.is_empty() => {
            "no name server is known (in the ramdisk they come from DHCP or [boot] dns)".to_owned()
        }
        some => format!("asked: {}", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::servers;

    #[test]
    fn servers_are_those_of_resolv_conf() {
        let text =
            "# nameserver 192.0.2.1\nsearch example\nnameserver 192.0.2.2\nnameserver\t2001:db8::2 # x\n";
        assert_eq!(servers(text), "asked: 192.0.2.2, 2001:db8::2");
        assert!(servers("options timeout:2\nnameservers 192.0.2.1\n").starts_with("no name server is known"));
    }
}
