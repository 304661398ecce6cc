//! Sense data (SPC-6 4.4).

/// An error, or an operation in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sense {
    /// Sense key.
    pub key: u8,
    /// Additional sense code and qualifier.
    pub code: (u8, u8),
    /// Progress of the operation, in 65536ths.
    pub progress: Option<u16>,
}

impl Sense {
    /// Nothing to say.
    pub const NONE: Sense = sense(0, (0, 0));
    /// INVALID COMMAND OPERATION CODE.
    pub const INVALID_OPERATION: Sense = sense(5, (0x20, 0));
    /// LOGICAL BLOCK ADDRESS OUT OF RANGE.
    pub const OUT_OF_RANGE: Sense = sense(5, (0x21, 0));
    /// INVALID FIELD IN CDB.
    pub const INVALID_FIELD: Sense = sense(5, (0x24, 0));
    /// INVALID FIELD IN PARAMETER LIST.
    pub const INVALID_PARAMETER: Sense = sense(5, (0x26, 0));
    /// SECURITY CONFLICT IN TRANSLATED DEVICE, of a locked drive.
    pub const LOCKED: Sense = sense(7, (0x74, 0x79));
    /// SANITIZE COMMAND FAILED.
    pub const SANITIZE_FAILED: Sense = sense(3, (0x31, 0x03));
    /// NO ADDITIONAL SENSE INFORMATION, of an aborted ATA command.
    pub const ABORTED: Sense = sense(0xb, (0, 0));
    /// ATA PASS THROUGH INFORMATION AVAILABLE.
    pub const REGISTERS: Sense = sense(1, (0, 0x1d));

    /// LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS.
    pub fn sanitizing(progress: u16) -> Sense {
        Sense { progress: Some(progress), ..sense(2, (0x04, 0x1b)) }
    }

    /// LOGICAL UNIT NOT READY, FORMAT IN PROGRESS.
    pub fn formatting(progress: u16) -> Sense {
        Sense { progress: Some(progress), ..sense(2, (0x04, 0x04)) }
    }

    /// Fixed format, 18 bytes.
    pub fn fixed(self) -> Vec<u8> {
        let [high, low] = self.progress.unwrap_or(0).to_be_bytes();
        let valid = if self.progress.is_some() { 0x80 } else { 0 };
        vec![0x70, 0, self.key, 0, 0, 0, 0, 10, 0, 0, 0, 0, self.code.0, self.code.1, 0, valid, high, low]
    }

    /// Descriptor format with one descriptor, if any.
    pub fn with_descriptor(self, descriptor: &[u8]) -> Vec<u8> {
        let length = u8::try_from(descriptor.len()).unwrap_or(0);
        let mut bytes = vec![0x72, self.key, self.code.0, self.code.1, 0, 0, 0, length];
        bytes.extend_from_slice(descriptor);
        bytes
    }
}

const fn sense(key: u8, code: (u8, u8)) -> Sense {
    Sense { key, code, progress: None }
}
