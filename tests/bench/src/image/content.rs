//! The image: made from a seed, and packed by the usual tools.

use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file in which the image comes.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// For the table.
    pub name: &'static str,
    /// Name of the file.
    pub file: &'static str,
    /// What makes it of the file `raw`, which is a link in the same directory.
    pub pack: &'static [&'static str],
    /// Whether its parts can be unpacked at the same time.
    pub in_parts: bool,
    /// KiB of the decoder's window.
    pub window_kib: u64,
    /// The `disk_format` for ironic-python-agent, if it can write it.
    pub peer: Option<&'static str>,
}

/// All of them.
pub const KINDS: [Kind; 7] = [
    Kind { name: "raw", file: "raw", pack: &[], in_parts: false, window_kib: 0, peer: Some("raw") },
    Kind {
        name: "gz",
        file: "gz",
        pack: &["sh", "-c", "gzip -1 < raw > gz"],
        in_parts: false,
        window_kib: 32,
        peer: None,
    },
    Kind {
        name: "xz",
        file: "xz",
        pack: &["sh", "-c", "xz -1 -T2 < raw > xz"],
        in_parts: false,
        window_kib: 1024,
        peer: None,
    },
    Kind {
        name: "zst, one frame",
        file: "zst",
        pack: &["zstd", "-q", "-3", "-T2", "raw", "-o", "zst"],
        in_parts: false,
        window_kib: 2048,
        peer: None,
    },
    Kind {
        name: "zst, frames of 8 MiB",
        file: "frames.zst",
        pack: &["pzstd", "-q", "-3", "-p", "2", "raw", "-o", "frames.zst"],
        in_parts: true,
        window_kib: 2048,
        peer: None,
    },
    Kind {
        name: "qcow2, zlib",
        file: "zlib.qcow2",
        pack: &["qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", "raw", "zlib.qcow2"],
        in_parts: true,
        window_kib: 32,
        peer: Some("qcow2"),
    },
    Kind {
        name: "qcow2, zstd",
        file: "zstd.qcow2",
        pack: &[
            "qemu-img",
            "convert",
            "-f",
            "raw",
            "-O",
            "qcow2",
            "-c",
            "-o",
            "compression_type=zstd",
            "raw",
            "zstd.qcow2",
        ],
        in_parts: true,
        window_kib: 64,
        peer: Some("qcow2"),
    },
];

/// The files of one image.
#[derive(Debug)]
pub struct Images {
    dir: tempfile::TempDir,
    /// Bytes of the image.
    pub size: u64,
}

impl Images {
    /// Makes an image of `size` bytes, a multiple of 1 MiB, and all its files below `dir`.
    ///
    /// # Errors
    /// When a tool fails.
    pub fn make(dir: &Path, size: u64, seed: u64) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("anneal-bench-image-").tempdir_in(dir)?;
        let images = Images { dir, size };
        let raw = File::create(images.path("raw"))?;
        write(&mut BufWriter::with_capacity(1 << 20, raw), size, seed)?;
        for kind in KINDS {
            let Some((program, arguments)) = kind.pack.split_first() else { continue };
            let output = Command::new(program).args(arguments).current_dir(images.dir.path()).output();
            let output = output.with_context(|| (*program).to_owned())?;
            if !output.status.success() {
                bail!("{}: {}", kind.pack.join(" "), String::from_utf8_lossy(&output.stderr).trim());
            }
        }
        Ok(images)
    }

    /// Where they are.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// One of them.
    pub fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }
}

/// xorshift64*, so that a seed gives the same image everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }
}

/// A partition table, then extents of 64 KiB to 4 MiB: 40 % zeroes, 40 % words, 20 % noise.
fn write(to: &mut impl Write, size: u64, seed: u64) -> Result<()> {
    let mut random = Random(seed | 1 << 63);
    let words: Vec<Vec<u8>> = (0..4096).map(|_| word(&mut random)).collect();
    let mut head = vec![0; 1 << 20];
    head[446..450].copy_from_slice(&[0x80, 0xfe, 0xff, 0xff]);
    head[450..454].copy_from_slice(&[0x83, 0xfe, 0xff, 0xff]);
    head[454..458].copy_from_slice(&2048u32.to_le_bytes());
    head[458..462].copy_from_slice(&u32::try_from(size / 512 - 2048)?.to_le_bytes());
    head[510..512].copy_from_slice(&[0x55, 0xaa]);
    to.write_all(&head)?;
    let mut left = size - head.len() as u64;
    let mut extent = Vec::new();
    while left > 0 {
        let length = (65536u64 << random.below(7)).min(left);
        left -= length;
        let length = usize::try_from(length)?;
        extent.clear();
        match random.below(5) {
            0 | 1 => extent.resize(length, 0),
            2 | 3 => {
                while extent.len() < length {
                    let drawn = random.next();
                    // Some words are frequent, as in every text.
                    let at = (drawn & 0xfff) >> (drawn >> 12 & 7);
                    extent.extend_from_slice(&words[usize::try_from(at)?]);
                }
            }
            _ => (0..length / 8).for_each(|_| extent.extend_from_slice(&random.next().to_le_bytes())),
        }
        to.write_all(&extent[..length])?;
    }
    Ok(to.flush()?)
}

fn word(random: &mut Random) -> Vec<u8> {
    let length = 3 + random.below(8);
    let mut word: Vec<u8> = (0..length).map(|_| b'a' + u8::try_from(random.below(26)).unwrap_or(0)).collect();
    word.push(b' ');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_image_with_all_kinds_of_content() {
        let image = |seed| {
            let mut bytes = Vec::new();
            write(&mut bytes, 32 << 20, seed).unwrap();
            bytes
        };
        let one = image(7);
        assert_eq!(one.len(), 32 << 20);
        assert!(one == image(7) && one != image(8));
        let pages = || one[1 << 20..].chunks(65536);
        let zero = pages().filter(|page| page.iter().all(|&byte| byte == 0)).count();
        let text = pages().filter(|page| page.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b' '));
        let (zero, text, all) = (zero, text.count(), pages().count());
        assert!(zero > all / 8 && text > all / 8 && zero + text < all, "{zero} {text} {all}");
    }
}
