//! What the site says about connections to BMCs.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Less is no time for a connection and an answer; ipmitool gives a silent BMC up before.
const SHORTEST_REQUEST: Duration = Duration::from_secs(10);

/// `[bmc]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Directory of the files that `redfish_verify_ca` names. Users of the API can have no other file opened.
    pub ca_directory: PathBuf,
    /// Directory of the certificates that the step `enroll_secure_boot_keys` enrolls: `PK.crt`, `KEK.crt`, `db.crt`.
    pub secure_boot_keys_directory: PathBuf,
    /// The only networks in which the controller connects to BMCs; empty: every address.
    pub networks: Vec<IpNet>,
    /// Send passwords over HTTP without TLS to BMCs that are not on loopback.
    pub send_passwords_over_plain_http: bool,
    /// Longest request to a BMC with its answer, and longest run of ipmitool, in seconds: 10 to 30.
    pub request_timeout_s: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ca_directory: "/etc/anneal/bmc-ca".into(),
            secure_boot_keys_directory: "/etc/anneal/secure-boot-keys".into(),
            networks: Vec::new(),
            send_passwords_over_plain_http: false,
            request_timeout_s: crate::LONGEST_REQUEST.as_secs(),
        }
    }
}

impl Settings {
    /// Whether the settings make sense.
    ///
    /// # Errors
    /// The setting that does not, by name.
    pub fn check(&self) -> Result<(), String> {
        let (least, most) = (SHORTEST_REQUEST.as_secs(), crate::LONGEST_REQUEST.as_secs());
        if !(least..=most).contains(&self.request_timeout_s) {
            return Err(format!("bmc.request_timeout_s must be {least} to {most}"));
        }
        Ok(())
    }

    /// [`Self::request_timeout_s`].
    pub fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_timeout_s)
    }

    /// Whether `address` is in one of the networks.
    pub(crate) fn connects_to(&self, address: IpAddr) -> bool {
        // An IPv4 address also as IPv6 writes it (::ffff:192.0.2.1).
        let address = address.to_canonical();
        self.networks.is_empty() || self.networks.iter().any(|network| network.contains(&address))
    }

    /// Whether a password may be sent to `address` without TLS.
    pub(crate) fn sends_password_plainly_to(&self, address: IpAddr) -> bool {
        self.send_passwords_over_plain_http || address.to_canonical().is_loopback()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_limit_addresses_of_both_families() {
        assert!(Settings::default().connects_to(address("203.0.113.9")), "unset: every address");
        let networks = ["192.0.2.0/28", "2001:db8:1::/48"].map(|text| text.parse().unwrap());
        let settings = Settings { networks: networks.to_vec(), ..Settings::default() };
        for inside in ["192.0.2.0", "192.0.2.15", "::ffff:192.0.2.1", "2001:db8:1:2::3"] {
            assert!(settings.connects_to(address(inside)), "{inside}");
        }
        for outside in ["192.0.2.16", "127.0.0.1", "::ffff:192.0.2.16", "2001:db8:2::1", "::1"] {
            assert!(!settings.connects_to(address(outside)), "{outside}");
        }
    }

    #[test]
    fn a_password_goes_over_plain_http_to_loopback_only() {
        let mut settings = Settings::default();
        for loopback in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(settings.sends_password_plainly_to(address(loopback)), "{loopback}");
        }
        assert!(!settings.sends_password_plainly_to(address("192.0.2.1")));
        settings.send_passwords_over_plain_http = true;
        assert!(settings.sends_password_plainly_to(address("192.0.2.1")));
    }
}
