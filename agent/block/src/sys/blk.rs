//! ioctls of `linux/fs.h` on whole block devices.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

mod raw {
    // _IOR(0x12, 114, size_t), _IOR(0x12, 128, __u64); the rest predate the size encoding.
    nix::ioctl_read!(blkgetsize64, 0x12, 114, u64);
    nix::ioctl_read!(blkgetdiskseq, 0x12, 128, u64);
    nix::ioctl_read_bad!(blkroget, nix::request_code_none!(0x12, 94), nix::libc::c_int);
    nix::ioctl_read_bad!(blksszget, nix::request_code_none!(0x12, 104), nix::libc::c_int);
    nix::ioctl_none!(blkrrpart, 0x12, 95);
    nix::ioctl_none!(blkflsbuf, 0x12, 97);
    nix::ioctl_write_ptr_bad!(blkdiscard, nix::request_code_none!(0x12, 119), [u64; 2]);
    nix::ioctl_write_ptr_bad!(blksecdiscard, nix::request_code_none!(0x12, 125), [u64; 2]);
    nix::ioctl_write_ptr_bad!(blkzeroout, nix::request_code_none!(0x12, 127), [u64; 2]);
}

/// Size in bytes (`BLKGETSIZE64`).
pub(crate) fn size(file: &File) -> io::Result<u64> {
    let mut size = 0;
    // SAFETY: the descriptor is open for the whole call and the kernel writes one u64 (size_t on 64-bit).
    unsafe { raw::blkgetsize64(file.as_raw_fd(), &mut size) }?;
    Ok(size)
}

/// Logical sector size in bytes (`BLKSSZGET`).
pub(crate) fn logical_block(file: &File) -> io::Result<u32> {
    let mut size = 0;
    // SAFETY: the descriptor is open for the whole call and the kernel writes one int.
    unsafe { raw::blksszget(file.as_raw_fd(), &mut size) }?;
    u32::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Whether the kernel holds the device read-only (`BLKROGET`).
pub(crate) fn read_only(file: &File) -> io::Result<bool> {
    let mut flag = 0;
    // SAFETY: the descriptor is open for the whole call and the kernel writes one int.
    unsafe { raw::blkroget(file.as_raw_fd(), &mut flag) }?;
    Ok(flag != 0)
}

/// Sequence number that never repeats in one boot (`BLKGETDISKSEQ`, Linux 5.15).
pub(crate) fn sequence(file: &File) -> io::Result<u64> {
    let mut number = 0;
    // SAFETY: the descriptor is open for the whole call and the kernel writes one u64.
    unsafe { raw::blkgetdiskseq(file.as_raw_fd(), &mut number) }?;
    Ok(number)
}

/// Let the kernel read the partition table again (`BLKRRPART`).
pub(crate) fn reread_partitions(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call; the ioctl takes no argument.
    unsafe { raw::blkrrpart(file.as_raw_fd()) }?;
    Ok(())
}

/// Write back and drop the page cache of the device (`BLKFLSBUF`).
pub(crate) fn flush_buffers(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call; the ioctl takes no argument.
    unsafe { raw::blkflsbuf(file.as_raw_fd()) }?;
    Ok(())
}

/// Discard a range of bytes (`BLKDISCARD`).
pub(crate) fn discard(file: &File, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call and the kernel reads two u64 from the array.
    unsafe { raw::blkdiscard(file.as_raw_fd(), &[offset, length]) }?;
    Ok(())
}

/// Make a range of bytes read as zeroes (`BLKZEROOUT`).
pub(crate) fn zero_out(file: &File, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call and the kernel reads two u64 from the array.
    unsafe { raw::blkzeroout(file.as_raw_fd(), &[offset, length]) }?;
    Ok(())
}

/// Erase a range of bytes so that no copy of it stays (`BLKSECDISCARD`; eMMC).
pub(crate) fn secure_discard(file: &File, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open for the whole call and the kernel reads two u64 from the array.
    unsafe { raw::blksecdiscard(file.as_raw_fd(), &[offset, length]) }?;
    Ok(())
}

/// Whether the device can do that. The range asked for is no range of whole sectors: a kernel that could refuses it
/// as invalid, one that cannot as unsupported, and nothing is erased either way.
pub(crate) fn has_secure_discard(file: &File) -> bool {
    secure_discard(file, 1, 1).is_err_and(|error| error.raw_os_error() == Some(nix::libc::EINVAL))
}
