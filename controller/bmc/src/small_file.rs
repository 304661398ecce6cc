//! Files of the operator's, such as certificates.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Largest file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// The content of a regular file of at most [`LARGEST_FILE`]. `Err` is why not.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, &'static str> {
    // A FIFO without a writer would be waited for, and a terminal would become ours.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such file",
        _ => "it cannot be opened",
    })?;
    // Asked of the open file: the name may have become another's meanwhile.
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is not a regular file");
    }
    let mut content = Vec::new();
    // Counted while it is read: a file can grow, and files of /proc have no size.
    file.take(LARGEST_FILE + 1).read_to_end(&mut content).map_err(|_| "it cannot be read")?;
    if content.len() as u64 > LARGEST_FILE {
        return Err("it is larger than 1 MiB");
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// What is read, within a deadline: a file that is waited for fails the test.
    fn promptly(path: PathBuf) -> Result<usize, &'static str> {
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || send.send(read(&path).map(|content| content.len())));
        receive.recv_timeout(Duration::from_secs(20)).expect("the file was read or rejected within 20 s")
    }

    #[test]
    fn only_regular_files_of_at_most_a_mebibyte_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        for (name, size) in [("empty", 0), ("largest", 1 << 20), ("larger", (1 << 20) + 1)] {
            std::fs::write(place(name), vec![b'x'; size]).unwrap();
        }
        assert_eq!(promptly(place("empty")), Ok(0));
        assert_eq!(promptly(place("largest")), Ok(1 << 20));
        assert_eq!(promptly(place("larger")), Err("it is larger than 1 MiB"));
        assert_eq!(promptly(place("absent")), Err("there is no such file"));
        assert!(Command::new("mkfifo").arg(place("fifo")).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", place("device")).unwrap();
        std::fs::create_dir(place("directory")).unwrap();
        for name in ["fifo", "device", "directory"] {
            assert_eq!(promptly(place(name)), Err("it is not a regular file"), "{name}");
        }
    }
}
