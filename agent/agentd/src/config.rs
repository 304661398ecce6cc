//! Flags and the kernel command line, read once into one [`Config`]. Pure but for [`Environment::of_this_process`].
//!
//! Every setting has a flag and, in the ramdisk, a kernel parameter of the same meaning; a flag
//! wins. Outside the ramdisk the kernel command line is not looked at, and the agent sees no disk
//! but those of `--only-device`.

use crate::http::ApiUrl;
use crate::tls::Trust;
use crate::token::Token;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Port of ironic-python-agent.
const PORT: u16 = 9999;
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(600);

/// Everything the agent is told from outside.
#[derive(Debug, Clone)]
pub struct Config {
    /// The machine is the agent's: all disks are seen, power off and reboot are real.
    pub ramdisk: bool,
    /// This process is PID 1 and has to do what an init does.
    pub init: bool,
    /// Controllers, tried in order.
    pub api_urls: Vec<ApiUrl>,
    /// Which certificate of theirs is accepted; always set when one of them is `https`.
    pub trust: Option<Trust>,
    /// Where the agent's API listens.
    pub listen: SocketAddr,
    /// Where the controller is to reach it, when that is not the address that the controller sees.
    pub advertise: Option<Advertise>,
    /// Serve TLS.
    pub tls: bool,
    /// Look up with these MACs instead of the interfaces'. Lower case with colons.
    pub macs: Vec<String>,
    /// Look up with this UUID too.
    pub node_uuid: Option<String>,
    /// The only disks to see; outside the ramdisk, none when empty.
    pub only_devices: Vec<PathBuf>,
    /// MAC of the NIC that PXE used.
    pub boot_mac: Option<String>,
    /// Token given beforehand (virtual media).
    pub agent_token: Option<Token>,
    /// Outside the ramdisk the agent gives up after this; in it, it never does.
    pub lookup_timeout: Duration,
    /// Debug log.
    pub debug: bool,
    /// Parameters that begin like ours and are not understood.
    pub ignored: Vec<String>,
}

/// Host and port that a controller is to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertise {
    /// Host.
    pub host: IpAddr,
    /// Port; that of the listener when it is not given.
    pub port: Option<u16>,
}

/// What [`parse`] needs to know of the process.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Arguments without the program's name.
    pub arguments: Vec<String>,
    /// `/proc/cmdline`.
    pub kernel_command_line: String,
    /// Process id 1.
    pub is_init: bool,
    /// `/` is an initramfs (ramfs or tmpfs), not a container's or an installed system's.
    pub root_is_initramfs: bool,
}

/// Why a configuration is refused. Names the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not a flag of ours.
    #[error("unknown argument {0:?}; try --help")]
    Unknown(String),
    /// A flag without its value.
    #[error("{0} needs a value")]
    NoValue(String),
    /// A value that makes no sense.
    #[error("{setting}: {problem}")]
    Bad {
        /// The setting, by flag.
        setting: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Help was asked for.
    #[error("{HELP}")]
    Help,
}

/// Shown by `--help`.
pub const HELP: &str = "\
anneal-agent: erases disks and runs steps for a controller

  --api-url URL[,URL]     controller's API; kernel: ipa-api-url
  --pin sha256:HEX        accept only the controller certificate with this fingerprint; kernel: anneal.pin
  --ca-file FILE          accept certificates of these authorities; kernel: ipa-ca-file, ipa-cafile
  --insecure              accept any certificate; kernel: ipa-insecure=1
  --listen ADDR:PORT      default 127.0.0.1:9999, in the ramdisk 0.0.0.0:9999; kernel: anneal.listen
  --advertise HOST[:PORT] tell the controller this address; kernel: anneal.advertise, ipa-advertise-host
  --no-tls                serve plain HTTP, on loopback only; kernel: anneal.no-tls
  --mac MAC               look up with this MAC (repeatable); kernel: anneal.mac
  --node-uuid UUID        look up with this UUID; kernel: anneal.node-uuid
  --only-device PATH      see only this disk (repeatable); kernel: anneal.only-device
  --lookup-timeout SECS   default 600; in the ramdisk the agent never gives up; kernel: ipa-lookup-timeout
  --debug                 more log; kernel: ipa-debug=1
Outside the ramdisk the agent sees no disk but those of --only-device and never powers off the machine.";

struct Setting {
    flag: &'static str,
    kernel: &'static [&'static str],
    value: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Needs one; a later one replaces an earlier one.
    One,
    /// Needs one; may be repeated.
    Many,
    /// A switch; `=0`, `=false` and `=no` on the kernel command line leave it off.
    Switch,
}

