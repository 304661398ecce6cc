//! A writer of cpio "newc" archives, the format of the kernel's initramfs
//! (Linux `Documentation/driver-api/early-userspace/buffer-format.rst`).
//!
//! Nothing of the building machine gets in: owner 0, time 0, inodes counted from 1 in order of addition.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER: u32 = 0o020_000;

/// An archive being written. Entries appear in the order of the calls.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
    dirs: BTreeSet<String>,
}

impl Archive {
    /// Adds a directory and those above it, once each. The path is relative, without `./`.
    pub fn dir(&mut self, path: &str) -> Result<()> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let dir = &path[..end];
            if !self.dirs.contains(dir) {
                self.entry(dir, DIRECTORY | 0o755, (0, 0), &[])?;
                self.dirs.insert(dir.to_owned());
            }
        }
        Ok(())
    }

    /// Adds a regular file and the directories above it.
    pub fn file(&mut self, path: &str, mode: u32, data: &[u8]) -> Result<()> {
        self.parent(path)?;
        self.entry(path, REGULAR | mode, (0, 0), data)
    }

    /// Adds a character device, mode 0600.
    pub fn char_device(&mut self, path: &str, major: u32, minor: u32) -> Result<()> {
        self.parent(path)?;
        self.entry(path, CHARACTER | 0o600, (major, minor), &[])
    }

    /// The archive, closed.
    pub fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.header("TRAILER!!!", 0, (0, 0), 0);
        self.bytes
    }

    fn parent(&mut self, path: &str) -> Result<()> {
        match path.rsplit_once('/') {
            Some((parent, _)) => self.dir(parent),
            None => Ok(()),
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), data: &[u8]) -> Result<()> {
        if path.is_empty() || path.starts_with(['/', '.']) || path.contains('\0') {
            bail!("{path:?} is no path for an archive");
        }
        let size = u32::try_from(data.len()).with_context(|| format!("{path} is larger than 4 GiB"))?;
        self.inode += 1;
        self.header(path, mode, device, size);
        self.bytes.extend_from_slice(data);
        self.pad();
        Ok(())
    }

    fn header(&mut self, path: &str, mode: u32, (major, minor): (u32, u32), size: u32) {
        let links = 1 + u32::from(mode & DIRECTORY == DIRECTORY);
        let name_size = path.len() + 1;
        self.bytes.extend_from_slice(b"070701");
        let (uid, gid, time, check) = (0, 0, 0, 0);
        for field in [self.inode, mode, uid, gid, links, time, size, 0, 0, major, minor] {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(format!("{name_size:08x}{check:08x}").as_bytes());
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
    }

    /// Headers and data begin at multiples of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.char_device("dev/console", 5, 1).unwrap();
        archive.file("lib/modules/a.ko", 0o644, b"12345").unwrap();
        archive.file("lib/modules/b.ko", 0o644, b"").unwrap();
        archive.file("init", 0o755, b"x").unwrap();
        archive.finish()
    }

    #[test]
    fn same_calls_give_same_bytes_with_parents_once() {
        let bytes = sample();
        assert_eq!(bytes, sample());
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("lib/modules\0").count(), 1);
        assert!(text.starts_with("07070100000001000041ed"), "first entry is the directory dev: {text}");
        assert!(text.trim_end_matches('\0').ends_with("TRAILER!!!"));
    }

    #[test]
    fn absolute_and_empty_paths_are_refused() {
        let mut archive = Archive::default();
        assert!(archive.file("/init", 0o755, b"x").is_err());
        assert!(archive.dir("").is_err());
    }

    /// The judge is GNU cpio, where it is installed.
    #[test]
    fn gnu_cpio_lists_it() {
        use std::io::Write;
        let Ok(mut child) = std::process::Command::new("cpio")
            .args(["--list", "--quiet"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
        else {
            eprintln!("no cpio here: not judged");
            return;
        };
        child.stdin.take().unwrap().write_all(&sample()).unwrap();
        let listed = child.wait_with_output().unwrap();
        assert!(listed.status.success());
        assert_eq!(
            String::from_utf8_lossy(&listed.stdout),
            "dev\ndev/console\nlib\nlib/modules\nlib/modules/a.ko\nlib/modules/b.ko\ninit\n"
        );
    }
}
