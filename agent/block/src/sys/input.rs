//! What a process was started with.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

/// Descriptor 0 as a file.
pub(crate) fn standard_input() -> io::Result<File> {
    // SAFETY: the process was started with this descriptor, and nothing closes it.
    let input = unsafe { BorrowedFd::borrow_raw(0) };
    Ok(File::from(input.try_clone_to_owned()?))
}
