//! The kernel's messages (Documentation/ABI/testing/dev-kmsg of Linux).

use nix::fcntl::OFlag;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A record is at most this long (`CONSOLE_EXT_LOG_MAX` of the kernel).
const RECORD_BYTES: usize = 8192;

/// What is still kept of the messages since the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// All of them.
    Whole,
    /// The kernel has overwritten some with later ones.
    Part,
}

/// Passes on all records of `/dev/kmsg` that are still kept, the oldest first: `priority,sequence,microseconds,flags;text`, and behind it
/// one line ` KEY=value` for each property of the device that the text is about.
///
/// # Errors
/// The file cannot be opened, which takes CAP_SYSLOG, or cannot be read.
pub fn read(kmsg: &Path, mut record: impl FnMut(&[u8])) -> io::Result<Kept> {
    let mut file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(kmsg)?;
    let mut bytes = [0; RECORD_BYTES];
    // Nothing was read yet, so nothing says that the first record is there.
    let (mut kept, mut is_first) = (Kept::Part, true);
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(kept),
            Ok(length) => {
                if std::mem::take(&mut is_first) && sequence(&bytes[..length]) == Some(0) {
                    kept = Kept::Whole;
                }
                record(&bytes[..length]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(kept),
            // EPIPE: the record was overwritten while we read; the next read goes on after the gap.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => (kept, is_first) = (Kept::Part, false),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The number of a record: the kernel counts them from 0 on.
fn sequence(record: &[u8]) -> Option<u64> {
    let number = record.split(|byte| *byte == b',').nth(1)?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_its_first_record_is_a_part() {
        let dir = tempfile::tempdir().unwrap();
        let kmsg = dir.path().join("kmsg");
        for (records, kept) in [
            ("6,0,0,-;Linux version\n", Kept::Whole),
            ("6,1,0,-;Command line\n", Kept::Part),
            ("no record\n", Kept::Part),
            ("", Kept::Part),
        ] {
            std::fs::write(&kmsg, records).unwrap();
            let mut read = Vec::new();
            assert_eq!(
                super::read(&kmsg, |record| read.extend_from_slice(record)).unwrap(),
                kept,
                "{records}"
            );
            assert_eq!(read, records.as_bytes());
        }
        assert_eq!(super::read(&dir.path().join("none"), |_| {}).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
