//! What a drive remembers without power.

use crate::medium::Medium;
use crate::work::{Operation, Outcome};

/// Bytes of it.
pub const BYTES: usize = 64;
/// Distinguishes memory that was written from memory that never was.
const MAGIC: [u8; 4] = *b"DRV1";

/// Password and erase, as they outlive a loss of power.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// The user password, when one is set.
    pub password: Option<[u8; 32]>,
    /// The operation that runs, and for how many milliseconds it has.
    pub running: Option<(Operation, u32)>,
    /// How the last one ended.
    pub outcome: Option<Outcome>,
    /// The foreign operation of a busy drive, the failure of a failing one, or the lie of a liar has been.
    pub had_its_whim: bool,
}

impl Memory {
    /// Recall.
    pub fn load(medium: &dyn Medium) -> Self {
        let mut bytes = [0; BYTES];
        medium.read(0, &mut bytes);
        if bytes[..4] != MAGIC {
            return Memory::default();
        }
        let mut password = [0; 32];
        password.copy_from_slice(&bytes[16..48]);
        let elapsed = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        let pattern = [bytes[12], bytes[13], bytes[14], bytes[15]];
        Memory {
            password: (bytes[4] == 1).then_some(password),
            running: Operation::of(bytes[5], pattern).map(|operation| (operation, elapsed)),
            outcome: Outcome::of(bytes[6]),
            had_its_whim: bytes[7] == 1,
        }
    }

    /// Remember.
    pub fn save(&self, medium: &dyn Medium) {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        if let Some(password) = &self.password {
            bytes[4] = 1;
            bytes[16..48].copy_from_slice(password);
        }
        if let Some((operation, elapsed)) = self.running {
            bytes[5] = operation.code();
            bytes[8..12].copy_from_slice(&elapsed.to_le_bytes());
            bytes[12..16].copy_from_slice(&operation.pattern());
        }
        bytes[6] = self.outcome.map_or(0, Outcome::code);
        bytes[7] = u8::from(self.had_its_whim);
        medium.write(0, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::Private;

    #[test]
    fn what_was_saved_is_recalled_and_fresh_memory_is_empty() {
        let medium = Private::new(64);
        assert_eq!(Memory::load(&medium), Memory::default());
        let memory = Memory {
            password: Some([7; 32]),
            running: Some((Operation::Overwrite([1, 2, 3, 4]), 1500)),
            outcome: Some(Outcome::Failed),
            had_its_whim: true,
        };
        memory.save(&medium);
        assert_eq!(Memory::load(&medium), memory);
    }
}
