//! `NVME_IOCTL_ADMIN_CMD` of `linux/nvme_ioctl.h`.

use crate::nvme::AdminCommand;
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

/// Run an admin command on the controller behind `file`, transferring into `data` (may be empty).
/// The answer is the NVMe status field, 0 for success; `Err` when the command did not reach the controller.
pub(crate) fn admin(
    file: &File,
    command: &AdminCommand,
    data: &mut [u8],
    timeout: Duration,
) -> io::Result<u16> {
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
    // SAFETY: the descriptor is open for the whole call; `passthru` has the kernel's layout (checked above)
    // and `addr`/`data_len` describe `data`, exclusively borrowed until the ioctl has returned.
    let status = unsafe { nvme_admin_cmd(file.as_raw_fd(), &mut passthru) }?;
    u16::try_from(status).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}
