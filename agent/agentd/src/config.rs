//! Flags and the kernel command line, read once into one [`Config`]. Pure but for [`Environment::of_this_process`].
//!
//! Every setting has a flag and, in the ramdisk, a kernel parameter of the same meaning; a flag
//! wins. Outside the ramdisk the kernel command line is not looked at, and the agent sees no disk
//! but those of `--only-device`.

mod error;
mod signed;
pub(crate) mod sources;
mod types;
mod values;

pub use error::{ConfigError, HELP};
pub use types::{Advertise, DiscoveryBoot, Inspection};

use crate::boot_proof::Sources;
use crate::http::ApiUrl;
use crate::tls::Trust;
use crate::token::Token;
use agent_protocol::boot_medium::{OVERLAY_FILE, PARAMETERS, StaticNetwork};
use error::bad;
use mac::Mac;
use network_data::static_network;
use ramdisk_init::Servers;
use ramdisk_init::virtual_media::{VirtualMedia, Wanted};
use signed::{Parameters, SignedRamdisk};
use sources::{Values, from_flags, from_kernel, kernel_parameters};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use values::{
    ADVERTISE_PORT, REQUEST_ID, absolute, advertise, all, api_urls, boot_mac, discovery, inspection, last,
    listen, mac, name_servers, port, request_id, seconds, time_servers, token, trust, uuid,
};

const LOOKUP: &str = "--lookup-timeout";
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(600);
const RESCUE_PASSWORD_FILE: &str = "/etc/anneal/rescue-password";
const BUNDLES: &str = "/run/anneal/managers";
const TRUSTED_KEYS: &str = "/etc/anneal/trusted-keys";

/// All settings of the agent.
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
    /// The port that the controller is to use, when `advertise` names none and it is not that of the listener.
    pub advertise_port: Option<u16>,
    /// Under which the controller is to file what this agent asks of it (`req-` and a UUID).
    pub global_request_id: Option<String>,
    /// Serve TLS.
    pub tls: bool,
    /// Look up with these MACs instead of the interfaces'.
    pub macs: Vec<Mac>,
    /// Look up with this UUID too.
    pub node_uuid: Option<String>,
    /// Servers of the ramdisk: of names, where neither DHCP nor a boot medium names any, and of the time.
    pub servers: Servers,
    /// The network that the medium of a signed ramdisk brings, or that of an Ironic.
    pub network: Option<StaticNetwork>,
    /// The only disks to see; outside the ramdisk, none when empty.
    pub only_devices: Vec<PathBuf>,
    /// MAC of the NIC that PXE used.
    pub boot_mac: Option<Mac>,
    /// Nonce of this boot, from the boot script of the controller.
    pub boot_nonce: Option<Token>,
    /// Token given beforehand (virtual media of an Ironic).
    pub agent_token: Option<Token>,
    /// Outside the ramdisk the agent gives up after this; in it, it never does.
    pub lookup_timeout: Duration,
    /// What proves this boot; in a ramdisk from a boot medium of a controller only, of which a controller knows what it measures.
    pub tpm: Option<Sources>,
    /// Where the inventory is posted before the lookup, when it is to be.
    pub inspection: Option<Inspection>,
    /// No node is known for this machine: it reports, waits for an operator and ends.
    pub discovery: Option<DiscoveryBoot>,
    /// Program that lets the owner of a rescued node log in.
    pub login_program: Option<PathBuf>,
    /// Where the hash of the rescue password is kept for it.
    pub rescue_password_file: PathBuf,
    /// Where bundles of hardware managers are mounted; none: they are left alone.
    pub bundles: Option<PathBuf>,
    /// Keys of which one has to have signed a bundle, if the file is there.
    pub trusted_keys: PathBuf,
    /// Where external hardware managers are ([`crate::external`]), if there are any.
    pub external: Option<PathBuf>,
    /// Debug log.
    pub debug: bool,
    /// Parameters that begin like ours and are not understood.
    pub ignored: Vec<String>,
}

