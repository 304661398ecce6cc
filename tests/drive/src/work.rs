//! Erases that a drive does by itself, in its own time.

use crate::medium::Medium;

/// Operation on the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The key is changed: what is read then is noise.
    Crypto,
    /// All blocks are erased.
    Block,
    /// All sectors are written with a pattern.
    Overwrite([u8; 4]),
    /// All sectors are formatted, to zeroes.
    Format,
}

/// How the last operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Succeeded,
    /// A sanitize operation did not.
    Failed,
}

/// Bytes written at once.
const CHUNK: usize = 64 * 1024;

impl Operation {
    /// Number in the drive's memory.
    pub fn code(self) -> u8 {
        match self {
            Operation::Crypto => 1,
            Operation::Block => 2,
            Operation::Overwrite(_) => 3,
            Operation::Format => 4,
        }
    }

    /// Pattern of an overwrite.
    pub fn pattern(self) -> [u8; 4] {
        if let Operation::Overwrite(pattern) = self { pattern } else { [0; 4] }
    }

    /// The reverse of [`Operation::code`] and [`Operation::pattern`].
    pub fn of(code: u8, pattern: [u8; 4]) -> Option<Self> {
        match code {
            1 => Some(Operation::Crypto),
            2 => Some(Operation::Block),
            3 => Some(Operation::Overwrite(pattern)),
            4 => Some(Operation::Format),
            _ => None,
        }
    }

    /// Do it to a range of the medium, a multiple of eight bytes.
    pub fn apply(self, medium: &dyn Medium, range: std::ops::Range<u64>) {
        let mut noise = 0x2545_f491_4f6c_dd1d ^ range.start;
        let mut next = || {
            // Marsaglia's xorshift64.
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            noise.to_le_bytes()
        };
        let mut chunk = vec![0; CHUNK];
        let mut offset = range.start;
        while offset < range.end {
            let length = CHUNK.min(usize::try_from(range.end - offset).unwrap_or(CHUNK));
            let part = &mut chunk[..length];
            match self {
                Operation::Crypto => {
                    part.chunks_mut(8).for_each(|eight| eight.copy_from_slice(&next()[..eight.len()]))
                }
                Operation::Overwrite(pattern) => {
                    part.chunks_mut(4).for_each(|four| four.copy_from_slice(&pattern[..four.len()]));
                }
                Operation::Block | Operation::Format => part.fill(0),
            }
            medium.write(offset, part);
            offset += length as u64;
        }
    }
}

impl Outcome {
    /// Number in the drive's memory.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Succeeded => 1,
            Outcome::Failed => 2,
        }
    }

    /// The reverse of [`Outcome::code`].
    pub fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Outcome::Succeeded),
            2 => Some(Outcome::Failed),
            _ => None,
        }
    }
}
