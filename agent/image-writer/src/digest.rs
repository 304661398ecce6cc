//! A digest of content that is written in any order.

use block::aligned::is_zero;
use image_source::digest::hex;
use ring::digest::{Context, SHA256};
use std::fmt::Write;

/// SHA-256 of bytes at hand.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&SHA256, bytes).as_ref())
}

/// A digest of content that does not depend on the order in which its leaves come: the sum, modulo 2^256, of SHA-256
/// over the offset and the bytes of each leaf that is not zero. It finds a disk that loses, moves or changes a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafSum {
    leaf: usize,
    sum: [u64; 4],
}

impl LeafSum {
    /// With leaves of so many bytes.
    pub fn new(leaf: usize) -> Self {
        LeafSum { leaf, sum: [0; 4] }
    }

    /// Bytes of a leaf.
    pub fn leaf(&self) -> usize {
        self.leaf
    }

    /// Whole leaves from `offset`; only the last of the image may be shorter.
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        for (at, leaf) in (offset..).step_by(self.leaf).zip(bytes.chunks(self.leaf)) {
            if !is_zero(leaf) {
                self.add_leaf(at, leaf);
            }
        }
    }

    /// The sum, most significant digit first.
    pub fn hex(&self) -> String {
        self.sum.iter().rev().fold(String::new(), |mut text, limb| {
            let _ = write!(text, "{limb:016x}");
            text
        })
    }

    fn add_leaf(&mut self, offset: u64, leaf: &[u8]) {
        let mut context = Context::new(&SHA256);
        context.update(&offset.to_le_bytes());
        context.update(leaf);
        let digest = context.finish();
        let mut carry = false;
        for (limb, word) in self.sum.iter_mut().zip(digest.as_ref().chunks_exact(8)) {
            let word = word.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
            let (sum, first) = limb.overflowing_add(word);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first || second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_count_with_their_places_and_in_any_order() {
        let sum = |parts: &[(u64, &[u8])]| {
            let mut sum = LeafSum::new(4);
            parts.iter().for_each(|(offset, bytes)| sum.add(*offset, bytes));
            sum
        };
        let whole = sum(&[(0, b"aaaabbbb\0\0\0\0cc")]);
        assert_eq!(sum(&[(12, b"cc"), (4, b"bbbb"), (0, b"aaaa")]), whole);
        assert_ne!(sum(&[(0, b"bbbbaaaa\0\0\0\0cc")]), whole, "two leaves changed places");
        assert_ne!(sum(&[(0, b"aaaabbbb\0\0\0\0cd")]), whole);
        assert_ne!(sum(&[(0, b"aaaabbbb")]), whole, "one was lost");
        // Of one leaf it is the SHA-256 of offset and bytes, its bytes in the reverse order.
        let mut digits: Vec<String> = sha256(b"\0\0\0\0\0\0\0\0aaaa")
            .as_bytes()
            .chunks(2)
            .map(|pair| String::from_utf8_lossy(pair).into_owned())
            .collect();
        digits.reverse();
        assert_eq!(sum(&[(0, b"aaaa")]).hex(), digits.concat());
    }
}
