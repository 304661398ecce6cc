//! The process that looks at a device: started, read, ended.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// First argument of the process.
pub(crate) const WORD: &str = "--find-signatures";
/// Bytes that an answer may have. A disk has at most a few hundred partitions, of some 200 bytes each.
const LARGEST: usize = 1 << 20;

/// What `program` writes to its standard output, with the device as its standard input, if it ends well within `longest`.
///
/// # Errors
/// It cannot be started, is killed, ends otherwise than with status 0, writes too much, or takes too long; it is killed then.
pub(super) fn answer(mut program: Command, device: &File, longest: Duration) -> io::Result<Vec<u8>> {
    program.stdin(Stdio::from(device.try_clone()?)).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = program.spawn()?;
    let read = read(&mut child, Instant::now() + longest);
    if read.is_err() {
        let _ = child.kill();
        // A process that hangs in the kernel cannot be waited for.
        let _ = std::thread::Builder::new().name("reap".into()).spawn(move || child.wait());
        return read;
    }
    match child.wait() {
        Ok(status) if !status.success() => {
            Err(io::Error::other(format!("libblkid's process ended without an answer: {status}")))
        }
        // As init of the ramdisk the agent reaps all children: then the answer alone says whether it ended well.
        Ok(_) | Err(_) => read,
    }
}

/// Its output to the end.
fn read(child: &mut Child, deadline: Instant) -> io::Result<Vec<u8>> {
    let Some(mut output) = child.stdout.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(output.as_fd(), PollFlags::POLLIN)], left) {
            Err(nix::errno::Errno::EINTR) => continue,
            Ok(0) => {
                let text = "libblkid's process does not end: the disk hangs, or what is on it makes it hang";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            result => drop(result?),
        }
        match output.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if answer.len() > LARGEST {
            return Err(io::Error::other("libblkid's process answers without end"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(script: &str, longest: Duration) -> io::Result<Vec<u8>> {
        let mut program = Command::new("/bin/sh");
        program.args(["-c", script]);
        answer(program, &File::open("/dev/null").unwrap(), longest)
    }

    #[test]
    fn a_process_that_crashes_hangs_or_never_stops_writing_is_an_error() {
        let minute = Duration::from_secs(60);
        assert_eq!(of("printf yes", minute).unwrap(), b"yes");
        for (script, words) in [
            ("printf '{\"Found\":'; kill -SEGV $$", "signal: 11"),
            ("printf yes; exit 3", "exit status: 3"),
            ("while :; do printf 0123456789abcdef; done", "without end"),
        ] {
            let error = of(script, minute).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(of("head -c 1048576 /dev/zero", minute).unwrap().len(), LARGEST, "and not a byte more");
        let begun = Instant::now();
        let error = of("exec sleep 60", Duration::from_millis(200)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_device_is_its_standard_input() {
        let device = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&device, b"content", 0).unwrap();
        let output = answer(Command::new("cat"), &device, Duration::from_secs(60)).unwrap();
        assert_eq!(output, b"content");
    }
}
