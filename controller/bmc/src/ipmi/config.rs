//! `driver_info` of the `ipmi` driver.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::driver_info::Reader;
use crate::secret::Secret;
use crate::{BmcError, Settings};

pub(crate) const NAME: &str = "ipmi";

pub(crate) const PROPERTIES: &[(&str, &str)] = &[
    ("ipmi_address", "IP address or hostname of the node's BMC. Required."),
    ("ipmi_port", "Remote IPMI RMCP port, 1 to 65535. Optional; default 623."),
    ("ipmi_username", "Username; default is NULL user. Optional."),
    ("ipmi_password", "Password, at most 20 bytes (IPMI 2.0). Optional."),
    (
        "ipmi_priv_level",
        "Privilege level: ADMINISTRATOR, OPERATOR, USER or CALLBACK. Optional; default ADMINISTRATOR.",
    ),
    (
        "ipmi_cipher_suite",
        "The number of the cipher suite to use, 0 to 17. Optional; default 17, and 3 for a BMC that has no 17.",
    ),
];

/// One BMC, as one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) address: String,
    pub(crate) port: u64,
    pub(crate) username: Option<String>,
    pub(crate) password: Secret,
    pub(crate) privilege: &'static str,
    /// `None`: 17, then 3.
    pub(crate) cipher: Option<u64>,
    /// Where the site lets the controller connect.
    pub(crate) settings: Arc<Settings>,
}

const PRIVILEGES: [&str; 4] = ["ADMINISTRATOR", "OPERATOR", "USER", "CALLBACK"];

/// Longest password of IPMI 2.0 (specification 2.0, section 22.30).
const LONGEST_PASSWORD: usize = 20;

pub(crate) fn parse(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<Config, BmcError> {
    let mut reader = Reader::new(NAME, info);
    let address = reader.required("ipmi_address");
    // It becomes an argument of a command.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_' | '%');
    if address.starts_with('-') || !address.chars().all(plain) {
        reader.invalid::<()>("ipmi_address", "must be an IP address or a host name");
    }
    if literal(&address).is_some_and(|ip| !settings.connects_to(ip)) {
        reader.invalid::<()>("ipmi_address", "is in none of the networks of bmc.networks");
    }
    let port = reader.number("ipmi_port", 1..=65_535).unwrap_or(623);
    let username = reader.text("ipmi_username");
    if username.as_deref().is_some_and(|name| name.starts_with('-') || name.len() > 16) {
        reader.invalid::<()>("ipmi_username", "must be at most 16 bytes and not begin with '-'");
    }
    let password = Secret::new(reader.text("ipmi_password").unwrap_or_default());
    if password.expose().len() > LONGEST_PASSWORD {
        reader.invalid::<()>("ipmi_password", "is longer than 20 bytes");
    }
    let level = reader.text("ipmi_priv_level").unwrap_or_else(|| PRIVILEGES[0].to_owned());
    let privilege = PRIVILEGES.into_iter().find(|known| known.eq_ignore_ascii_case(&level));
    if privilege.is_none() {
        reader.invalid::<()>("ipmi_priv_level", "must be one of ADMINISTRATOR, OPERATOR, USER, CALLBACK");
    }
    let cipher = reader.number("ipmi_cipher_suite", 0..=17);
    let privilege = privilege.unwrap_or(PRIVILEGES[0]);
    let settings = settings.clone();
    reader.finish(Config { address, port, username, password, privilege, cipher, settings })
}

/// The IP address that the text is, whatever its zone; `None`: it is a name.
pub(crate) fn literal(address: &str) -> Option<IpAddr> {
    address.split('%').next().and_then(|address| address.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_and_numbers_as_strings() {
        let info = json!({"ipmi_address": "10.0.0.5", "ipmi_port": "6230", "ipmi_cipher_suite": 3});
        let config = parse(info.as_object().unwrap(), &Arc::default()).unwrap();
        assert_eq!((config.port, config.cipher, config.privilege), (6230, Some(3), "ADMINISTRATOR"));
    }

    #[test]
    fn the_site_limits_where_a_connection_goes() {
        let networks = ["192.0.2.0/24", "fe80::/10"].map(|text| text.parse().unwrap()).to_vec();
        let settings = Arc::new(Settings { networks, ..Settings::default() });
        for (address, allowed) in [
            ("192.0.2.7", true),
            ("fe80::1%eth0", true),
            ("198.51.100.7", false),
            ("2001:db8::1%eth0", false),
            ("bmc.example", true),
        ] {
            let info = json!({"ipmi_address": address});
            let outcome = parse(info.as_object().unwrap(), &settings).map(drop);
            assert_eq!(outcome.is_ok(), allowed, "{address}");
            let named =
                |error: BmcError| error.to_string().contains("ipmi_address is in none of the networks");
            assert!(outcome.err().is_none_or(named), "{address}");
        }
    }

    #[test]
    fn every_fault_is_named_and_no_secret_is() {
        let info = json!({"ipmi_address": "-I;rm", "ipmi_port": 0, "ipmi_cipher_suite": "best",
            "ipmi_password": "hunter2hunter2hunter2", "ipmi_priv_level": "ROOT", "ipmi_username": "-x"});
        let text = parse(info.as_object().unwrap(), &Arc::default()).unwrap_err().to_string();
        for key in PROPERTIES.iter().map(|(key, _)| key) {
            assert!(text.contains(key), "{key} in {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
        let text = parse(&Map::new(), &Arc::default()).unwrap_err().to_string();
        assert!(text.contains("missing ipmi_address"), "{text}");
    }
}
