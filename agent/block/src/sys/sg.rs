//! `SG_IO` of `scsi/sg.h`.

use crate::scsi::Reply;
use crate::transport::Data;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `struct sg_io_hdr`, version 3.
#[repr(C)]
#[derive(Debug)]
struct Header {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut u8,
    cmdp: *const u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut u8,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

const DXFER_NONE: i32 = -1;
const DXFER_TO_DEV: i32 = -2;
const DXFER_FROM_DEV: i32 = -3;

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Header>() == 88);

nix::ioctl_readwrite_bad!(sg_io, 0x2285, Header);

/// Run a command on the disk behind `file`.
pub(crate) fn run(file: &File, cdb: &[u8], data: Data<'_>, timeout: Duration) -> io::Result<Reply> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let mut sense = [0u8; 252];
    // Data to the drive goes through a copy: the header has one pointer for both directions.
    let mut copy = Vec::new();
    let (direction, buffer): (i32, &mut [u8]) = match data {
        Data::None => (DXFER_NONE, &mut []),
        Data::In(buffer) => (DXFER_FROM_DEV, buffer),
        Data::Out(bytes) => {
            copy.extend_from_slice(bytes);
            (DXFER_TO_DEV, &mut copy)
        }
    };
    let length = buffer.len();
    let mut header = Header {
        interface_id: i32::from(b'S'),
        dxfer_direction: direction,
        cmd_len: u8::try_from(cdb.len()).map_err(|_| invalid())?,
        mx_sb_len: u8::try_from(sense.len()).map_err(|_| invalid())?,
        iovec_count: 0,
        dxfer_len: u32::try_from(length).map_err(|_| invalid())?,
        dxferp: if length == 0 { std::ptr::null_mut() } else { buffer.as_mut_ptr() },
        cmdp: cdb.as_ptr(),
        sbp: sense.as_mut_ptr(),
        timeout: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
        flags: 0,
        pack_id: 0,
        usr_ptr: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        msg_status: 0,
        sb_len_wr: 0,
        host_status: 0,
        driver_status: 0,
        resid: 0,
        duration: 0,
        info: 0,
    };
    // SAFETY: the descriptor is open for the whole call; `header` has the kernel's layout (its size is checked
    // above), and its pointers and lengths describe `cdb`, `sense` and `buffer`, which live until the ioctl has
    // returned, the last two exclusively borrowed.
    unsafe { sg_io(file.as_raw_fd(), &mut header) }?;
    let left = usize::try_from(header.resid).unwrap_or(0);
    Ok(Reply {
        status: header.status & 0x3e,
        host: header.host_status,
        sense: sense[..usize::from(header.sb_len_wr).min(sense.len())].to_vec(),
        transferred: length.saturating_sub(left),
    })
}
