//! What the values of settings mean.

use super::error::{ConfigError, bad};
use super::sources::Values;
use super::types::{Advertise, DiscoveryBoot, Inspection};
use crate::http::ApiUrl;
use crate::tls::Trust;
use crate::token::Token;
use agent_protocol::boot_medium::is_time_server;
use mac::{Mac, MacError};
use ramdisk_init::Exit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Port of ironic-python-agent.
const PORT: u16 = 9999;
const LISTEN_HOST: &str = "(ipa-listen-host)";
const LISTEN_PORT: &str = "(ipa-listen-port)";
pub(super) const ADVERTISE_PORT: &str = "(ipa-advertise-port)";
pub(super) const REQUEST_ID: &str = "(ipa-global-request-id)";
/// As ironic-python-agent.
const INSPECTION_WAIT: Duration = Duration::from_secs(5);

/// As ironic-python-agent; switches announce themselves every 30 s by default.
const LLDP_TIME: Duration = Duration::from_secs(30);

pub(super) fn last<'a>(values: &'a Values, flag: &str) -> Option<&'a str> {
    values.get(flag)?.last().map(String::as_str)
}

pub(super) fn all<'a>(values: &'a Values, flag: &str) -> &'a [String] {
    values.get(flag).map_or(&[], Vec::as_slice)
}

/// Ironic boots a ramdisk that is only to inspect its node without naming an API.
pub(super) fn api_urls(values: &Values, may_be_none: bool) -> Result<Vec<ApiUrl>, ConfigError> {
    let urls = urls(values, "--api-url")?;
    if urls.is_empty() && !may_be_none {
        return Err(bad("--api-url", "no controller is named (kernel: ipa-api-url)"));
    }
    Ok(urls)
}

/// Like ironic-python-agent: collectors without a callback URL mean the API's own.
pub(super) fn inspection(values: &Values) -> Result<Option<Inspection>, ConfigError> {
    const CALLBACK: &str = "--inspection-callback-url";
    let collectors: Vec<String> = words(last(values, "--inspection-collectors")).map(str::to_owned).collect();
    let mut urls = urls(values, CALLBACK)?;
    trust(values, urls.iter().any(ApiUrl::is_tls).then_some(CALLBACK))?;
    if urls.is_empty() && !collectors.is_empty() {
        let api = self::urls(values, "--api-url")?;
        urls = api.iter().map(|url| url.below("/v1/continue_inspection")).collect();
    }
    let lldp_time = last(values, "--lldp-timeout").map_or(Ok(LLDP_TIME), lldp_seconds)?;
    let collect_lldp = values.contains_key("--collect-lldp");
    let wanted = Inspection { urls, collectors, first_wait: INSPECTION_WAIT, collect_lldp, lldp_time };
    Ok((!wanted.urls.is_empty()).then_some(wanted))
}

fn urls(values: &Values, flag: &'static str) -> Result<Vec<ApiUrl>, ConfigError> {
    words(last(values, flag)).map(|url| url.parse().map_err(|problem: String| bad(flag, problem))).collect()
}

