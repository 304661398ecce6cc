//! The smallest tar writer: regular files in ustar format (POSIX.1-1988), nothing else.

const BLOCK: usize = 512;

/// A growing archive.
#[derive(Default)]
pub struct Tar {
    bytes: Vec<u8>,
}

impl Tar {
    /// Append a file. `name` is at most 100 ASCII characters.
    pub fn add(&mut self, name: &'static str, content: &[u8]) {
        let mut header = [0_u8; BLOCK];
        let mut field = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
        field(0, name);
        field(100, "0000600\0");
        field(108, "0000000\0");
        field(116, "0000000\0");
        field(124, &format!("{:011o}\0", content.len()));
        field(136, "00000000000\0");
        field(148, "        ");
        field(156, "0");
        field(257, "ustar\x0000");
        let checksum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{checksum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }

    /// The whole archive with its end mark.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::Tar;
    use std::process::Command;

    #[test]
    fn tar_reads_what_we_wrote() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut tar = Tar::default();
        tar.add("a.txt", b"first");
        tar.add("b.bin", &[7; 1000]);
        std::fs::write(dir.path().join("x.tar"), tar.finish()).expect("written");
        let done =
            Command::new("tar").args(["-xf", "x.tar"]).current_dir(dir.path()).output().expect("tar runs");
        assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
        assert_eq!(std::fs::read(dir.path().join("a.txt")).expect("a"), b"first");
        assert_eq!(std::fs::read(dir.path().join("b.bin")).expect("b"), [7; 1000]);
    }
}
