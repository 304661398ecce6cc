//! ioctls of `linux/sed-opal.h`.

use crate::opal::{Psid, Status};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `struct opal_status`.
#[repr(C)]
#[derive(Default)]
struct RawStatus {
    flags: u32,
    reserved: u32,
}

/// `struct opal_key`; the first byte of `align` says that the key is in it (`OPAL_INCLUDED`, 0).
#[repr(C)]
struct Key {
    lr: u8,
    key_len: u8,
    align: [u8; 6],
    key: [u8; 256],
}

// As the kernel's header has them.
const _: () = assert!(size_of::<RawStatus>() == 8 && size_of::<Key>() == 264);

mod raw {
    // _IOR('p', 236, struct opal_status), _IOW('p', 232, struct opal_key)
    nix::ioctl_read!(opal_get_status, b'p', 236, super::RawStatus);
    nix::ioctl_write_ptr!(opal_psid_revert, b'p', 232, super::Key);
}

/// What the kernel says of the drive; `Err` when it has no Opal, or the drive has not.
pub(crate) fn status(file: &File) -> io::Result<Status> {
    let mut status = RawStatus::default();
    // SAFETY: the descriptor is open for the whole call; `status` has the kernel's layout (its size is checked above) and
    // is exclusively borrowed until the ioctl has returned.
    unsafe { raw::opal_get_status(file.as_raw_fd(), &mut status) }?;
    Ok(Status::parse(status.flags))
}

/// Revert the drive; the status of the method, 0 when it succeeded.
pub(crate) fn revert(file: &File, psid: &Psid) -> io::Result<i32> {
    let bytes = psid.as_bytes();
    let mut key = Key { lr: 0, key_len: 0, align: [0; 6], key: [0; 256] };
    key.key_len = u8::try_from(bytes.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    key.key[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: the descriptor is open for the whole call; `key` has the kernel's layout (its size is checked above) and lives
    // until the ioctl has returned; the kernel only reads it.
    Ok(unsafe { raw::opal_psid_revert(file.as_raw_fd(), &key) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_kernels_and_a_file_has_no_opal() {
        assert_eq!(nix::request_code_read!(b'p', 236, size_of::<RawStatus>()), 0x8008_70ec);
        assert_eq!(nix::request_code_write!(b'p', 232, size_of::<Key>()), 0x4108_70e8);
        let file = File::open("/dev/null").unwrap();
        assert_eq!(status(&file).unwrap_err().raw_os_error(), Some(nix::libc::ENOTTY));
        let psid = Psid::parse("SECRET").unwrap();
        assert!(!revert(&file, &psid).unwrap_err().to_string().contains("SECRET"));
    }
}
