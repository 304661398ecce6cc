//! The EXT_CSD register (JESD84-B51, 7.4).

use std::time::Duration;

/// Bytes of the register.
pub const LENGTH: usize = 512;

/// A unit of HC_ERASE_GRP_SIZE in sectors of 512 bytes.
const GROUP: u32 = 1024;
/// A unit of the sizes of boot areas and RPMB in bytes.
const AREA: u64 = 128 * 1024;
/// A unit of ERASE_TIMEOUT_MULT.
const ERASE: Duration = Duration::from_millis(300);

/// What it says of erasing, and of what else is in the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtCsd {
    /// Sectors of 512 bytes of the user area (SEC_COUNT).
    pub sectors: u32,
    /// It has Sanitize (SEC_FEATURE_SUPPORT, bit 6).
    pub sanitize: bool,
    /// It has secure erase (bit 0) and trim (bit 4): what the kernel's secure discard needs.
    pub secure_erase: bool,
    /// Sectors of an erase group; `None` where the high-capacity groups are not in use (ERASE_GROUP_DEF).
    pub erase_group: Option<u32>,
    /// Erase groups of a write protection group, at least 1.
    pub protect_group: u32,
    /// The most that erasing one group may take.
    pub group_time: Duration,
    /// Bytes of each of the two boot areas.
    pub boot_size: u64,
    /// Bytes of the replay protected memory block: who has its key alone can write it.
    pub rpmb_size: u64,
}

impl ExtCsd {
    /// From the register. `None` when it is too short, or of a device of before version 4.41, which has none of this.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LENGTH] = bytes.get(..LENGTH)?.try_into().ok()?;
        let [first, second, third, fourth] = [bytes[212], bytes[213], bytes[214], bytes[215]];
        let features = bytes[231];
        let group = GROUP * u32::from(bytes[224]);
        (bytes[192] >= 5).then(|| ExtCsd {
            sectors: u32::from_le_bytes([first, second, third, fourth]),
            sanitize: features & 1 << 6 != 0,
            secure_erase: features & 1 != 0 && features & 1 << 4 != 0,
            erase_group: (bytes[175] & 1 == 1 && group > 0).then_some(group),
            protect_group: u32::from(bytes[221]).max(1),
            group_time: ERASE * u32::from(bytes[223]).max(1),
            boot_size: AREA * u64::from(bytes[226]),
            rpmb_size: AREA * u64::from(bytes[168]),
        })
    }

    /// Whether all of it can be erased group by group and then sanitized: the addresses of a device of up to 2 GiB are
    /// bytes, which nothing here counts in.
    pub fn can_sanitize(&self) -> bool {
        self.sanitize && self.erase_group.is_some() && self.sectors > 1 << 22
    }

    /// Sectors of a write protection group.
    pub fn protected_at_once(&self) -> Option<u32> {
        self.erase_group.map(|group| group * self.protect_group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A device of 8 GB, as its registers are: version 5.1, groups of 512 KiB, two boot areas of 4 MiB.
    fn register() -> Vec<u8> {
        let mut bytes = vec![0; LENGTH];
        for (index, value) in [
            (168, 0x20), // RPMB_SIZE_MULT
            (175, 0x01), // ERASE_GROUP_DEF
            (192, 0x08), // EXT_CSD_REV
            (214, 0xe9), // SEC_COUNT
            (221, 0x10), // HC_WP_GRP_SIZE
            (223, 0x02), // ERASE_TIMEOUT_MULT
            (224, 0x01), // HC_ERASE_GRP_SIZE
            (226, 0x20), // BOOT_SIZE_MULT
            (231, 0x55), // SEC_FEATURE_SUPPORT
        ] {
            bytes[index] = value;
        }
        bytes
    }

    #[test]
    fn frozen_register_of_a_device() {
        let expected = ExtCsd {
            sectors: 0x00e9_0000,
            sanitize: true,
            secure_erase: true,
            erase_group: Some(1024),
            protect_group: 16,
            group_time: Duration::from_millis(600),
            boot_size: 4 << 20,
            rpmb_size: 4 << 20,
        };
        assert_eq!(ExtCsd::parse(&register()), Some(expected));
        assert_eq!(expected.protected_at_once(), Some(16384));
        assert!(expected.can_sanitize() && !ExtCsd { sectors: 1 << 22, ..expected }.can_sanitize());
        for (index, value, what) in [(175, 0, "groups"), (231, 0x15, "sanitize"), (231, 0x41, "secure")] {
            let mut bytes = register();
            bytes[index] = value;
            let found = ExtCsd::parse(&bytes).unwrap();
            let lost = match what {
                "groups" => found.erase_group.is_none() && found.protected_at_once().is_none(),
                "sanitize" => !found.sanitize && found.secure_erase,
                _ => found.sanitize && !found.secure_erase,
            };
            assert!(lost, "{what}: {found:?}");
        }
        let mut old = register();
        old[192] = 4;
        assert_eq!(ExtCsd::parse(&old), None);
        assert_eq!(ExtCsd::parse(&register()[..511]), None);
    }

    proptest! {
        #[test]
        fn no_register_makes_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 500..520)) {
            if let Some(found) = ExtCsd::parse(&bytes) {
                prop_assert!(found.protect_group > 0 && !found.group_time.is_zero());
                prop_assert!(found.protected_at_once().is_none_or(|sectors| sectors >= 1024));
            }
        }
    }
}
