//! Settings that are more than one value.

use crate::http::ApiUrl;
use ramdisk_init::Exit;
use std::net::IpAddr;
use std::time::Duration;

/// In-band inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Tried in order until one answers; never empty.
    pub urls: Vec<ApiUrl>,
    /// What is collected in addition to the inventory, by the names of ironic-python-agent's collectors.
    pub collectors: Vec<String>,
    /// Wait after the first try that failed; later waits are longer.
    pub first_wait: Duration,
    /// Put the LLDP neighbours into the inventory too, as ironic-python-agent does with `ipa-collect-lldp`.
    pub collect_lldp: bool,
    /// How long neighbours are listened for.
    pub lldp_time: Duration,
}

/// The boot of a machine that no node is known for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscoveryBoot {
    /// How long it waits for an operator.
    pub wait: Duration,
    /// How it ends then, or once an operator rejects it.
    pub after: Exit,
}

/// Host and port that a controller is to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertise {
    /// Host.
    pub host: IpAddr,
    /// Port; that of the listener when it is not given.
    pub port: Option<u16>,
}
