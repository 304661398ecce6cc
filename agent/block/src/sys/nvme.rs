//! `NVME_IOCTL_ADMIN_CMD` and `NVME_IOCTL_IO_CMD` of `linux/nvme_ioctl.h`.

use crate::nvme::{Completion, NvmeCommand, Queue};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Debug, Default)]
struct PassthruCommand {
    opcode: u8,
    flags: u8,
    rsvd1: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: u32,
    cdw11: u32,
    cdw12: u32,
    cdw13: u32,
    cdw14: u32,
    cdw15: u32,
    timeout_ms: u32,
    result: u32,
}

// The ioctl number encodes the size, 72 bytes.
const _: () = assert!(size_of::<PassthruCommand>() == 72);

nix::ioctl_readwrite!(nvme_admin_cmd, b'N', 0x41, PassthruCommand);

nix::ioctl_readwrite!(nvme_io_cmd, b'N', 0x43, PassthruCommand);

/// Run a command on the controller behind `file`, transferring into or out of `data` (may be empty); `Err` when
/// it did not reach the controller.
pub(crate) fn run(
    file: &File,
    command: &NvmeCommand,
    data: &mut [u8],
    timeout: Duration,
) -> io::Result<Completion> {
    let mut passthru = PassthruCommand {
        opcode: command.opcode,
        nsid: command.nsid,
        addr: if data.is_empty() { 0 } else { data.as_mut_ptr() as u64 },
        data_len: u32::try_from(data.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?,
        cdw10: command.cdw10,
        cdw11: command.cdw11,
        timeout_ms: u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX),
        ..PassthruCommand::default()
    };
    let descriptor = file.as_raw_fd();
    // SAFETY: the descriptor is open for the whole call; `passthru` has the kernel's layout (checked above)
    // and `addr`/`data_len` describe `data`, exclusively borrowed until the ioctl has returned.
    let status = unsafe {
        match command.queue {
            Queue::Admin => nvme_admin_cmd(descriptor, &mut passthru),
            Queue::Io => nvme_io_cmd(descriptor, &mut passthru),
        }
    }?;
    let status = u16::try_from(status).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Completion { status })
}