const SETTINGS: &[Setting] = &[
    Setting { flag: "--api-url", kernel: &["ipa-api-url"], value: Value::One },
    Setting { flag: "--pin", kernel: &["anneal.pin"], value: Value::One },
    Setting { flag: "--ca-file", kernel: &["ipa-ca-file", "ipa-cafile"], value: Value::One },
    Setting { flag: "--insecure", kernel: &["ipa-insecure"], value: Value::Switch },
    Setting { flag: "--listen", kernel: &["anneal.listen"], value: Value::One },
    Setting { flag: "--advertise", kernel: &["anneal.advertise", "ipa-advertise-host"], value: Value::One },
    Setting { flag: "--no-tls", kernel: &["anneal.no-tls"], value: Value::Switch },
    Setting { flag: "--mac", kernel: &["anneal.mac"], value: Value::Many },
    Setting { flag: "--node-uuid", kernel: &["anneal.node-uuid"], value: Value::One },
    Setting { flag: "--only-device", kernel: &["anneal.only-device"], value: Value::Many },
    Setting { flag: "--lookup-timeout", kernel: &["ipa-lookup-timeout"], value: Value::One },
    Setting { flag: "--debug", kernel: &["ipa-debug"], value: Value::Switch },
    // A secret: from the kernel command line of virtual media only, never from a flag that `ps` shows.
    Setting { flag: "(ipa-agent-token)", kernel: &["ipa-agent-token"], value: Value::One },
    Setting { flag: "(BOOTIF)", kernel: &["BOOTIF"], value: Value::One },
];

/// Values by flag.
type Values = BTreeMap<&'static str, Vec<String>>;

/// Read everything. Nothing is guessed: a value that makes no sense is an error that names it.
pub fn parse(environment: &Environment) -> Result<Config, ConfigError> {
    let parameters = kernel_parameters(&environment.kernel_command_line);
    let marked = parameters.iter().any(|(key, _)| key == "anneal.ramdisk");
    let ramdisk = marked || (environment.is_init && environment.root_is_initramfs);
    let mut ignored = Vec::new();
    let mut values = Values::new();
    if ramdisk {
        from_kernel(&parameters, &mut values, &mut ignored);
    }
    // The kernel hands init whatever words of its command line it does not know, such as the image name that
    // iPXE puts first under UEFI: those are no flags of ours.
    if !(environment.is_init && environment.root_is_initramfs) {
        from_flags(&environment.arguments, &mut values)?;
    }

    let api_urls = api_urls(&values)?;
    let trust = trust(&values, api_urls.iter().any(ApiUrl::is_tls))?;
    let tls = !values.contains_key("--no-tls");
    let listen = listen(&values, ramdisk, tls)?;
    Ok(Config {
        ramdisk,
        init: ramdisk && environment.is_init,
        api_urls,
        trust,
        listen,
        advertise: last(&values, "--advertise").map(advertise).transpose()?,
        tls,
        macs: all(&values, "--mac").iter().map(|text| mac("--mac", text)).collect::<Result<_, _>>()?,
        node_uuid: last(&values, "--node-uuid").map(uuid).transpose()?,
        only_devices: all(&values, "--only-device")
            .iter()
            .map(|path| device(path))
            .collect::<Result<_, _>>()?,
        boot_mac: last(&values, "(BOOTIF)").map(boot_mac).transpose()?,
        agent_token: last(&values, "(ipa-agent-token)").map(token).transpose()?,
        lookup_timeout: last(&values, "--lookup-timeout").map_or(Ok(LOOKUP_TIMEOUT), seconds)?,
        debug: values.contains_key("--debug"),
        ignored,
    })
}

impl Environment {
    /// This process.
    pub fn of_this_process() -> Self {
        use nix::sys::statfs::{FsType, statfs};
        /// RAMFS_MAGIC of linux/magic.h.
        const RAMFS: i64 = 0x8584_58f6;
        let is_ram = |kind: FsType| kind == nix::sys::statfs::TMPFS_MAGIC || kind == FsType(RAMFS);
        Self {
            arguments: std::env::args().skip(1).collect(),
            // Not there before PID 1 has mounted /proc; outside it is always there.
            kernel_command_line: std::fs::read_to_string("/proc/cmdline").unwrap_or_default(),
            is_init: std::process::id() == 1,
            root_is_initramfs: statfs("/").is_ok_and(|root| is_ram(root.filesystem_type())),
        }
    }
}

/// Split at blanks, `"` protects them; `key` alone has an empty value.
fn kernel_parameters(line: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.trim().chars() {
        match character {
            '"' => quoted = !quoted,
            blank if blank.is_whitespace() && !quoted => words.push(String::new()),
            other => words.last_mut().into_iter().for_each(|word| word.push(other)),
        }
    }
    words.retain(|word| !word.is_empty());
    words
        .iter()
        .map(|word| word.split_once('=').unwrap_or((word, "")))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn from_kernel(parameters: &[(String, String)], values: &mut Values, ignored: &mut Vec<String>) {
    for (key, value) in parameters {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.kernel.contains(&key.as_str())) else {
            if (key.starts_with("ipa-") || key.starts_with("anneal.")) && key != "anneal.ramdisk" {
                ignored.push(key.clone());
            }
            continue;
        };
        match setting.value {
            Value::Switch if ["0", "false", "no", "off"].contains(&value.to_lowercase().as_str()) => {
                values.remove(setting.flag);
            }
            _ => values.entry(setting.flag).or_default().push(value.clone()),
        }
    }
}

