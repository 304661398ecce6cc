//! The security feature set (ACS-4 4.16, 7.38 to 7.43).

use super::{Command, Protocol, SECTOR};

/// The password that is set for the time of an erase, and cleared after it. It is no secret and no protection: it
/// is public, so that a drive that lost power in between can be unlocked by any later run or tool.
pub const PASSWORD: &[u8; 32] = b"Anneal erase, not a secret.     ";

/// Passwords that other erase tools leave behind when they die between setting and clearing theirs:
/// ironic-python-agent (`NULL`, and the empty one of older hdparm), NICo's scout (`p`), nwipe and hdparm guides.
pub const KNOWN: &[&[u8]] = &[PASSWORD, b"NULL", b"", b"p", b"nwipe", b"password", b"PasSWorD"];

impl Command {
    /// SECURITY SET PASSWORD (7.42).
    pub const SECURITY_SET_PASSWORD: Command = out(0xf1);
    /// SECURITY UNLOCK (7.43).
    pub const SECURITY_UNLOCK: Command = out(0xf2);
    /// SECURITY ERASE PREPARE (7.39): must stand directly before an erase.
    pub const SECURITY_ERASE_PREPARE: Command =
        Command { code: 0xf3, features: 0, count: 0, lba: 0, extend: false, protocol: Protocol::NonData };
    /// SECURITY ERASE UNIT (7.40).
    pub const SECURITY_ERASE_UNIT: Command = out(0xf4);
    /// SECURITY DISABLE PASSWORD (7.38).
    pub const SECURITY_DISABLE_PASSWORD: Command = out(0xf6);
}

const fn out(code: u8) -> Command {
    Command { code, features: 0, count: 1, lba: 0, extend: false, protocol: Protocol::Out }
}

/// The data of a security command: the user password, compared with or set to `password` (at most 32 bytes, padded
/// with zeroes). Word 0 bit 0 (master) and bit 8 (capability maximum) stay clear: with capability high the vendor's
/// master password can still rescue the drive.
pub fn data(password: &[u8]) -> [u8; SECTOR] {
    let mut data = [0; SECTOR];
    let length = password.len().min(32);
    data[2..2 + length].copy_from_slice(&password[..length]);
    data
}

/// The data of SECURITY ERASE UNIT: as [`data`], with ERASE MODE (word 0 bit 1) for an enhanced erase.
pub fn erase_data(password: &[u8], enhanced: bool) -> [u8; SECTOR] {
    let mut data = data(password);
    data[0] |= u8::from(enhanced) << 1;
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_bytes_of_the_security_commands() {
        let out = |code: u8| [0x85, 0x0a, 0x06, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, code, 0];
        assert_eq!(Command::SECURITY_SET_PASSWORD.pass_through(), out(0xf1));
        assert_eq!(Command::SECURITY_UNLOCK.pass_through(), out(0xf2));
        assert_eq!(Command::SECURITY_ERASE_UNIT.pass_through(), out(0xf4));
        assert_eq!(Command::SECURITY_DISABLE_PASSWORD.pass_through(), out(0xf6));
        let prepare = [0x85, 0x06, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf3, 0];
        assert_eq!(Command::SECURITY_ERASE_PREPARE.pass_through(), prepare);
    }

    #[test]
    fn frozen_bytes_of_the_security_data() {
        let (plain, enhanced) = (data(b"p"), erase_data(PASSWORD, true));
        assert_eq!(plain[..4], [0, 0, b'p', 0]);
        assert!(plain[4..].iter().all(|&byte| byte == 0));
        assert_eq!(enhanced[..2], [0b10, 0]);
        assert_eq!(&enhanced[2..34], PASSWORD);
        assert_eq!(erase_data(PASSWORD, false), data(PASSWORD));
        assert_eq!(data(&[7; 40])[2..36], [[7; 32].as_slice(), &[0; 2]].concat());
    }
}
