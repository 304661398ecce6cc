//! IDENTIFY DEVICE data (ACS-4 7.13.6).

use crate::identity::{payload, text};

/// The 512 bytes.
#[derive(Debug, Clone, Copy)]
pub struct Identify<'a>(&'a [u8]);

impl<'a> Identify<'a> {
    /// From the data as the drive sends it; `None` when it is too short or its checksum (word 255) is wrong.
    pub fn new(data: &'a [u8]) -> Option<Self> {
        let data = data.get(..512)?;
        let summed = data[510] == 0xa5;
        let sum = data.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        (!summed || sum == 0).then_some(Identify(data))
    }

    /// From VPD page 89h (SAT-4 12.4.2), the page's own header included.
    pub fn from_page(page: &'a [u8]) -> Option<Self> {
        payload(page, 0x89)?;
        page.get(60..572).map(Identify)
    }

    /// A word, 0..=255.
    pub fn word(&self, index: usize) -> u16 {
        let at = (index & 0xff) * 2;
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    /// A bit of a word of which bits 15:14 are 01b when it holds anything (words 83, 84, 87, 119, 120).
    pub fn valid_bit(&self, word: usize, bit: u32) -> bool {
        let word = self.word(word);
        word >> 14 == 1 && word & (1 << bit) != 0
    }

    /// ATA strings hold two characters a word, the first in the high byte.
    fn string(&self, words: std::ops::Range<usize>) -> Option<String> {
        text(&words.flat_map(|index| self.word(index).to_be_bytes()).collect::<Vec<_>>())
    }

    /// Words 10..=19.
    pub fn serial(&self) -> Option<String> {
        self.string(10..20)
    }

    /// Words 27..=46.
    pub fn model(&self) -> Option<String> {
        self.string(27..47)
    }

    /// Word 69 bits 14 (DRAT) and 5 (RZAT): reads after TRIM are deterministic and zero.
    pub fn trim_reads_zero(&self) -> bool {
        let word = self.word(69);
        word & (1 << 14) != 0 && word & (1 << 5) != 0
    }

    /// Sectors that can be addressed: words 230..=233, 100..=103 or 60..=61, the largest.
    pub fn sectors(&self) -> u64 {
        let quad =
            |first: usize| (0..4).rev().fold(0u64, |sum, i| sum << 16 | u64::from(self.word(first + i)));
        let small = u64::from(self.word(61)) << 16 | u64::from(self.word(60));
        // Word 69 bit 3: the extended number is valid. Word 83 bit 10: 48-bit addresses.
        let extended = if self.word(69) & (1 << 3) != 0 { quad(230) } else { 0 };
        let long = if self.valid_bit(83, 10) { quad(100) } else { 0 };
        small.max(long).max(extended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identify_words() {
        let mut page = vec![0u8; 572];
        page[1] = 0x89;
        page[2..4].copy_from_slice(&568u16.to_be_bytes());
        let mut put = |word: usize, value: &str| {
            for (index, pair) in value.as_bytes().chunks(2).enumerate() {
                page[60 + (word + index) * 2] = *pair.get(1).unwrap_or(&b' ');
                page[60 + (word + index) * 2 + 1] = pair[0];
            }
        };
        put(10, "S3Z9NX0M123456");
        put(27, "Samsung SSD 860 EVO 1TB");
        page[60 + 69 * 2..][..2].copy_from_slice(&((1u16 << 14) | (1 << 5)).to_le_bytes());
        let identify = Identify::from_page(&page).unwrap();
        assert_eq!(identify.serial().as_deref(), Some("S3Z9NX0M123456"));
        assert_eq!(identify.model().as_deref(), Some("Samsung SSD 860 EVO 1TB"));
        assert!(identify.trim_reads_zero());
    }

    #[test]
    fn the_checksum_counts_where_there_is_one() {
        let mut data = [0u8; 512];
        data[510] = 0xa5;
        data[511] = 0xff_u8.wrapping_sub(0xa5).wrapping_add(1);
        assert!(Identify::new(&data).is_some());
        data[100] = 1;
        assert!(Identify::new(&data).is_none());
        data[510] = 0;
        assert!(Identify::new(&data).is_some(), "a drive without checksum");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(data in prop::collection::vec(any::<u8>(), 0..600), word: usize, bit in 0u32..16) {
            for identify in [Identify::new(&data), Identify::from_page(&data)].into_iter().flatten() {
                let _ = (identify.serial(), identify.model(), identify.trim_reads_zero(), identify.sectors());
                let _ = (identify.word(word), identify.valid_bit(word, bit));
            }
        }
    }
}
