//! Compressed images: recognised by their first bytes, decompressed while they arrive; the frames of Zstandard at the
//! same time (docs/decisions/0045-parallel-decoding.md).

mod frames;
mod ordered;
mod scan;

use crate::error::ImageError;
use std::io::{self, BufRead, Read};

/// Largest window of a decoder, in bytes: what an agent in 256 MB of memory can give away.
pub const WINDOW: u64 = 64 << 20;
/// What a decoder of xz may use: the window and its tables.
const XZ_MEMORY: u64 = WINDOW + (2 << 20);

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip (RFC 1952), one or more members.
    Gzip,
    /// xz, one or more streams.
    Xz,
    /// Zstandard (RFC 8878), one or more frames.
    Zstd,
    /// bzip2, one or more streams.
    Bzip2,
}

impl Compression {
    /// By the first bytes of a file.
    pub fn of(head: &[u8]) -> Self {
        let skippable = head.len() >= 4 && head[0] & 0xf0 == 0x50 && head[1..4] == [0x2a, 0x4d, 0x18];
        match head {
            [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ if skippable => Compression::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Compression::Bzip2,
            _ => Compression::None,
        }
    }

    /// `gzip`
    pub fn as_str(self) -> &'static str {
        match self {
            Compression::None => "plain",
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
        }
    }

    /// Decompressed size, where the first bytes contain it: of a Zstandard frame that is the whole file. Further frames
    /// make it a lower bound.
    pub fn content_size(self, head: &[u8]) -> Option<u64> {
        match self {
            Compression::Zstd => zstd::zstd_safe::get_frame_content_size(head).ok().flatten(),
            _ => None,
        }
    }

    /// What `input` decompresses to.
    ///
    /// # Errors
    /// When a decoder cannot be made.
    pub fn reader<'a>(self, input: impl BufRead + 'a) -> Result<Box<dyn Read + 'a>, ImageError> {
        let failed = |error: io::Error| self.error(error);
        Ok(match self {
            Compression::None => Box::new(input),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
            Compression::Xz => {
                let flags = liblzma::stream::CONCATENATED;
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags);
                let stream = stream.map_err(|error| failed(error.into()))?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(input, stream))
            }
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(input).map_err(failed)?;
                decoder.window_log_max(frames::WINDOW_LOG).map_err(failed)?;
                Box::new(decoder)
            }
        })
    }

    /// The same, with so many decoders where the file has parts that can be decoded at the same time.
    ///
    /// # Errors
    /// When a decoder cannot be made.
    pub fn reader_with(
        self,
        decoders: usize,
        input: impl BufRead + Send + 'static,
    ) -> Result<Box<dyn Read>, ImageError> {
        if self != Compression::Zstd || decoders < 2 {
            return self.reader(input);
        }
        let frames = frames::Frames::new(decoders, input).map_err(|error| self.error(error))?;
        Ok(Box::new(frames))
    }

    /// An error of its reader: that of the stage before, or its own with what helps.
    pub fn error(self, error: io::Error) -> ImageError {
        ImageError::from_io(error, |own| {
            let text = own.to_string();
            let window = text.contains("memory limit") || text.contains("too much memory");
            let problem = match self {
                Compression::Xz if window => too_wide("xz -d < IMAGE | xz -6 > NEW"),
                Compression::Zstd if window => too_wide("zstd -d < IMAGE | zstd -19 > NEW"),
                _ if own.kind() == io::ErrorKind::UnexpectedEof => "it ends before its end".to_owned(),
                _ => text,
            };
            ImageError::Unpack { kind: self.as_str(), problem }
        })
    }
}

