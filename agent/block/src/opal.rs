//! TCG Opal: drives that encrypt what they hold and give no content while they are locked.
//!
//! The kernel speaks the protocol (`linux/sed-opal.h`); here is what its answers mean. It takes drives of Opal 1 and 2
//! alone, whose specification demands that all content is encrypted: Pyrite, which does not encrypt, is none to it.

use std::fmt;

/// What the kernel says of a drive (`IOC_OPAL_GET_STATUS`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// It is an Opal drive.
    pub supported: bool,
    /// An owner has taken it over: it locks when it loses power.
    pub owned: bool,
    /// A range of it is locked.
    pub locked: bool,
    /// It shows another content, a boot record, in the place of its own (MBR shadow, not yet done).
    pub shadowed: bool,
}

impl Status {
    /// From the flags of `struct opal_status`.
    pub fn parse(flags: u32) -> Self {
        let has = |flag: u32| flags & flag != 0;
        Status {
            supported: has(0x01),
            owned: has(0x04),
            locked: has(0x08),
            shadowed: has(0x10) && !has(0x20),
        }
    }

    /// Whether what is read of the drive is not what it holds, or nothing.
    pub fn hides_content(&self) -> bool {
        self.locked || self.shadowed
    }
}

/// The PSID of a drive, which is printed on its label. It suffices to erase everything on the drive, so it is never
/// logged or reported.
#[derive(Clone, PartialEq, Eq)]
pub struct Psid(String);

impl Psid {
    /// From what an operator wrote, without spaces around it. `None` when it cannot be one: 1 to 255 visible ASCII
    /// characters (labels have 32).
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Psid(text.to_owned()))
    }

    /// As the drive wants it.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Psid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Psid(not shown)")
    }
}

/// What the status of a method means (TCG Storage Architecture Core Specification 2.01, 5.1.5), which the kernel
/// passes through where it is none of its own errors.
pub fn status_text(status: i32) -> String {
    let text = match status {
        0x01 => "the drive does not take the PSID: it is another drive's, or mistyped",
        0x03 => "the drive is busy with another session",
        0x0f => "the drive has a malfunction",
        0x12 => "the drive was given too many wrong PSIDs: power it off and on",
        0x3f => "the drive says that it failed",
        _ => return format!("TCG method status {status:#x}"),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_flags() {
        let status = |flags| Status::parse(flags);
        assert_eq!(status(0), Status::default());
        let fresh = Status { supported: true, ..Status::default() };
        assert_eq!(status(0x03), fresh);
        let owned = Status { owned: true, ..fresh };
        assert_eq!(status(0x07), owned);
        assert!(!status(0x07).hides_content());
        assert_eq!(status(0x0f), Status { locked: true, ..owned });
        assert_eq!(status(0x17), Status { shadowed: true, ..owned });
        assert_eq!(status(0x37), owned, "the shadow is done with");
        assert!(status(0x0f).hides_content() && status(0x17).hides_content());
    }

    #[test]
    fn a_psid_is_what_a_label_can_carry_and_shows_in_no_debug_text() {
        let psid = Psid::parse(" 0123456789ABCDEF0123456789ABCDEF\n").unwrap();
        assert_eq!(psid.as_bytes(), b"0123456789ABCDEF0123456789ABCDEF");
        assert_eq!(format!("{psid:?}"), "Psid(not shown)");
        for wrong in ["", "  ", "A B", "Ä", &"A".repeat(256)] {
            assert_eq!(Psid::parse(wrong), None, "{wrong:?}");
        }
    }
}
