//! What the sanitize families of NVMe, ATA and SCSI have in common.

/// The sanitize operations of a drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// The drive's encryption key is replaced.
    Crypto,
    /// Every block of the medium is erased electrically.
    Block,
    /// Every block of the medium is overwritten by the drive.
    Overwrite,
}

/// Which operations a drive has, and where its last one stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Support {
    /// Cryptographic erase.
    pub crypto: bool,
    /// Block erase.
    pub block: bool,
    /// Overwrite.
    pub overwrite: bool,
    /// State; `None` when the drive does not report it. Sanitize is then not used, since the end of an operation could
    /// not be seen.
    pub state: Option<State>,
}

/// Where the last sanitize operation of a drive stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// None is running. The result of an operation that another host started is not trusted.
    Idle,
    /// One is running; done so far in 65536ths.
    Running(u16),
    /// The last one failed; the drive takes no reads or writes before another one succeeded.
    Failed,
    /// The drive refuses sanitize commands until it is powered off.
    Frozen,
}

impl Support {
    /// Whether the drive has the operation and takes it now.
    pub fn takes(&self, operation: Operation) -> bool {
        let has = match operation {
            Operation::Crypto => self.crypto,
            Operation::Block => self.block,
            Operation::Overwrite => self.overwrite,
        };
        has && matches!(self.state, Some(State::Idle | State::Running(_) | State::Failed))
    }
}