fn too_wide(command: &str) -> String {
    format!("its window is larger than {} MiB; repack the image: {command}", WINDOW >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// `content` through a real tool.
    fn packed(command: &[&str], content: &[u8]) -> Vec<u8> {
        let mut child = Command::new(command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect(command[0]);
        let mut input = child.stdin.take().expect("a pipe");
        let content = content.to_vec();
        let feeder = std::thread::spawn(move || io::Write::write_all(&mut input, &content));
        let output = child.wait_with_output().expect("output");
        feeder.join().expect("no panic").expect("fed");
        assert!(output.status.success(), "{command:?}");
        output.stdout
    }

    fn content() -> Vec<u8> {
        (0..300_000u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, ImageError> {
        let kind = Compression::of(bytes);
        let mut all = Vec::new();
        kind.reader(bytes)?.read_to_end(&mut all).map_err(|error| kind.error(error))?;
        Ok(all)
    }

    #[test]
    fn what_the_tools_pack_is_unpacked() {
        let content = content();
        for (command, kind) in [
            (&["gzip", "-6"][..], Compression::Gzip),
            (&["xz", "-1"], Compression::Xz),
            (&["zstd", "-3"], Compression::Zstd),
            (&["bzip2", "-1"], Compression::Bzip2),
            (&["cat"], Compression::None),
        ] {
            let once = packed(command, &content);
            assert_eq!(Compression::of(&once), kind);
            assert_eq!(unpacked(&once).expect("unpacked"), content, "{kind:?}");
            let twice = [once.clone(), once.clone()].concat();
            assert_eq!(unpacked(&twice).expect("two streams").len(), 2 * content.len(), "{kind:?}");
            if kind != Compression::None {
                let error = unpacked(&once[..once.len() - 20]).expect_err("a part");
                assert!(error.to_string().contains(kind.as_str()), "{error}");
            }
        }
    }

    fn unpacked_in_parts(bytes: Vec<u8>) -> Result<Vec<u8>, ImageError> {
        let mut all = Vec::new();
        let mut reader = Compression::Zstd.reader_with(3, io::Cursor::new(bytes))?;
        reader.read_to_end(&mut all).map_err(|error| Compression::Zstd.error(error))?;
        assert_eq!(reader.read(&mut [0; 9]).expect("the end"), 0);
        Ok(all)
    }

    /// Frames of many sizes: with nothing in it, small, larger than what waits, and with a window of their own.
    fn frames() -> Vec<(Vec<u8>, Vec<u8>)> {
        let content = content();
        let noise: Vec<u8> = (0..1_100_000u32)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).rotate_left(n % 31).to_le_bytes())
            .collect();
        let mut all = vec![(vec![0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], Vec::new())];
        for part in [&content[..], &[], &content[..9], &noise, &vec![0; 9 << 20], &content[5..70_000]] {
            for level in ["-3", "-19"] {
                all.push((packed(&["zstd", level], part), part.to_vec()));
            }
        }
        all
    }

    #[test]
    fn frames_that_are_decoded_at_the_same_time_come_in_their_order() {
        let frames = [frames(), frames()].concat();
        let file: Vec<u8> = frames.iter().flat_map(|(packed, _)| packed.clone()).collect();
        let content: Vec<u8> = frames.iter().flat_map(|(_, content)| content.clone()).collect();
        assert!(unpacked_in_parts(file).expect("unpacked") == content);
    }

    #[test]
    fn a_frame_that_is_corrupt_or_cut_off_fails_with_its_cause() {
        let good = packed(&["zstd", "-3"], &content());
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle..middle + 32].fill(0xff);
        let file = [good.clone(), bad, good.clone()].concat();
        let error = unpacked_in_parts(file).expect_err("corrupt").to_string();
        assert!(error.starts_with("the zstd stream of the image"), "{error}");
        for (file, expected) in [
            ([&good[..], &good[..good.len() - 9]].concat(), "it ends before its end"),
            ([&good[..], &good[..2]].concat(), "it ends before its end"),
            ([&good[..], b"something else"].concat(), "frame"),
        ] {
            let error = unpacked_in_parts(file).expect_err("cut off").to_string();
            assert!(error.contains(expected), "{error}");
        }
        let wide = packed(&["zstd", "--long=27", "--ultra", "-22"], &[7; 1000]);
        let error = unpacked_in_parts([good, wide].concat()).expect_err("too wide").to_string();
        assert!(error.contains("64 MiB"), "{error}");
    }

    #[test]
    fn a_reader_that_goes_away_ends_the_decoders() {
        let file = packed(&["zstd", "-3"], &vec![0; 64 << 20]).repeat(9);
        let mut reader = Compression::Zstd.reader_with(3, io::Cursor::new(file)).expect("a reader");
        assert_eq!(reader.read(&mut [1; 9]).expect("read"), 9);
        // It joins its threads.
        drop(reader);
    }

    #[test]
    fn a_window_that_is_too_wide_is_refused_with_the_command_that_helps() {
        let content = vec![7; 1000];
        for (command, expected) in [
            (&["xz", "--lzma2=dict=96MiB"][..], "xz -d < IMAGE"),
            (&["zstd", "--long=27", "--ultra", "-22"], "zstd -d < IMAGE"),
        ] {
            let error = unpacked(&packed(command, &content)).expect_err("too wide").to_string();
            assert!(error.contains("64 MiB") && error.contains(expected), "{error}");
        }
        assert_eq!(unpacked(&packed(&["xz", "--lzma2=dict=64MiB"], &content)).expect("as wide"), content);
    }

    #[test]
    fn a_frame_contains_its_size() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("x");
        std::fs::write(&path, vec![1; 5_000_000]).expect("written");
        let packed = packed(&["zstd", "-q", "-c", path.to_str().expect("utf-8")], &[]);
        assert_eq!(Compression::Zstd.content_size(&packed), Some(5_000_000));
        assert_eq!(Compression::Gzip.content_size(&packed), None);
    }
}
