//! The kernel command line of the ramdisk.

use boot_media::signed::{KERNEL, RAMDISK};
use std::net::IpAddr;

/// The parameters of the ramdisk. Text fields must not contain white space or control characters; see
/// [`ramdisk_cmdline`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct RamdiskParams {
    /// Base URLs of the controllers' APIs; the agent takes the first that answers. At least one.
    pub api_urls: Vec<String>,
    /// SHA-256 (hexadecimal) of the DER of each controller's certificate; none for plain HTTP or certificates from a known CA.
    pub pins_sha256: Vec<String>,
    /// The nonce of the boot. A secret.
    pub nonce: Option<String>,
    /// Accept any certificate of the controller (`ipa-insecure=1`). Only for laboratories.
    pub insecure: bool,
    /// Name servers of the ramdisk, for where DHCP names none.
    pub dns: Vec<IpAddr>,
    /// Time servers of the ramdisk: names or addresses, without commas.
    pub ntp: Vec<String>,
    /// Kernel consoles in the kernel's order (the last is /dev/console), such as `ttyS0,115200`.
    pub consoles: Vec<String>,
    /// Let the kernel print all it has to say, instead of `quiet`.
    pub verbose: bool,
    /// The operator's own arguments, as in Ironic's `kernel_append_params`; put last, so that they win.
    pub extra: String,
}

/// An argument that would break the command line in two or hide behind another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("kernel argument {name} is not usable: {why}")]
pub struct CmdlineError {
    name: &'static str,
    why: &'static str,
}

fn word(name: &'static str, text: &str) -> Result<(), CmdlineError> {
    let why = if text.is_empty() {
        "it is empty"
    } else if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '"') {
        "it contains white space, control characters or quotes"
    } else {
        return Ok(());
    };
    Err(CmdlineError { name, why })
}

/// The kernel command line with which a node boots the ramdisk (without `BOOTIF=` and `initrd=`, which
/// the iPXE script adds).
///
/// # Errors
/// A parameter that cannot be one word of a command line, naming it.
pub fn ramdisk_cmdline(params: &RamdiskParams) -> Result<String, CmdlineError> {
    Ok(format!("{} {}", boot_parameters(params)?, kernel_arguments(params)?))
}

/// The part of it that the agent alone reads, and that differs from boot to boot. On a boot medium it is in the overlay.
///
/// # Errors
/// As [`ramdisk_cmdline`].
pub fn boot_parameters(params: &RamdiskParams) -> Result<String, CmdlineError> {
    if params.api_urls.is_empty() {
        return Err(CmdlineError { name: "ipa-api-url", why: "no URL is given" });
    }
    for url in &params.api_urls {
        word("ipa-api-url", url)?;
    }
    let mut args = vec![format!("ipa-api-url={}", params.api_urls.join(","))];
    if params
        .pins_sha256
        .iter()
        .any(|pin| pin.len() != 64 || !pin.bytes().all(|digit| digit.is_ascii_hexdigit()))
    {
        return Err(CmdlineError { name: "anneal.pin", why: "it is not 64 hexadecimal digits" });
    }
    if !params.pins_sha256.is_empty() {
        let pins = params.pins_sha256.iter().map(|pin| format!("sha256:{}", pin.to_ascii_lowercase()));
        args.push(format!("anneal.pin={}", pins.collect::<Vec<_>>().join(",")));
    }
    if let Some(nonce) = &params.nonce {
        word("anneal.boot-nonce", nonce)?;
        args.push(format!("anneal.boot-nonce={nonce}"));
    }
    if !params.dns.is_empty() {
        let servers: Vec<String> = params.dns.iter().map(ToString::to_string).collect();
        args.push(format!("anneal.dns={}", servers.join(",")));
    }
    if !params.ntp.is_empty() {
        params.ntp.iter().try_for_each(|server| word("ipa-ntp-server", server))?;
        args.push(format!("ipa-ntp-server={}", params.ntp.join(",")));
    }
    if params.insecure {
        args.push("ipa-insecure=1".to_owned());
    }
    Ok(args.join(" "))
}

/// One argument more, behind a space: the URLs that an agent sends its inventory to, at the first that answers. The first two
/// controllers', which are one where that has addresses of both families; [`boot_parameters`] refuses parameters that name none.
pub fn inspection_callback(params: &RamdiskParams) -> String {
    let urls = params.api_urls.iter().take(2).map(|url| format!("{url}/v1/continue_inspection"));
    format!(" ipa-inspection-callback-url={}", urls.collect::<Vec<_>>().join(","))
}

