//! `driver_info` of the `redfish` driver.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Url;
use serde_json::{Map, Value};

use super::resolver::NOT_PLAINLY;
use crate::driver_info::Reader;
use crate::secret::Secret;
use crate::{BmcError, BootDevice, Settings};

pub(crate) const NAME: &str = "redfish";

pub(crate) const PROPERTIES: &[(&str, &str)] = &[
    (
        "redfish_address",
        "The URL address to the Redfish controller: scheme (default https), host and port. Required.",
    ),
    (
        "redfish_system_id",
        "The canonical path to the ComputerSystem resource, e.g. /redfish/v1/Systems/1. Required if the controller has more than one system.",
    ),
    ("redfish_username", "User account with admin/server-profile access privilege. Optional."),
    ("redfish_password", "User account password. Optional."),
    (
        "redfish_verify_ca",
        "true: verify the certificate with the CAs of the host; false: ignore it; or the plain name of a file of PEM certificates (of CAs, or the BMC's own) in the directory that the controller's setting bmc.ca_directory names. Optional; default true.",
    ),
    ("redfish_auth_type", "basic, session or auto (session, then basic). Optional; default auto."),
];

/// Devices with a Redfish name (`BootSource`, ComputerSystem schema).
pub(crate) const DEVICES: &[BootDevice] = &[
    BootDevice::Pxe,
    BootDevice::Disk,
    BootDevice::Cdrom,
    BootDevice::Bios,
    BootDevice::Floppy,
    BootDevice::Usb,
    BootDevice::UefiHttp,
];

/// How the BMC's certificate is judged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Verify {
    System,
    Nothing,
    File(PathBuf),
}

/// How to show who we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum AuthType {
    Auto,
    Session,
    Basic,
}

/// Everything that decides which BMC is spoken to, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Endpoint {
    pub(crate) base: Url,
    pub(crate) login: Option<(String, Secret)>,
    pub(crate) auth: AuthType,
    pub(crate) verify: Verify,
    /// Where the site lets the controller connect, and how.
    pub(crate) settings: Arc<Settings>,
}

/// One node's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) endpoint: Endpoint,
    /// Path of the ComputerSystem; `None`: the only one there is.
    pub(crate) system: Option<String>,
}

impl Endpoint {
    /// For errors and logs; never holds credentials (refused by [`parse`]).
    pub(crate) fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The IP address that is the host; `None`: the host is a name.
    fn ip(&self) -> Option<IpAddr> {
        self.base.host_str()?.trim_matches(['[', ']']).parse().ok()
    }

    /// Whether a password is sent without TLS.
    pub(crate) fn sends_password_plainly(&self) -> bool {
        self.login.is_some() && self.base.scheme() == "http"
    }

    /// Why the site does not allow this BMC; a name is checked when it is resolved.
    fn refused(&self) -> Option<&'static str> {
        let ip = self.ip()?;
        if !self.settings.connects_to(ip) {
            return Some("is in none of the networks of bmc.networks");
        }
        let plainly = self.sends_password_plainly() && !self.settings.sends_password_plainly_to(ip);
        plainly.then_some(NOT_PLAINLY)
    }
}

/// The host of the BMC, a name or an address without brackets.
pub(crate) fn host(info: &Map<String, Value>) -> Option<String> {
    let base = base_url(info.get("redfish_address")?.as_str()?).ok()??;
    Some(base.host_str()?.trim_matches(['[', ']']).to_owned())
}

pub(crate) fn parse(info: &Map<String, Value>, settings: &Arc<Settings>) -> Result<Config, BmcError> {
    let mut reader = Reader::new(NAME, info);
    let address = reader.required("redfish_address");
    let base = base_url(&address).unwrap_or_else(|why| {
        if !address.is_empty() {
            reader.invalid::<()>("redfish_address", why);
        }
        None
    });
    let username = reader.text("redfish_username");
    let password = reader.text("redfish_password");
    if username.is_none() && password.is_some() {
        reader.invalid::<()>("redfish_username", "is missing while redfish_password is given");
    }
    let system = reader.text("redfish_system_id");
    if system.as_deref().is_some_and(|path| !is_path(path)) {
        reader.invalid::<()>("redfish_system_id", "must be a path such as /redfish/v1/Systems/1");
    }
    let auth = match reader.text("redfish_auth_type").as_deref() {
        None | Some("auto") => AuthType::Auto,
        Some("session") => AuthType::Session,
        Some("basic") => AuthType::Basic,
        Some(_) => {
            reader.invalid::<()>("redfish_auth_type", "must be one of auto, session, basic");
            AuthType::Auto
        }
    };
    let verify = verify(&mut reader, &settings.ca_directory);
    let login = username.map(|user| (user, Secret::new(password.unwrap_or_default())));
    // Without a base URL finish() refuses; the placeholder is never used.
    let base = base.unwrap_or_else(unused_url);
    let endpoint = Endpoint { base, login, auth, verify, settings: settings.clone() };
    if let Some(why) = endpoint.refused() {
        reader.invalid::<()>("redfish_address", why);
    }
    reader.finish(Config { endpoint, system })
}

fn unused_url() -> Url {
    Url::parse("https://invalid.").expect("a constant URL")
}

/// `Err` is why not.
fn base_url(address: &str) -> Result<Option<Url>, &'static str> {
    let text = if address.contains("://") { address.to_owned() } else { format!("https://{address}") };
    let mut url = Url::parse(&text).map_err(|_| "is not a URL")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must be an http or https URL");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain credentials; use redfish_username and redfish_password");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("contains no host");
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
        return Err("must be scheme, host and port only; a path belongs into redfish_system_id");
    }
    url.set_path("/");
    Ok(Some(url))
}

