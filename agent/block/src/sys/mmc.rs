//! `MMC_IOC_CMD` and `MMC_IOC_MULTI_CMD` of `linux/mmc/ioctl.h`.

use crate::mmc::Command;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `struct mmc_ioc_cmd`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Raw {
    write_flag: i32,
    is_acmd: i32,
    opcode: u32,
    arg: u32,
    response: [u32; 4],
    flags: u32,
    blksz: u32,
    blocks: u32,
    postsleep_min_us: u32,
    postsleep_max_us: u32,
    data_timeout_ns: u32,
    cmd_timeout_ms: u32,
    pad: u32,
    data_ptr: u64,
}

/// Commands that go to the device with no other between them.
const MOST: usize = 3;

/// `struct mmc_ioc_multi_cmd`, with room for as many.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Multi {
    count: u64,
    commands: [Raw; MOST],
}

// As the kernel's header has them; it counts the second without its commands.
const _: () = assert!(size_of::<Raw>() == 72 && size_of::<Multi>() == 8 + MOST * 72);

mod raw {
    // _IOWR(MMC_BLOCK_MAJOR, 0, struct mmc_ioc_cmd), _IOWR(MMC_BLOCK_MAJOR, 1, struct mmc_ioc_multi_cmd)
    nix::ioctl_readwrite!(command, 179, 0, super::Raw);
    nix::ioctl_readwrite_bad!(multi, nix::request_code_readwrite!(179, 1, 8), super::Multi);
}

/// Send up to three commands, one of them at most with data, which fills `data`; the first word of each response.
pub(crate) fn run(file: &File, commands: &[Command], data: &mut [u8]) -> io::Result<Vec<u32>> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let length: u32 = commands.iter().map(|command| command.length).sum();
    let alone = commands.iter().filter(|command| command.length > 0).count() < 2;
    if commands.is_empty() || commands.len() > MOST || !alone || data.len() != length as usize {
        return Err(invalid());
    }
    let mut multi = Multi { count: commands.len() as u64, commands: [Raw::default(); MOST] };
    for (raw, command) in multi.commands.iter_mut().zip(commands) {
        *raw = Raw {
            opcode: command.opcode,
            arg: command.arg,
            flags: command.flags,
            blksz: command.length,
            blocks: u32::from(command.length > 0),
            // Whatever goes to the device without data counts as written.
            write_flag: i32::from(command.length == 0),
            cmd_timeout_ms: u32::try_from(command.timeout.as_millis()).unwrap_or(u32::MAX),
            data_ptr: if command.length > 0 { data.as_mut_ptr() as u64 } else { 0 },
            ..Raw::default()
        };
    }
    // SAFETY: the descriptor is open for the whole call; `multi` has the kernel's layout (checked above) and says how many
    // of its commands count; `data_ptr` is null or describes `data`, whose length is that of the one command with data and
    // which is exclusively borrowed until the ioctl has returned.
    unsafe {
        match commands {
            // The kernel looks after a sanitize only where it comes alone.
            [_] => raw::command(file.as_raw_fd(), &mut multi.commands[0]),
            _ => raw::multi(file.as_raw_fd(), &mut multi),
        }
    }?;
    Ok(multi.commands[..commands.len()].iter().map(|raw| raw.response[0]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_kernels_and_what_does_not_fit_is_not_sent() {
        assert_eq!(nix::request_code_readwrite!(179, 0, size_of::<Raw>()), 0xc048_b300);
        assert_eq!(nix::request_code_readwrite!(179, 1, 8), 0xc008_b301);
        let file = File::open("/dev/null").unwrap();
        let error = |commands: &[Command], data: &mut [u8]| run(&file, commands, data).unwrap_err();
        let (question, second) = (Command::SEND_EXT_CSD, std::time::Duration::from_secs(1));
        assert_eq!(error(&[question], &mut [0; 512]).raw_os_error(), Some(nix::libc::ENOTTY));
        assert_eq!(error(&Command::erase(0, 1, second), &mut []).raw_os_error(), Some(nix::libc::ENOTTY));
        for (commands, length) in [(vec![question], 8), (vec![question; 2], 1024), (vec![], 0)] {
            assert_eq!(error(&commands, &mut vec![0; length]).kind(), io::ErrorKind::InvalidInput);
        }
    }
}