/// The part of it that is the same for all boots: the kernel's own, and what the operator adds.
///
/// # Errors
/// As [`ramdisk_cmdline`].
pub fn kernel_arguments(params: &RamdiskParams) -> Result<String, CmdlineError> {
    let mut args = vec![RAMDISK.to_owned()];
    if !params.verbose {
        args.push("quiet".to_owned());
    }
    args.push(KERNEL.to_owned());
    for console in &params.consoles {
        word("console", console)?;
        args.push(format!("console={console}"));
    }
    if params.extra.chars().any(char::is_control) {
        return Err(CmdlineError { name: "extra", why: "it contains control characters" });
    }
    if !params.extra.trim().is_empty() {
        args.push(params.extra.trim().to_owned());
    }
    Ok(args.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> RamdiskParams {
        RamdiskParams { api_urls: vec!["https://10.9.0.1:6385".to_owned()], ..RamdiskParams::default() }
    }

    #[test]
    fn golden() {
        let full = RamdiskParams {
            pins_sha256: vec!["AB".repeat(32)],
            nonce: Some("c0ffee".to_owned()),
            consoles: vec!["tty0".to_owned(), "ttyS0,115200".to_owned()],
            extra: " ipa-debug=1 ".to_owned(),
            ..params()
        };
        assert_eq!(
            ramdisk_cmdline(&full).unwrap(),
            format!(
                "ipa-api-url=https://10.9.0.1:6385 anneal.pin=sha256:{} anneal.boot-nonce=c0ffee anneal.ramdisk quiet \
                 cryptomgr.notests random.trust_cpu=on rootfstype=ramfs panic=-1 console=tty0 console=ttyS0,115200 ipa-debug=1",
                "ab".repeat(32)
            )
        );
        let insecure = RamdiskParams { insecure: true, verbose: true, ..params() };
        assert_eq!(
            ramdisk_cmdline(&insecure).unwrap(),
            "ipa-api-url=https://10.9.0.1:6385 ipa-insecure=1 anneal.ramdisk \
             cryptomgr.notests random.trust_cpu=on rootfstype=ramfs panic=-1"
        );
    }

    #[test]
    fn controllers_are_one_argument_and_so_are_their_pins() {
        let api_urls = ["https://10.9.0.1:6385", "https://10.9.0.2:6385"].map(str::to_owned).to_vec();
        let pins_sha256 = vec!["AB".repeat(32), "cd".repeat(32)];
        let line =
            ramdisk_cmdline(&RamdiskParams { api_urls, pins_sha256, ..RamdiskParams::default() }).unwrap();
        let pins = format!("sha256:{},sha256:{}", "ab".repeat(32), "cd".repeat(32));
        let begin = format!(
            "ipa-api-url=https://10.9.0.1:6385,https://10.9.0.2:6385 anneal.pin={pins} anneal.ramdisk "
        );
        assert!(line.starts_with(&begin), "{line}");
    }

    #[test]
    fn servers_are_one_argument_each() {
        let dns = ["10.9.0.2", "2001:db8::3"].map(|server| server.parse().unwrap()).to_vec();
        let ntp = ["ntp.example", "2001:db8::4"].map(str::to_owned).to_vec();
        let line = ramdisk_cmdline(&RamdiskParams { dns, ntp, ..params() }).unwrap();
        for argument in ["anneal.dns=10.9.0.2,2001:db8::3", "ipa-ntp-server=ntp.example,2001:db8::4"] {
            assert!(line.split(' ').any(|word| word == argument), "{line}");
        }
    }

    #[test]
    fn an_inventory_goes_to_a_controller_at_both_of_its_addresses() {
        let api_urls =
            ["https://10.9.0.1", "https://[2001:db8::1]", "https://10.9.0.2"].map(str::to_owned).to_vec();
        assert_eq!(
            inspection_callback(&RamdiskParams { api_urls, ..RamdiskParams::default() }),
            " ipa-inspection-callback-url=https://10.9.0.1/v1/continue_inspection,https://[2001:db8::1]/v1/continue_inspection"
        );
    }

    #[test]
    fn what_would_break_the_line_is_refused_by_name() {
        let cases = [
            (RamdiskParams::default(), "ipa-api-url"),
            (RamdiskParams { api_urls: vec!["http://a init=/bin/sh".to_owned()], ..params() }, "ipa-api-url"),
            (
                RamdiskParams { pins_sha256: vec!["ab".repeat(32), "abc".to_owned()], ..params() },
                "anneal.pin",
            ),
            (RamdiskParams { consoles: vec!["ttyS0 x".to_owned()], ..params() }, "console"),
            (RamdiskParams { ntp: vec!["ntp.example quiet".to_owned()], ..params() }, "ipa-ntp-server"),
            (RamdiskParams { extra: "a\nboot".to_owned(), ..params() }, "extra"),
        ];
        for (params, name) in cases {
            assert!(ramdisk_cmdline(&params).unwrap_err().to_string().contains(name), "{name}");
        }
    }
}
