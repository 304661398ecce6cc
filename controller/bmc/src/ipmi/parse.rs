//! What `ipmitool` prints, read by pure functions.

use crate::{BootDevice, BootMode, BootSetting, ErrorKind, PowerState};

/// `Chassis Power is on`.
pub(super) fn power_state(output: &str) -> Option<PowerState> {
    output.lines().find_map(|line| {
        match line.trim().to_ascii_lowercase().strip_prefix("chassis power is ")? {
            "on" => Some(PowerState::On),
            "off" => Some(PowerState::Off),
            _ => None,
        }
    })
}

/// `Boot parameter data: c004000000`: the boot flags (IPMI 2.0, table 28-14, parameter 5).
///
/// Byte 1: bit 7 valid, 6 persistent, 5 UEFI; byte 2: bits 5 to 2 the device. As Ironic does, the
/// device is taken also from flags marked invalid: BMCs clear the mark after a boot, or never set it.
pub(super) fn boot_setting(output: &str) -> Option<BootSetting> {
    let data = output.lines().find_map(|line| line.trim().strip_prefix("Boot parameter data:"))?.trim();
    let byte = |n: usize| u8::from_str_radix(data.get(2 * n..2 * n + 2)?, 16).ok();
    let (flags, selector) = (byte(0)?, byte(1)?);
    let device = match (selector >> 2) & 0xf {
        1 => Some(BootDevice::Pxe),
        2 | 0xb => Some(BootDevice::Disk),
        3 => Some(BootDevice::Safe),
        5 | 8 => Some(BootDevice::Cdrom),
        6 => Some(BootDevice::Bios),
        7 | 0xf => Some(BootDevice::Floppy),
        _ => None,
    };
    let mode = if flags & 0x20 == 0 { BootMode::Bios } else { BootMode::Uefi };
    Some(BootSetting { device, persistent: device.map(|_| flags & 0x40 != 0), mode: Some(mode) })
}

/// The tool's word for a device; `None` where IPMI has none.
pub(super) fn device_name(device: BootDevice) -> Option<&'static str> {
    match device {
        BootDevice::Pxe => Some("pxe"),
        BootDevice::Disk => Some("disk"),
        BootDevice::Safe => Some("safe"),
        BootDevice::Cdrom => Some("cdrom"),
        BootDevice::Bios => Some("bios"),
        BootDevice::Floppy => Some("floppy"),
        BootDevice::Usb | BootDevice::UefiHttp => None,
    }
}

/// Why `ipmitool -v` failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The BMC does not have the cipher suite: another may do.
    Cipher,
    /// Anything else, with what to say.
    Other(ErrorKind, &'static str),
}

/// Understands the tool's error text (`-v`, version 1.8.18 and 1.8.19); its exit code is always 1.
pub(super) fn refusal(output: &str) -> Refusal {
    let text = output.to_ascii_lowercase();
    let has = |any: &[&str]| any.iter().any(|part| text.contains(part));
    if has(&[
        "invalid authentication algorithm",
        "invalid integrity algorithm",
        "invalid confidentiality algorithm",
        "no cipher suite match",
        "no matching cipher suite",
        "unsupported cipher suite",
    ]) {
        return Refusal::Cipher;
    }
    let (kind, why) = if has(&["hmac is invalid", "invalid integrity check value", "password verification"]) {
        (ErrorKind::Auth, "it refuses the password")
    } else if has(&["unauthorized name", "invalid user name"]) {
        (ErrorKind::Auth, "it refuses the user")
    } else if has(&["insufficient privilege", "privilege level", "unauthorized role"]) {
        (ErrorKind::Auth, "the user lacks the privilege")
    } else if has(&["address lookup for", "could not open socket"]) {
        (ErrorKind::Unreachable, "the address cannot be resolved or reached")
    } else if has(&["get auth capabilities error", "authentication capabilities request"]) {
        (ErrorKind::Unreachable, "no answer to RMCP")
    } else if has(&["not supported in present state", "node busy"]) {
        (ErrorKind::Conflict, "it cannot do that in the present state")
    } else if has(&["insufficient resources", "out of space", "no slots"]) {
        (ErrorKind::Conflict, "it has no free session")
    } else if has(&["invalid command", "invalid data field", "parameter not supported"]) {
        (ErrorKind::Unsupported, "it does not have the command")
    } else if has(&["timeout", "no response from remote controller"]) {
        (ErrorKind::Timeout, "it stopped answering")
    } else {
        (ErrorKind::Protocol, "ipmitool failed")
    };
    Refusal::Other(kind, why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn power() {
        assert_eq!(power_state("Chassis Power is on\n"), Some(PowerState::On));
        assert_eq!(
            power_state("Loading IANA PEN Registry...\nChassis Power is off\n"),
            Some(PowerState::Off)
        );
        assert_eq!(power_state("Chassis Power is one"), None);
    }

    #[test]
    fn boot_flags() {
        let setting = boot_setting("Boot parameter version: 1\n Boot parameter data: e004000000\n").unwrap();
        let expected =
            BootSetting { device: Some(BootDevice::Pxe), persistent: Some(true), mode: Some(BootMode::Uefi) };
        assert_eq!(setting, expected);
        let none = boot_setting("Boot parameter data: 0000000000").unwrap();
        assert_eq!((none.device, none.persistent), (None, None));
        for bad in ["", "Boot parameter data:", "Boot parameter data: zz", "Boot parameter data: é0é0"] {
            assert_eq!(boot_setting(bad), None, "{bad}");
        }
    }

    #[test]
    fn refusals_as_the_tool_words_them() {
        let session = "Error: Unable to establish IPMI v2 / RMCP+ session";
        let kind = |text: &str| match refusal(&format!("{text}\n{session}")) {
            Refusal::Cipher => None,
            Refusal::Other(kind, _) => Some(kind),
        };
        assert_eq!(kind("Error in open session response message : invalid authentication algorithm"), None);
        assert_eq!(kind("> RAKP 2 HMAC is invalid"), Some(ErrorKind::Auth));
        assert_eq!(kind("RAKP 2 message indicates an error : unauthorized name"), Some(ErrorKind::Auth));
        assert_eq!(kind("Get Auth Capabilities error"), Some(ErrorKind::Unreachable));
        assert_eq!(kind("Address lookup for no.such.invalid failed"), Some(ErrorKind::Unreachable));
        assert_eq!(kind("Command not supported in present state"), Some(ErrorKind::Conflict));
        assert_eq!(kind("what?"), Some(ErrorKind::Protocol));
    }

    proptest! {
        #[test]
        fn nothing_that_is_printed_makes_us_panic(text in ".{0,200}", data in "[0-9a-fé]{0,12}") {
            let _ = (power_state(&text), refusal(&text), boot_setting(&text));
            let _ = boot_setting(&format!("Boot parameter data: {data}"));
        }
    }
}
