//! What a disk is overwritten with, and how that is known again when it is read back.

use crate::aligned::is_zero;
use crate::method::{ExpectedContent, Fill, Method};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// Bytes of noise that are made at a time to be compared.
const PIECE: usize = 4096;

/// What the random content of a disk is made from: a new one for each erase, never logged or reported.
#[derive(Clone, Copy)]
pub(crate) struct Seed([u8; 32]);

impl Seed {
    /// From the kernel.
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Seed(seed))
    }
}

/// The content of one pass.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// One byte, over and over.
    Byte(u8),
    /// The key stream of ChaCha20, which can be made again from any place on.
    Noise(Seed, u64),
}

impl Content {
    /// Of a pass, counted from 0. No two passes have the same noise.
    pub(crate) fn of(fill: Fill, seed: Seed, pass: u64) -> Self {
        match fill {
            Fill::Byte(byte) => Content::Byte(byte),
            Fill::Random => Content::Noise(seed, pass),
        }
    }

    /// What is on the disk after a method whose content is known.
    pub(crate) fn after(method: Method, seed: Seed) -> Self {
        match method {
            Method::OverwriteWith(passes) => {
                Content::of(passes.last, seed, u64::from(passes.count.get()) - 1)
            }
            _ => Content::Byte(0),
        }
    }

    /// Make what belongs at `offset`, a multiple of 4.
    pub(crate) fn make(self, bytes: &mut [u8], offset: u64) {
        match self {
            Content::Byte(byte) => bytes.fill(byte),
            Content::Noise(seed, pass) => noise(seed, pass, offset).fill_bytes(bytes),
        }
    }

    /// How many of the bytes that were read at `offset`, a multiple of 4, are others.
    pub(crate) fn differing(self, bytes: &[u8], offset: u64) -> u64 {
        let other = |wanted: u8| bytes.iter().filter(|&&byte| byte != wanted).count() as u64;
        match self {
            Content::Byte(0) if is_zero(bytes) => 0,
            Content::Byte(byte) => other(byte),
            Content::Noise(seed, pass) => {
                let (mut noise, mut made) = (noise(seed, pass, offset), [0; PIECE]);
                let pieces = bytes.chunks(PIECE).map(|piece| {
                    let made = &mut made[..piece.len()];
                    noise.fill_bytes(made);
                    if piece == made {
                        return 0;
                    }
                    piece.iter().zip(made).filter(|(seen, made)| seen != made).count() as u64
                });
                pieces.sum()
            }
        }
    }
}

fn noise(seed: Seed, pass: u64, offset: u64) -> ChaCha20Rng {
    let mut noise = ChaCha20Rng::from_seed(seed.0);
    noise.set_stream(pass);
    noise.set_word_pos(u128::from(offset / 4));
    noise
}

impl ExpectedContent {
    /// What a byte or noise promises.
    pub(crate) fn of(fill: Fill) -> Self {
        match fill {
            Fill::Byte(0) => ExpectedContent::Zeroes,
            Fill::Byte(_) => ExpectedContent::Pattern,
            Fill::Random => ExpectedContent::Random,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_same_from_every_place_and_other_in_each_pass() {
        let content = Content::Noise(Seed([7; 32]), 0);
        let mut all = vec![0; 3 * PIECE];
        content.make(&mut all, 1 << 41);
        for (from, length) in [(0, 100), (4, 8), (512, 5000), (2 * PIECE, PIECE)] {
            let at = (1 << 41) + from as u64;
            assert_eq!(content.differing(&all[from..from + length], at), 0, "{from}");
            assert!(content.differing(&all[from..from + length], at + 512) > 0);
        }
        assert!(Content::Noise(Seed([7; 32]), 1).differing(&all, 1 << 41) > all.len() as u64 * 9 / 10);
        all[5000] ^= 1;
        assert_eq!(content.differing(&all, 1 << 41), 1);
        assert_eq!(Content::Byte(9).differing(&[9, 9, 8], 0), 1);
    }
}