/// What [`parse`] needs to know of the process.
#[derive(Clone, Default)]
pub struct Environment {
    /// Arguments without the program's name.
    pub arguments: Vec<String>,
    /// `/proc/cmdline`. Under a signed ramdisk it is signed.
    pub kernel_command_line: String,
    /// Parameters that a boot medium brings in the initramfs; they count as if they stood on it.
    pub medium_parameters: String,
    /// The file next to a signed ramdisk ([`OVERLAY_FILE`]), which nothing signs.
    pub overlay_file: Option<Vec<u8>>,
    /// What the drives of an Ironic's virtual media bring. Their parameters come after all others, and so win, as in
    /// ironic-python-agent.
    pub virtual_media: Option<VirtualMedia>,
    /// Process id 1.
    pub is_init: bool,
    /// `ANNEAL_BOOT_NONCE`, which stands for the kernel parameter outside the ramdisk: `ps` shows flags.
    pub boot_nonce: Option<String>,
    /// `/` is an initramfs (ramfs or tmpfs), not a container's or an installed system's.
    pub root_is_initramfs: bool,
}

/// Read everything. Nothing is guessed: a value that makes no sense is an error that names it.
pub fn parse(environment: &Environment) -> Result<Config, ConfigError> {
    let mut parameters = kernel_parameters(&environment.kernel_command_line);
    let marked = parameters.iter().any(|(key, _)| key == "anneal.ramdisk");
    let ramdisk = marked || (environment.is_init && environment.root_is_initramfs);
    // Before anything is added to them: only what is signed says who is obeyed.
    let signed = if ramdisk { SignedRamdisk::of(&parameters)? } else { None };
    let (brought, network) = brought(environment, signed.as_ref())?;
    parameters.extend(brought);
    let mut ignored = Vec::new();
    let mut values = Values::new();
    if ramdisk {
        from_kernel(&parameters, &mut values, &mut ignored);
    }
    // The kernel passes init the words of its command line it does not know, such as the image name that
    // iPXE puts first under UEFI: those are no flags of ours.
    if !(environment.is_init && environment.root_is_initramfs) {
        from_flags(&environment.arguments, &mut values)?;
    }

    let inspection = match inspection(&values) {
        // A ramdisk with a wrong callback URL must still clean its node.
        Err(error) if ramdisk => {
            ignored.push(error.to_string());
            None
        }
        result => result?,
    };
    let api_urls = api_urls(&values, inspection.is_some())?;
    let trust = match &signed {
        Some(signed) => {
            let reports = inspection.iter().flat_map(|inspection| &inspection.urls);
            SignedRamdisk::ensure_tls(api_urls.iter().chain(reports))?;
            Some(signed.trust(trust(&values, None)?)?)
        }
        None => trust(&values, api_urls.iter().any(ApiUrl::is_tls).then_some("--api-url"))?,
    };
    if !ramdisk && values.contains_key("--login-program") && !values.contains_key("--rescue-password-file") {
        return Err(bad("--login-program", "outside the ramdisk it needs --rescue-password-file"));
    }
    let servers = Servers {
        dns: name_servers(&values)?,
        ntp: time_servers(&values)?,
        has_ipv6_controller: api_urls.iter().filter_map(ApiUrl::ip).any(|ip| ip.is_ipv6()),
    };
    let path = |flag| last(&values, flag).map(|text| absolute(flag, text)).transpose();
    let tls = !values.contains_key("--no-tls");
    let listen = listen(&values, ramdisk, tls)?;
    Ok(Config {
        ramdisk,
        init: ramdisk && environment.is_init,
        api_urls,
        trust,
        listen,
        advertise: last(&values, "--advertise").map(advertise).transpose()?,
        advertise_port: last(&values, ADVERTISE_PORT).map(|text| port(ADVERTISE_PORT, text)).transpose()?,
        global_request_id: last(&values, REQUEST_ID).map(request_id).transpose()?,
        tls,
        macs: all(&values, "--mac").iter().map(|text| mac("--mac", text)).collect::<Result<_, _>>()?,
        node_uuid: last(&values, "--node-uuid").map(uuid).transpose()?,
        only_devices: all(&values, "--only-device")
            .iter()
            .map(|path| absolute("--only-device", path))
            .collect::<Result<_, _>>()?,
        boot_mac: last(&values, "(BOOTIF)").map(boot_mac).transpose()?,
        boot_nonce: boot_nonce(&values, environment)?,
        servers,
        network,
        agent_token: last(&values, "(ipa-agent-token)").map(token).transpose()?,
        lookup_timeout: last(&values, LOOKUP).map_or(Ok(LOOKUP_TIMEOUT), |text| seconds(LOOKUP, text))?,
        tpm: (ramdisk && environment.is_from_a_medium()).then(Sources::default),
        inspection,
        discovery: discovery(&values)?,
        login_program: path("--login-program")?,
        rescue_password_file: path("--rescue-password-file")?.unwrap_or_else(|| RESCUE_PASSWORD_FILE.into()),
        bundles: path("--bundles")?.or_else(|| ramdisk.then(|| BUNDLES.into())),
        trusted_keys: path("--trusted-keys")?.unwrap_or_else(|| TRUSTED_KEYS.into()),
        external: path("--external")?,
        debug: values.contains_key("--debug"),
        ignored,
    })
}

