//! A node's `network_data` as the ramdisk takes it. What the ramdisk cannot configure is refused by name, before the node is
//! touched.

mod ip;
mod json;
mod links;
mod servers;
#[cfg(test)]
mod tests;

use agent_protocol::boot_medium::StaticNetwork;
use json::{list, text};
use links::Links;
use serde_json::Value;
use servers::Servers;

/// The network that `network_data` describes (links, networks, services); `None` where it describes none.
///
/// # Errors
/// What in it is wrong, or is not supported: DHCPv6, VLANs on VLANs.
pub fn static_network(data: &Value) -> Result<Option<StaticNetwork>, String> {
    if data.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(None);
    }
    let mut links = Links::of(data)?;
    let mut servers = Servers::default();
    for network in list(data, "networks") {
        ip::add(links.ip_of(text(network, "link")?)?, network)?;
        for route in list(network, "routes") {
            servers.add_of_route(route)?;
        }
    }
    servers.add(data)?;
    let interfaces = links.used()?;
    if interfaces.is_empty() {
        return Err("it has links, but no network".to_owned());
    }
    Ok(Some(StaticNetwork { interfaces, dns: servers.dns, ntp: servers.ntp }))
}
