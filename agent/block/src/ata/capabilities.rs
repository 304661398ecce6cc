//! What an ATA drive says it can do (ACS-4 7.13.6, ACS-2 for what ACS-4 dropped).

use super::identify::Identify;
use crate::sanitize::Support;
use std::time::Duration;

/// What a drive can do about its content, and in which state it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// SANITIZE DEVICE (word 59), with the state from SANITIZE STATUS EXT.
    pub sanitize: Support,
    /// The security feature set (words 82, 89, 90, 92, 128).
    pub security: Security,
    /// Sectors that can be addressed now.
    pub sectors: u64,
    /// Sectors that exist and cannot be addressed.
    pub hidden: HiddenArea,
}

/// State of the security feature set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Security {
    /// There is one.
    pub supported: bool,
    /// A user password is set.
    pub enabled: bool,
    /// The drive gives no content without the password.
    pub locked: bool,
    /// The drive takes no security command until it is powered off.
    pub frozen: bool,
    /// Too many wrong passwords: none is taken until it is powered off.
    pub expired: bool,
    /// An enhanced erase is supported.
    pub enhanced: bool,
    /// How long an erase takes, as the drive says.
    pub time: Option<Duration>,
    /// How long an enhanced erase takes, as the drive says.
    pub enhanced_time: Option<Duration>,
}

/// Sectors of a drive that cannot be addressed, by what hides them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HiddenArea {
    /// By the host protected area.
    pub host_protected: u64,
    /// By the device configuration overlay.
    pub configuration_overlay: u64,
    /// By the accessible max address configuration.
    pub accessible_max: u64,
}

/// Which questions about hidden sectors a drive answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenAreaQuestions {
    /// READ NATIVE MAX ADDRESS EXT.
    pub host_protected: bool,
    /// DEVICE CONFIGURATION IDENTIFY.
    pub configuration_overlay: bool,
    /// GET NATIVE MAX ADDRESS EXT.
    pub accessible_max: bool,
}

impl HiddenArea {
    /// All of them together.
    pub fn sectors(&self) -> u64 {
        self.host_protected.max(self.configuration_overlay).max(self.accessible_max)
    }
}

impl HiddenAreaQuestions {
    /// From IDENTIFY: words 82 (bit 10), 83 (bit 11), 119 (bit 8).
    pub fn of(identify: &Identify<'_>) -> Self {
        HiddenAreaQuestions {
            host_protected: identify.word(82) & (1 << 10) != 0 && identify.word(82) != 0xffff,
            configuration_overlay: identify.valid_bit(83, 11),
            accessible_max: identify.valid_bit(119, 8),
        }
    }
}

impl Capabilities {
    /// From IDENTIFY. State of a sanitize and hidden sectors are other questions.
    pub fn of(identify: &Identify<'_>) -> Self {
        let (sanitize, security) = (identify.word(59), identify.word(128));
        let feature_set = sanitize & (1 << 12) != 0;
        let security_bit = |bit: u32| security & (1 << bit) != 0;
        Capabilities {
            sanitize: Support {
                crypto: feature_set && sanitize & (1 << 13) != 0,
                overwrite: feature_set && sanitize & (1 << 14) != 0,
                block: feature_set && sanitize & (1 << 15) != 0,
                state: None,
            },
            security: Security {
                supported: security_bit(0) && security != 0xffff,
                enabled: security_bit(1),
                locked: security_bit(2),
                frozen: security_bit(3),
                expired: security_bit(4),
                enhanced: security_bit(5),
                time: erase_time(identify.word(89)),
                enhanced_time: erase_time(identify.word(90)),
            },
            sectors: identify.sectors(),
            hidden: HiddenArea::default(),
        }
    }

    /// Sectors of the device configuration overlay's data (ACS-2 7.8.2): the last sector there can be in words
    /// 3..=6. Its checksum makes all bytes add to zero.
    pub fn overlay_sectors(data: &[u8]) -> Option<u64> {
        let data = data.get(..512)?;
        let sum = data.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        let last: [u8; 8] = data[6..14].try_into().ok()?;
        (data[510] == 0xa5 && sum == 0).then(|| u64::from_le_bytes(last).saturating_add(1))
    }
}

/// Words 89 and 90 count in units of two minutes; with bit 15 set in bits 14:0, else in bits 7:0. 0 is unknown,
/// the largest value says "longer".
fn erase_time(word: u16) -> Option<Duration> {
    let units = if word & (1 << 15) != 0 { word & 0x7fff } else { word & 0xff };
    (units != 0).then(|| Duration::from_secs(u64::from(units) * 120))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identify(words: &[(usize, u16)]) -> Vec<u8> {
        let mut data = vec![0u8; 512];
        for &(index, word) in words {
            data[index * 2..index * 2 + 2].copy_from_slice(&word.to_le_bytes());
        }
        data
    }

    fn of(words: &[(usize, u16)]) -> Capabilities {
        Capabilities::of(&Identify::new(&identify(words)).unwrap())
    }

    #[test]
    fn sanitize_word_59() {
        let kinds = |word| {
            let found = of(&[(59, word)]).sanitize;
            (found.crypto, found.block, found.overwrite)
        };
        assert_eq!(kinds(0xf000), (true, true, true));
        assert_eq!(kinds(0x3000), (true, false, false));
        assert_eq!(kinds(0x9000), (false, true, false));
        assert_eq!(kinds(0x5000), (false, false, true));
        assert_eq!(kinds(0xe000), (false, false, false), "without the feature set the others mean nothing");
    }

    #[test]
    fn security_word_128_and_the_times() {
        let found = of(&[(89, 0x0010), (90, 0x8200), (128, 0x0021)]).security;
        assert!(found.supported && found.enhanced && !found.enabled && !found.frozen && !found.locked);
        assert_eq!(found.time, Some(Duration::from_secs(32 * 60)));
        assert_eq!(found.enhanced_time, Some(Duration::from_secs(1024 * 60)));
        let found = of(&[(128, 0x001f)]).security;
        assert!(found.enabled && found.locked && found.frozen && found.expired && !found.enhanced);
        assert_eq!(found.time, None);
        assert!(!of(&[(128, 0xffff)]).security.supported, "a drive that answers ones");
    }

    #[test]
    fn sizes_and_who_hides_sectors() {
        assert_eq!(of(&[(60, 0x5678), (61, 0x0234)]).sectors, 0x0234_5678);
        assert_eq!(of(&[(60, 1), (83, 0x4400), (100, 2), (102, 1)]).sectors, 0x1_0000_0002);
        assert_eq!(of(&[(60, 1), (83, 0x0400), (100, 2)]).sectors, 1, "word 83 is not valid");
        let data = identify(&[(82, 1 << 10), (83, 0x4800), (119, 0x4100)]);
        let questions = HiddenAreaQuestions::of(&Identify::new(&data).unwrap());
        assert!(questions.host_protected && questions.configuration_overlay && questions.accessible_max);
    }

    #[test]
    fn the_overlay_is_believed_with_its_checksum_only() {
        let mut data = identify(&[(3, 0xffff), (4, 0x0f)]);
        assert_eq!(Capabilities::overlay_sectors(&data), None);
        data[510] = 0xa5;
        data[511] = 0u8.wrapping_sub(data.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
        assert_eq!(Capabilities::overlay_sectors(&data), Some(0x10_0000));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parsers_panic(data in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = Capabilities::overlay_sectors(&data);
            if let Some(identify) = Identify::new(&data) {
                let _ = (Capabilities::of(&identify), HiddenAreaQuestions::of(&identify));
            }
        }
    }
}