/// What boot media bring: the overlay of ours, then the drives of an Ironic.
fn brought(
    environment: &Environment,
    signed: Option<&SignedRamdisk>,
) -> Result<(Parameters, Option<StaticNetwork>), ConfigError> {
    let (mut parameters, network) = match signed {
        Some(signed) => signed.medium(environment.overlay_file.as_deref())?,
        None => (kernel_parameters(&environment.medium_parameters), None),
    };
    let Some(media) = &environment.virtual_media else { return Ok((parameters, network)) };
    let of_drive = kernel_parameters(&media.parameters);
    if signed.is_some() {
        SignedRamdisk::ensure_varying(&of_drive)?;
    }
    parameters.extend(of_drive);
    Ok((parameters, network.or(network_of(media)?)))
}

/// The network that the CD of an Ironic brings.
fn network_of(media: &VirtualMedia) -> Result<Option<StaticNetwork>, ConfigError> {
    const NAME: &str = "(network_data.json)";
    let Some(text) = &media.network_data else { return Ok(None) };
    let data = serde_json::from_slice(text).map_err(|error| bad(NAME, error.to_string()))?;
    static_network(&data).map_err(|why| bad(NAME, why))
}

/// The nonce of this boot: in the ramdisk from the kernel, outside it from the environment.
fn boot_nonce(values: &Values, environment: &Environment) -> Result<Option<Token>, ConfigError> {
    const NAME: &str = "(anneal.boot-nonce)";
    let text = last(values, NAME).or(environment.boot_nonce.as_deref());
    let nonce = |text| Token::new(text).ok_or_else(|| bad(NAME, "shorter than 32 characters"));
    text.map(nonce).transpose()
}

impl Environment {
    /// What is to be read from virtual media, where the kernel command line says that this ramdisk was booted from an Ironic's. Nothing
    /// but that line counts, which of a signed ramdisk is signed, too.
    pub fn virtual_media_wanted(&self) -> Option<Wanted> {
        let parameters = kernel_parameters(&self.kernel_command_line);
        Wanted::of(parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// Whether a boot medium of a controller brought this ramdisk.
    fn is_from_a_medium(&self) -> bool {
        self.overlay_file.is_some() || !self.medium_parameters.is_empty()
    }

    /// This process.
    pub fn of_this_process() -> Self {
        use nix::sys::statfs::{FsType, statfs};
        /// RAMFS_MAGIC of linux/magic.h.
        const RAMFS: i64 = 0x8584_58f6;
        let is_ram = |kind: FsType| kind == nix::sys::statfs::TMPFS_MAGIC || kind == FsType(RAMFS);
        let root_is_initramfs = statfs("/").is_ok_and(|root| is_ram(root.filesystem_type()));
        // Not there before PID 1 has mounted /proc; outside it is always there.
        let kernel_command_line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let of_medium = |path: &str| std::fs::read(format!("/{path}")).ok().filter(|_| root_is_initramfs);
        let parameters = of_medium(PARAMETERS).unwrap_or_default();
        Self {
            arguments: std::env::args().skip(1).collect(),
            kernel_command_line,
            medium_parameters: String::from_utf8_lossy(&parameters).into_owned(),
            overlay_file: of_medium(OVERLAY_FILE),
            virtual_media: None,
            is_init: std::process::id() == 1,
            boot_nonce: std::env::var("ANNEAL_BOOT_NONCE").ok(),
            root_is_initramfs,
        }
    }
}

#[cfg(test)]
mod tests;