/// A path on the BMC itself: neither a URL nor a reference to another host.
pub(crate) fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && !text.starts_with("//")
        && !text.contains("..")
        && !text.contains(['\\', '#'])
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Booleans also as the words that Ironic takes (`oslo.utils.strutils`).
fn verify(reader: &mut Reader<'_>, directory: &Path) -> Verify {
    let text = match reader.value("redfish_verify_ca") {
        None | Some(Value::Bool(true)) => return Verify::System,
        Some(Value::Bool(false)) => return Verify::Nothing,
        Some(_) => reader.text("redfish_verify_ca").unwrap_or_default(),
    };
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "yes" | "y" | "on" | "1" | "" => Verify::System,
        "false" | "f" | "no" | "n" | "off" | "0" => Verify::Nothing,
        _ if is_file_name(&text) => Verify::File(directory.join(text)),
        _ => {
            // The same words for every other text: they must not reveal which files the host has.
            reader.invalid::<()>(
                "redfish_verify_ca",
                "must be true, false, or the plain name of a file in the directory of bmc.ca_directory, not a path",
            );
            Verify::System
        }
    }
}

/// The plain name of a file: it leads out of no directory, and into none.
fn is_file_name(text: &str) -> bool {
    text.len() <= 255
        && !text.starts_with('.')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ErrorKind;

    fn parsed(info: Value) -> Result<Config, BmcError> {
        parse(info.as_object().unwrap(), &Arc::default())
    }

    #[test]
    fn defaults_and_spellings_of_ironic() {
        let config = parsed(json!({"redfish_address": "10.0.0.5"})).unwrap();
        assert_eq!(config.endpoint.address(), "https://10.0.0.5");
        assert_eq!((config.endpoint.verify, config.endpoint.login), (Verify::System, None));
        for (value, verify) in [
            (json!(false), Verify::Nothing),
            (json!("False"), Verify::Nothing),
            (json!("true"), Verify::System),
            (json!("rack-7_bmc.pem"), Verify::File(PathBuf::from("/etc/anneal/bmc-ca/rack-7_bmc.pem"))),
        ] {
            let info = json!({"redfish_address": "http://[::1]:8000/", "redfish_verify_ca": value});
            assert_eq!(parsed(info).unwrap().endpoint.verify, verify);
        }
    }

    #[test]
    fn every_fault_is_named_and_no_secret_is() {
        let error = parsed(json!({
            "redfish_system_id": "Systems/1", "redfish_password": "hunter2", "redfish_auth_type": "magic",
        }))
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = error.to_string();
        for key in ["missing redfish_address", "redfish_system_id", "redfish_username", "redfish_auth_type"] {
            assert!(text.contains(key), "{text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
        for bad in
            ["https://u:hunter2@10.0.0.5", "ftp://10.0.0.5", "https://", "https://a/redfish/v1", "ht tp"]
        {
            let text = parsed(json!({"redfish_address": bad})).unwrap_err().to_string();
            assert!(text.contains("redfish_address") && !text.contains("hunter2"), "{bad}: {text}");
        }
    }

    #[test]
    fn the_site_limits_where_a_connection_goes_and_a_password_without_tls() {
        let limited = |settings: &Settings, address: &str, user: Option<&str>| {
            let info = json!({"redfish_address": address, "redfish_username": user});
            parse(info.as_object().unwrap(), &Arc::new(settings.clone())).err().map(|error| error.to_string())
        };
        let outside = Settings { networks: vec!["192.0.2.0/24".parse().unwrap()], ..Settings::default() };
        assert_eq!(limited(&outside, "192.0.2.7", Some("root")), None);
        // Names are checked when they are resolved.
        assert_eq!(limited(&outside, "bmc.example", Some("root")), None);
        for address in
            ["198.51.100.7", "https://[2001:db8::1]", "https://3325256711", "http://[::ffff:c633:6407]"]
        {
            let why = limited(&outside, address, None).unwrap();
            assert!(why.contains("redfish_address is in none of the networks of bmc.networks"), "{why}");
        }
        let mut settings = Settings::default();
        for address in ["http://127.0.0.1:8000", "http://[::1]", "https://192.0.2.7", "http://bmc.example"] {
            assert_eq!(limited(&settings, address, Some("root")), None, "{address}");
        }
        assert_eq!(limited(&settings, "http://192.0.2.7", None), None, "there is no password");
        let why = limited(&settings, "http://192.0.2.7", Some("root")).unwrap();
        assert!(
            why.contains("redfish_address is not on loopback, and no password is sent there without TLS"),
            "{why}"
        );
        settings.send_passwords_over_plain_http = true;
        assert_eq!(limited(&settings, "http://192.0.2.7", Some("root")), None);
    }

    #[test]
    fn verify_ca_names_no_file_outside_its_directory() {
        let refused = |value: &str| {
            let info = json!({"redfish_address": "10.0.0.5", "redfish_verify_ca": value});
            parsed(info).map(|config| config.endpoint.verify).unwrap_err().to_string()
        };
        let text = refused("/etc/shadow");
        assert!(text.contains("redfish_verify_ca must be true, false, or the plain name"), "{text}");
        for other in ["/dev/zero", "/nonexistent", "../shadow", "a/b.pem", "a\\b", "..", ".", ".pem", "ä.pem"]
        {
            assert_eq!(refused(other), text, "{other}");
        }
        assert_eq!(refused(&"a".repeat(256)), text);
    }

    #[test]
    fn a_path_stays_on_the_bmc() {
        assert!(is_path("/redfish/v1/Systems/437XR1138R2"));
        for bad in ["", "redfish/v1", "//evil/redfish", "https://evil/", "/a/../b", "/a b", "/a\n", "/\\evil"]
        {
            assert!(!is_path(bad), "{bad:?}");
        }
    }
}
