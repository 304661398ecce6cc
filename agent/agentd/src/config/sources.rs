//! Where settings come from: flags, and in the ramdisk the kernel command line.

use super::error::{ConfigError, bad};
use std::collections::BTreeMap;

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
    Setting {
        flag: "--inspection-callback-url",
        kernel: &["ipa-inspection-callback-url"],
        value: Value::One,
    },
    Setting { flag: "--inspection-collectors", kernel: &["ipa-inspection-collectors"], value: Value::One },
    Setting { flag: "--collect-lldp", kernel: &["ipa-collect-lldp"], value: Value::Switch },
    Setting { flag: "--lldp-timeout", kernel: &["ipa-lldp-timeout"], value: Value::One },
    Setting { flag: "--login-program", kernel: &["anneal.login-program"], value: Value::One },
    Setting { flag: "--rescue-password-file", kernel: &["anneal.rescue-password-file"], value: Value::One },
    // No kernel parameters: the kernel command line is the controller's word, which these keys do not trust.
    Setting { flag: "--bundles", kernel: &[], value: Value::One },
    Setting { flag: "--trusted-keys", kernel: &[], value: Value::One },
    Setting { flag: "--external", kernel: &["anneal.external"], value: Value::One },
    Setting { flag: "--debug", kernel: &["ipa-debug"], value: Value::Switch },
    // Of the ramdisk alone: outside it --listen and --advertise say the same.
    Setting { flag: "(ipa-listen-host)", kernel: &["ipa-listen-host"], value: Value::One },
    Setting { flag: "(ipa-listen-port)", kernel: &["ipa-listen-port"], value: Value::One },
    Setting { flag: "(ipa-advertise-port)", kernel: &["ipa-advertise-port"], value: Value::One },
    Setting { flag: "(ipa-global-request-id)", kernel: &["ipa-global-request-id"], value: Value::One },
    // A secret: from the kernel command line of virtual media only, never from a flag that `ps` shows.
    Setting { flag: "(ipa-agent-token)", kernel: &["ipa-agent-token"], value: Value::One },
    // A secret, too.
    Setting { flag: "(anneal.boot-nonce)", kernel: &["anneal.boot-nonce"], value: Value::One },
    // Not from a medium: see `signed`.
    Setting { flag: "(anneal.obeys)", kernel: &["anneal.obeys"], value: Value::Many },
    // Of the ramdisk alone: how long a machine that no node is known for waits, and what it does then.
    Setting { flag: "(anneal.discovery)", kernel: &["anneal.discovery"], value: Value::One },
    Setting { flag: "(anneal.discovery-after)", kernel: &["anneal.discovery-after"], value: Value::One },
    // Of the ramdisk alone: what DHCP says comes first.
    Setting { flag: "(anneal.dns)", kernel: &["anneal.dns"], value: Value::One },
    // Of the ramdisk alone: the clock of another machine is not the agent's to set.
    Setting { flag: "(ipa-ntp-server)", kernel: &["ipa-ntp-server"], value: Value::One },
    Setting { flag: "(BOOTIF)", kernel: &["BOOTIF"], value: Value::One },
];

const DOWNLOADS: &str = "a mirror is tried five times without a byte between, from where it broke off, and given up when it sends \
                         less than 20 KiB in 20 s";
const TLS: &str = "TLS 1.2 and 1.3 with the ciphers of rustls, a P-256 certificate of this boot";
const NO_MDNS: &str = "there is no multicast DNS; give an address, or a name that a name server knows";
const WAITS: &str = "the ramdisk waits until no new disk or NIC has appeared for a while";

/// What ironic-python-agent 13.0.0 reads from the kernel command line and this agent does not obey, with the reason.
pub(crate) const LEFT_ALONE: &[(&str, &str)] = &[
    ("ipa-advertise-protocol", "always https"),
    ("ipa-disk-wait-attempts", WAITS),
    ("ipa-disk-wait-delay", WAITS),
    ("ipa-enable-discard-erase", "discard is used where the device promises zeroes, and read back in full"),
    ("ipa-enable-vlan-interfaces", "VLANs are those of the boot medium's `network_data`"),
    (
        "ipa-guard-special-filesystems",
        "always guarded; per node `driver_internal_info.wipe_special_filesystems`, per step the argument `despite`",
    ),
    ("ipa-hardware-initialization-delay", WAITS),
    ("ipa-http-request-timeout", "30 s"),
    ("ipa-ignore-bootloader-failure", "only the parameter of `image.install_bootloader` is"),
    ("ipa-image-download-connection-retries", DOWNLOADS),
    ("ipa-image-download-connection-retry-interval", DOWNLOADS),
    ("ipa-image-download-connection-timeout", DOWNLOADS),
    ("ipa-image-download-max-duration", "no limit while bytes arrive"),
    ("ipa-inject-files-priority", "no files are injected; use a configuration drive"),
    ("ipa-inspection-benchmarks", "no benchmarks are run"),
    ("ipa-inspection-dhcp-all-interfaces", "the NIC that booted is enough"),
    ("ipa-inspection-dhcp-wait-timeout", "waits for the NIC that booted"),
    ("ipa-ip-lookup-attempts", "the address is that of the connection to the controller"),
    ("ipa-ip-lookup-timeout", "the address is that of the connection to the controller"),
    ("ipa-ironic-api-version", "what the API offers is always asked for"),
    ("ipa-lookup-interval", "1 s at first, then longer, as ironic-python-agent by default"),
    ("ipa-network-interface", "the address is that of the connection to the controller"),
    ("ipa-tls-certificate-curve", TLS),
    ("ipa-tls-cipher-suites", TLS),
    ("ipa-tls-min-version", TLS),
    ("ipa-use-mdns", NO_MDNS),
];

/// The kernel parameters that are obeyed, each with the flag of the same meaning where there is one.
pub(crate) fn obeyed() -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let flag = |setting: &Setting| Some(setting.flag).filter(|flag| flag.starts_with("--"));
    SETTINGS.iter().flat_map(move |setting| setting.kernel.iter().map(move |name| (*name, flag(setting))))
}

/// Values by flag.
pub(super) type Values = BTreeMap<&'static str, Vec<String>>;

/// Split at blanks, `"` protects them; `key` alone has an empty value.
pub(super) fn kernel_parameters(line: &str) -> Vec<(String, String)> {
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

pub(super) fn from_kernel(parameters: &[(String, String)], values: &mut Values, ignored: &mut Vec<String>) {
    for (key, value) in parameters {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.kernel.contains(&key.as_str())) else {
            if (key.starts_with("ipa-") || key.starts_with("anneal.")) && key != "anneal.ramdisk" {
                let known = LEFT_ALONE.iter().find(|(name, _)| name == key);
                ignored.push(known.map_or_else(|| key.clone(), |(name, why)| format!("{name}: {why}")));
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

pub(super) fn from_flags(arguments: &[String], values: &mut Values) -> Result<(), ConfigError> {
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
