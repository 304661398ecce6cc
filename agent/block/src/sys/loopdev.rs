//! ioctls of `linux/loop.h`: a file as a block device.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `LO_FLAGS_READ_ONLY`.
const READ_ONLY: u32 = 1;
/// `LO_FLAGS_AUTOCLEAR`: let go of the file when the last user is gone.
const AUTOCLEAR: u32 = 4;

/// `struct loop_info64`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` (Linux 5.8).
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

// As the kernel's headers have them on 64-bit.
const _: () = assert!(size_of::<Info>() == 232 && size_of::<Config>() == 304);

mod raw {
    nix::ioctl_write_ptr_bad!(loop_configure, 0x4C0A, super::Config);
    nix::ioctl_none_bad!(loop_ctl_get_free, 0x4C82);
}

/// The number of an unused loop device (`LOOP_CTL_GET_FREE` on `/dev/loop-control`).
pub(crate) fn free(control: &File) -> io::Result<u32> {
    // SAFETY: the descriptor is open for the whole call; the ioctl takes no argument.
    let number = unsafe { raw::loop_ctl_get_free(control.as_raw_fd()) }?;
    u32::try_from(number).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// The first `size` bytes of `file` as `device`, read-only, until its last user is gone (`LOOP_CONFIGURE`).
pub(crate) fn configure(device: &File, file: &File, size: u64) -> io::Result<()> {
    let fd = u32::try_from(file.as_raw_fd()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let info = Info {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        sizelimit: size,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: READ_ONLY | AUTOCLEAR,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let config = Config { fd, block_size: 0, info, reserved: [0; 8] };
    // SAFETY: both descriptors are open for the whole call, the kernel reads one `loop_config`, whose layout is that
    // of its header, and takes its own reference to the file.
    unsafe { raw::loop_configure(device.as_raw_fd(), &config) }?;
    Ok(())
}