/// The parts of a list with commas.
fn words(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.unwrap_or_default().split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Whom to trust; `needed_by` names the setting with an https URL in it.
pub(super) fn trust(values: &Values, needed_by: Option<&'static str>) -> Result<Option<Trust>, ConfigError> {
    // The strictest that is given wins: an insecure switch next to a pin does not weaken the pin.
    if let Some(text) = last(values, "--pin") {
        let pin =
            |text: &str| text.parse().map_err(|error: pinned_tls::BadPin| bad("--pin", error.to_string()));
        let pins = text.split(',').map(pin).collect::<Result<_, _>>()?;
        return Ok(Some(Trust::Pins(pins)));
    }
    if let Some(path) = last(values, "--ca-file") {
        return Ok(Some(Trust::CaFile(path.into())));
    }
    if values.contains_key("--insecure") {
        return Ok(Some(Trust::Insecure));
    }
    match needed_by {
        Some(setting) => Err(bad(setting, "an https URL needs --pin, --ca-file or --insecure")),
        None => Ok(None),
    }
}

pub(super) fn listen(values: &Values, ramdisk: bool, tls: bool) -> Result<SocketAddr, ConfigError> {
    let default = if ramdisk && tls { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let host = last(values, LISTEN_HOST).map_or(Ok(default.into()), |text| {
        text.trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .map_err(|_| bad(LISTEN_HOST, format!("{text:?} is not an IP address")))
    })?;
    let port = last(values, LISTEN_PORT).map_or(Ok(PORT), |text| port(LISTEN_PORT, text))?;
    let listen = match last(values, "--listen") {
        None => SocketAddr::from((host, port)),
        Some(text) => {
            text.parse().map_err(|_| bad("--listen", format!("{text:?} is not an IP address and port")))?
        }
    };
    if !tls && !listen.ip().is_loopback() {
        return Err(bad("--no-tls", format!("plain HTTP is for loopback only, not for {listen}")));
    }
    Ok(listen)
}

/// Name servers, for where DHCP names none.
pub(super) fn name_servers(values: &Values) -> Result<Vec<IpAddr>, ConfigError> {
    const NAME: &str = "(anneal.dns)";
    let address = |text: &str| text.parse().map_err(|_| bad(NAME, format!("{text:?} is not an IP address")));
    words(last(values, NAME)).map(address).collect()
}

/// Names or addresses of time servers. ironic-python-agent takes one; a list is of ours.
pub(super) fn time_servers(values: &Values) -> Result<Vec<String>, ConfigError> {
    const NAME: &str = "(ipa-ntp-server)";
    let host = |text: &str| match is_time_server(text) {
        true => Ok(text.to_owned()),
        false => Err(bad(NAME, format!("{text:?} is neither a name nor an IP address"))),
    };
    words(last(values, NAME)).map(host).collect()
}

/// A port that can be advertised: not 0.
pub(super) fn port(setting: &'static str, text: &str) -> Result<u16, ConfigError> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| bad(setting, format!("{text:?} is not a port")))
}

/// Ironic's form of a request id.
pub(super) fn request_id(text: &str) -> Result<String, ConfigError> {
    let uuid = text.strip_prefix("req-").and_then(|uuid| uuid::Uuid::parse_str(uuid).ok());
    uuid.map(|uuid| format!("req-{uuid}")).ok_or_else(|| bad(REQUEST_ID, "it is not req- and a UUID"))
}

pub(super) fn advertise(text: &str) -> Result<Advertise, ConfigError> {
    if let Ok(address) = text.parse::<SocketAddr>()
        && address.port() > 0
    {
        return Ok(Advertise { host: address.ip(), port: Some(address.port()) });
    }
    match text.trim_matches(['[', ']']).parse() {
        Ok(host) => Ok(Advertise { host, port: None }),
        Err(_) => Err(bad("--advertise", format!("{text:?} is not an IP address with or without a port"))),
    }
}

pub(super) fn mac(setting: &'static str, text: &str) -> Result<Mac, ConfigError> {
    text.parse().map_err(|error: MacError| bad(setting, error.to_string()))
}

/// `01-52-54-00-aa-bb-cc`: hardware type, then the MAC (pxelinux's form); the type may be missing.
pub(super) fn boot_mac(text: &str) -> Result<Mac, ConfigError> {
    match text.split_once(['-', ':']) {
        Some(("01", rest)) if rest.len() == 17 => mac("(BOOTIF)", rest),
        _ => mac("(BOOTIF)", text),
    }
}

pub(super) fn uuid(text: &str) -> Result<String, ConfigError> {
    uuid::Uuid::parse_str(text)
        .map(|uuid| uuid.to_string())
        .map_err(|_| bad("--node-uuid", format!("{text:?} is not a UUID")))
}

pub(super) fn absolute(setting: &'static str, text: &str) -> Result<PathBuf, ConfigError> {
    let path = PathBuf::from(text);
    if path.is_absolute() { Ok(path) } else { Err(bad(setting, format!("{text:?} is not an absolute path"))) }
}

pub(super) fn token(text: &str) -> Result<Token, ConfigError> {
    Token::new(text).ok_or_else(|| bad("(ipa-agent-token)", "shorter than 32 characters"))
}

pub(super) fn seconds(setting: &'static str, text: &str) -> Result<Duration, ConfigError> {
    match text.parse::<u64>() {
        Ok(seconds @ 1..=604_800) => Ok(Duration::from_secs(seconds)),
        _ => Err(bad(setting, format!("{text:?} is not a number of seconds from 1 to 604800"))),
    }
}

/// Without the wait it is an ordinary boot.
pub(super) fn discovery(values: &Values) -> Result<Option<DiscoveryBoot>, ConfigError> {
    const WAIT: &str = "(anneal.discovery)";
    const AFTER: &str = "(anneal.discovery-after)";
    let Some(wait) = last(values, WAIT) else { return Ok(None) };
    let after = match last(values, AFTER) {
        None | Some("power-off") => Exit::PowerOff,
        Some("boot-disk") => Exit::Reboot,
        Some(other) => return Err(bad(AFTER, format!("{other:?} is neither power-off nor boot-disk"))),
    };
    Ok(Some(DiscoveryBoot { wait: seconds(WAIT, wait)?, after }))
}

/// ironic-python-agent takes fractions.
fn lldp_seconds(text: &str) -> Result<Duration, ConfigError> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(bad("--lldp-timeout", format!("{text:?} is not a number of seconds from 0.1 to 600"))),
    }
}
