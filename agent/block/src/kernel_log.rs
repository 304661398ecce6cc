//! The kernel's messages (Documentation/ABI/testing/dev-kmsg of Linux).

use nix::fcntl::OFlag;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A record is at most this long (`CONSOLE_EXT_LOG_MAX` of the kernel).
const RECORD_BYTES: usize = 8192;

/// Passes on all records of `/dev/kmsg` that are still kept, the oldest first: `priority,sequence,microseconds,flags;text`, and behind it
/// one line ` KEY=value` for each property of the device that the text is about.
///
/// # Errors
/// The file cannot be opened, which takes CAP_SYSLOG, or cannot be read.
pub fn read(kmsg: &Path, mut record: impl FnMut(&[u8])) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(kmsg)?;
    let mut bytes = [0; RECORD_BYTES];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(length) => record(&bytes[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            // EPIPE: the record was overwritten while we read; the next read goes on after the gap.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
}
