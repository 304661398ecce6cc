//! Releasing block devices: `swapoff(2)`, `STOP_ARRAY` of `linux/raid/md_u.h`, `DM_DEV_REMOVE` of
//! `linux/dm-ioctl.h`, and the status of a map before that (`DM_TABLE_STATUS`).

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `struct dm_ioctl`.
#[repr(C)]
struct DmIoctl {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
}

// As the kernel's header has it.
const SIZE: u32 = 312;
const _: () = assert!(size_of::<DmIoctl>() == SIZE as usize);

/// With room for what is answered.
#[repr(C)]
struct Answer {
    header: DmIoctl,
    room: [u8; ROOM],
}

/// Room for the status of a map, in bytes: some 80 paths.
const ROOM: usize = 4096;
const _: () = assert!(size_of::<Answer>() == SIZE as usize + ROOM);

mod raw {
    // _IO(MD_MAJOR, 0x32), _IOWR(DM_IOCTL, DM_DEV_REMOVE_CMD, struct dm_ioctl)
    nix::ioctl_none!(stop_array, 9, 0x32);
    nix::ioctl_readwrite!(dm_dev_remove, 0xfd, 4, super::DmIoctl);
    // _IOWR(DM_IOCTL, DM_TABLE_STATUS_CMD, struct dm_ioctl); the answer is behind the structure.
    nix::ioctl_readwrite_bad!(dm_table_status, nix::request_code_readwrite!(0xfd, 12, 312), super::Answer);
}

/// Stop using a device as swap.
pub(crate) fn swap_off(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a string ended by a zero byte that lives until the call has returned.
    match unsafe { libc::swapoff(path.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Stop the md array behind `file`.
pub(crate) fn stop_array(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call; the ioctl takes no argument.
    unsafe { raw::stop_array(file.as_raw_fd()) }?;
    Ok(())
}

/// Remove the device-mapper device of this number; `control` is `/dev/mapper/control`.
pub(crate) fn remove(control: &File, (major, minor): (u32, u32)) -> io::Result<()> {
    let mut call = header(SIZE, (major, minor));
    // SAFETY: the descriptor is open for the whole call; `call` has the kernel's layout (its size is checked above) and
    // says how long it is, and is exclusively borrowed until the ioctl has returned.
    unsafe { raw::dm_dev_remove(control.as_raw_fd(), &mut call) }?;
    Ok(())
}

/// The whole answer of the device-mapper device of this number to the question how its table is, header first.
pub(crate) fn table_status(control: &File, dev: (u32, u32)) -> io::Result<Vec<u8>> {
    let total =
        u32::try_from(size_of::<Answer>()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut answer = Answer { header: header(total, dev), room: [0; ROOM] };
    // SAFETY: the descriptor is open for the whole call; `answer` begins with the kernel's structure (its size is checked
    // above), says how long it is with the room behind it, and is exclusively borrowed until the ioctl has returned.
    unsafe { raw::dm_table_status(control.as_raw_fd(), &mut answer) }?;
    // SAFETY: the structure is plain bytes without padding (the sizes of its parts are checked above), and is borrowed for
    // as long as the slice lives, which is copied at once.
    Ok(unsafe { std::slice::from_raw_parts((&raw const answer).cast::<u8>(), size_of::<Answer>()) }.to_vec())
}

/// A call about the device of this number, of `size` bytes.
fn header(size: u32, (major, minor): (u32, u32)) -> DmIoctl {
    DmIoctl {
        version: [4, 0, 0],
        data_size: size,
        data_start: SIZE,
        target_count: 0,
        open_count: 0,
        flags: 0,
        event_nr: 0,
        padding: 0,
        dev: encoded(major, minor),
        name: [0; 128],
        uuid: [0; 129],
        data: [0; 7],
    }
}

/// A device number as the kernel writes it for programs (`huge_encode_dev`).
fn encoded(major: u32, minor: u32) -> u64 {
    u64::from((minor & 0xff) | (major << 8) | ((minor & !0xff) << 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_encoded_as_in_the_kernel() {
        assert_eq!([encoded(253, 0), encoded(253, 3), encoded(253, 256)], [0xfd00, 0xfd03, 0x0010_fd00]);
    }
}