fn from_flags(arguments: &[String], values: &mut Values) -> Result<(), ConfigError> {
    let mut given = Values::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--help" || argument == "-h" {
            return Err(ConfigError::Help);
        }
        let (flag, inline) = match argument.split_once('=') {
            Some((flag, value)) => (flag, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.flag == flag && flag.starts_with("--"))
            .ok_or_else(|| ConfigError::Unknown(flag.to_owned()))?;
        let value = match (setting.value, inline) {
            (Value::Switch, None) => String::new(),
            (Value::Switch, Some(_)) => {
                return Err(bad(setting.flag, "is a switch and takes no value"));
            }
            (_, Some(value)) => value,
            (_, None) => arguments.next().cloned().ok_or_else(|| ConfigError::NoValue(flag.to_owned()))?,
        };
        given.entry(setting.flag).or_default().push(value);
    }
    values.extend(given);
    Ok(())
}

fn bad(setting: &'static str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Bad { setting, problem: problem.into() }
}

fn last<'a>(values: &'a Values, flag: &str) -> Option<&'a str> {
    values.get(flag)?.last().map(String::as_str)
}

fn all<'a>(values: &'a Values, flag: &str) -> &'a [String] {
    values.get(flag).map_or(&[], Vec::as_slice)
}

fn api_urls(values: &Values) -> Result<Vec<ApiUrl>, ConfigError> {
    let text = last(values, "--api-url").unwrap_or_default();
    let urls: Result<Vec<ApiUrl>, String> =
        text.split(',').map(str::trim).filter(|url| !url.is_empty()).map(str::parse).collect();
    match urls {
        Ok(urls) if urls.is_empty() => Err(bad("--api-url", "no controller is named (kernel: ipa-api-url)")),
        urls => urls.map_err(|problem| bad("--api-url", problem)),
    }
}

fn trust(values: &Values, needed: bool) -> Result<Option<Trust>, ConfigError> {
    // The strictest that is given wins: an insecure switch beside a pin does not weaken the pin.
    if let Some(text) = last(values, "--pin") {
        let pin = text.parse().map_err(|problem: pinned_tls::BadPin| bad("--pin", problem.to_string()))?;
        return Ok(Some(Trust::Pin(pin)));
    }
    if let Some(path) = last(values, "--ca-file") {
        return Ok(Some(Trust::CaFile(path.into())));
    }
    if values.contains_key("--insecure") {
        return Ok(Some(Trust::Insecure));
    }
    if needed {
        return Err(bad("--api-url", "an https URL needs --pin, --ca-file or --insecure"));
    }
    Ok(None)
}

fn listen(values: &Values, ramdisk: bool, tls: bool) -> Result<SocketAddr, ConfigError> {
    let default = if ramdisk { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let listen = match last(values, "--listen") {
        None if tls => SocketAddr::from((default, PORT)),
        None => SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
        Some(text) => {
            text.parse().map_err(|_| bad("--listen", format!("{text:?} is not an IP address and port")))?
        }
    };
    if !tls && !listen.ip().is_loopback() {
        return Err(bad("--no-tls", format!("plain HTTP is for loopback only, not for {listen}")));
    }
    Ok(listen)
}

fn advertise(text: &str) -> Result<Advertise, ConfigError> {
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

/// `52-54-00-AA-BB-CC` or `52:54:00:aa:bb:cc` as the latter.
fn mac(setting: &'static str, text: &str) -> Result<String, ConfigError> {
    let parts: Vec<&str> = text.split([':', '-']).collect();
    let fits = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    if parts.len() == 6 && parts.iter().all(fits) {
        return Ok(parts.join(":").to_lowercase());
    }
    Err(bad(setting, format!("{text:?} is not a MAC address")))
}

/// `01-52-54-00-aa-bb-cc`: hardware type, then the MAC (pxelinux's form); the type may be missing.
fn boot_mac(text: &str) -> Result<String, ConfigError> {
    match text.split_once(['-', ':']) {
        Some(("01", rest)) if rest.len() == 17 => mac("(BOOTIF)", rest),
        _ => mac("(BOOTIF)", text),
    }
}

fn uuid(text: &str) -> Result<String, ConfigError> {
    uuid::Uuid::parse_str(text)
        .map(|uuid| uuid.to_string())
        .map_err(|_| bad("--node-uuid", format!("{text:?} is not a UUID")))
}

fn device(text: &str) -> Result<PathBuf, ConfigError> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(bad("--only-device", format!("{text:?} is not an absolute path")))
    }
}

fn token(text: &str) -> Result<Token, ConfigError> {
    Token::new(text).ok_or_else(|| bad("(ipa-agent-token)", "shorter than 32 characters"))
}

fn seconds(text: &str) -> Result<Duration, ConfigError> {
    match text.parse::<u64>() {
        Ok(seconds @ 1..=604_800) => Ok(Duration::from_secs(seconds)),
        _ => Err(bad("--lookup-timeout", format!("{text:?} is not a number of seconds from 1 to 604800"))),
    }
}

#[cfg(test)]
mod tests;
