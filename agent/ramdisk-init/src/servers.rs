//! What the boot parameters say of servers.

use std::net::IpAddr;

/// Servers that the boot parameters name.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    /// Name servers, for where neither a lease nor the boot medium names any.
    pub dns: Vec<IpAddr>,
    /// Names or addresses of time servers.
    pub ntp: Vec<String>,
    /// Whether a controller has an address of IPv6: then an address by router advertisements, which the kernel hears, is as good as
    /// a lease.
    pub has_ipv6_controller: bool,
}
