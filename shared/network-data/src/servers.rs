//! Servers that a network names: of names and of time.

use super::json::{list, text};
use agent_protocol::boot_medium::MOST_SERVERS;
use serde_json::Value;
use std::net::IpAddr;

/// The first few of each kind.
#[derive(Default)]
pub(super) struct Servers {
    pub(super) dns: Vec<IpAddr>,
    pub(super) ntp: Vec<IpAddr>,
}

impl Servers {
    /// The name servers of a route.
    pub(super) fn add_of_route(&mut self, route: &Value) -> Result<(), String> {
        add(&mut self.dns, route, "dns", "a name server")
    }

    /// The servers of the whole.
    pub(super) fn add(&mut self, data: &Value) -> Result<(), String> {
        self.add_of_route(data)?;
        add(&mut self.ntp, data, "ntp", "a time server")
    }
}

fn add(to: &mut Vec<IpAddr>, of: &Value, kind: &str, what: &str) -> Result<(), String> {
    for service in list(of, "services").filter(|service| service["type"] == kind) {
        let given = text(service, "address")?;
        let server: IpAddr = given.parse().map_err(|_| format!("'{given}' is no address of {what}"))?;
        if to.len() < MOST_SERVERS && !to.contains(&server) {
            to.push(server);
        }
    }
    Ok(())
}
