//! Where the TPM of this machine is.

use super::session::Tpm;
use super::transport::{Channel, Transport};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The TPM of this device node, which is that of the kernel's resource manager, or of a software TPM's socket. `None` where
/// there is none.
///
/// # Errors
/// It cannot be opened.
pub fn open(device: &Path) -> io::Result<Option<Tpm<Box<dyn Transport + Send>>>> {
    let transport: Box<dyn Transport + Send> = match std::fs::metadata(device) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if found.file_type().is_socket() => Box::new(Channel(UnixStream::connect(device)?)),
        Ok(_) => Box::new(Channel(OpenOptions::new().read(true).write(true).open(device)?)),
    };
    Ok(Some(Tpm::new(transport)))
}
