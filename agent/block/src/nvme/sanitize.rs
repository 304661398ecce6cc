//! The Sanitize command (NVM Express Base Specification 2.0, 5.24).

use super::NvmeCommand;
use crate::sanitize::Operation;

impl NvmeCommand {
    /// Sanitize, one pass of zeroes for an overwrite. In restricted completion mode (AUSE = 0): after
    /// a failure the drive gives nothing back until another sanitize succeeded.
    pub fn sanitize(operation: Operation) -> Self {
        let action = match operation {
            Operation::Block => 0b010,
            Operation::Overwrite => 0b011,
            Operation::Crypto => 0b100,
        };
        // OWPASS counts passes, 0 means sixteen; it is ignored by the other operations and stays clear in them.
        let passes = if operation == Operation::Overwrite { 1 << 4 } else { 0 };
        NvmeCommand { opcode: 0x84, cdw10: action | passes, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen_bytes_of_sanitize() {
        for (operation, cdw10) in
            [(Operation::Block, 0x02), (Operation::Overwrite, 0x13), (Operation::Crypto, 0x04)]
        {
            let mut expected = [0u8; 64];
            expected[0] = 0x84;
            expected[40] = cdw10;
            assert_eq!(NvmeCommand::sanitize(operation).entry(), expected, "{operation:?}");
        }
    }
}
