//! Where a Zstandard frame ends (RFC 8878, chapter 3.1), from its headers alone. Pure.

/// Magic number of a frame.
const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// What comes next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Next {
    /// Magic number, and the first byte behind it.
    #[default]
    Magic,
    /// The length of a skippable frame.
    Skippable,
    /// The rest of the frame's header.
    Header,
    /// The header of a block.
    Block,
    /// The frame has ended.
    End,
}

/// The present frame, as far as it has passed.
#[derive(Debug, Clone, Default)]
pub(super) struct Scan {
    next: Next,
    /// The header that is being collected.
    header: Vec<u8>,
    /// Bytes that are passed over before it.
    skip: u64,
    skippable: bool,
    window: u64,
    /// Whether four bytes of checksum follow the last block.
    checksum: bool,
    begun: bool,
}

/// It is no frame, or not one that is known: the decoder says why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown;

impl Scan {
    /// Whether a byte of it has passed.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }

    /// Whether its last byte has passed.
    pub(super) fn ended(&self) -> bool {
        self.next == Next::End && self.skip == 0
    }

    /// Whether it has no content.
    pub(super) fn skippable(&self) -> bool {
        self.skippable
    }

    /// Bytes of its window, once its header has passed.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// How many of these bytes belong to it.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<usize, Unknown> {
        let mut at = 0;
        while at < bytes.len() && !self.ended() {
            self.begun = true;
            if self.skip > 0 {
                let count = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len() - at);
                (self.skip, at) = (self.skip - count as u64, at + count);
                continue;
            }
            self.header.push(bytes[at]);
            at += 1;
            if self.header.len() == self.wanted() {
                let header = std::mem::take(&mut self.header);
                self.header(&header)?;
            }
        }
        Ok(at)
    }

    /// Bytes of the header that is being collected.
    fn wanted(&self) -> usize {
        match (self.next, self.header.get(4)) {
            (Next::Header, Some(&descriptor)) => 5 + usize::from(descriptor & 0x20 == 0) + rest(descriptor),
            (Next::Magic | Next::Header, _) => 5,
            (Next::Skippable, _) => 8,
            (Next::Block, _) => 3,
            (Next::End, _) => usize::MAX,
        }
    }

    fn header(&mut self, header: &[u8]) -> Result<(), Unknown> {
        match self.next {
            Next::Magic => {
                if header[0] & 0xf0 == 0x50 && header[1..4] == [0x2a, 0x4d, 0x18] {
                    (self.next, self.skippable) = (Next::Skippable, true);
                } else if header[..4] == FRAME && header[4] & 0x08 == 0 {
                    self.next = Next::Header;
                } else {
                    return Err(Unknown);
                }
                self.header = header.to_vec();
            }
            Next::Skippable => {
                let length = header[4..8].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
                (self.next, self.skip) = (Next::End, length);
            }
            Next::Header => {
                (self.window, self.checksum) = (window(header), header[4] & 0x04 != 0);
                self.next = Next::Block;
            }
            Next::Block => {
                let block = header.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
                self.skip = match block >> 1 & 3 {
                    0 | 2 => block >> 3,
                    // One byte, so many times.
                    1 => 1,
                    _ => return Err(Unknown),
                };
                if block & 1 == 1 {
                    self.skip += if self.checksum { 4 } else { 0 };
                    self.next = Next::End;
                }
            }
            Next::End => {}
        }
        Ok(())
    }
}

/// Bytes of dictionary identifier and content size.
fn rest(descriptor: u8) -> usize {
    let single = descriptor & 0x20 != 0;
    let size = match descriptor >> 6 {
        0 => usize::from(single),
        flag => 1 << flag,
    };
    [0, 1, 2, 4][usize::from(descriptor & 3)] + size
}

/// The window that a whole header asks for: that of the content, where there is no other.
fn window(header: &[u8]) -> u64 {
    let descriptor = header[4];
    if descriptor & 0x20 == 0 {
        let base = 1u64 << (10 + (header[5] >> 3));
        return base + base / 8 * u64::from(header[5] & 7);
    }
    let size = &header[5 + [0, 1, 2, 4][usize::from(descriptor & 3)]..];
    let size64 = size.iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte));
    if size.len() == 2 { size64 + 256 } else { size64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(
        content: &[u8],
        level: i32,
        change: impl Fn(&mut zstd::stream::Encoder<'_, Vec<u8>>),
    ) -> Vec<u8> {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), level).expect("an encoder");
        change(&mut encoder);
        std::io::Write::write_all(&mut encoder, content).expect("packed");
        encoder.finish().expect("packed")
    }

    /// Length of the first frame, passed over in pieces.
    fn length(bytes: &[u8], piece: usize) -> (usize, Scan) {
        let (mut scan, mut all) = (Scan::default(), 0);
        for piece in bytes.chunks(piece) {
            let count = scan.pass(piece).expect("a frame");
            all += count;
            if count < piece.len() || scan.ended() {
                break;
            }
        }
        assert!(scan.ended());
        (all, scan)
    }

    #[test]
    fn a_frame_ends_where_the_library_says() {
        let noise: Vec<u8> =
            (0..400_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        for content in [&b""[..], b"x", &[0; 300], &[7; 900_000], &noise] {
            for sized in [false, true] {
                for checksum in [false, true] {
                    let frame = packed(content, 3, |encoder| {
                        encoder.include_checksum(checksum).expect("set");
                        encoder.include_contentsize(sized).expect("set");
                        encoder.set_pledged_src_size(sized.then_some(content.len() as u64)).expect("set");
                    });
                    let library = zstd::zstd_safe::find_frame_compressed_size(&frame).expect("a frame");
                    let two = [frame.clone(), frame].concat();
                    for piece in [1, 7, 100_000, two.len()] {
                        assert_eq!(length(&two, piece).0, library, "{} {sized} {checksum}", content.len());
                    }
                }
            }
        }
        assert_eq!(
            length(&packed(&noise, 3, |encoder| encoder.window_log(20).expect("set")), 50).1.window(),
            1 << 20
        );
        let skippable = [&[0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..], &FRAME].concat();
        let (count, scan) = length(&skippable, 2);
        assert_eq!((count, scan.skippable()), (11, true));
        assert_eq!(Scan::default().pass(b"\x28\xb5\x2f\xfe rest"), Err(Unknown));
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), real in any::<bool>()) {
            let bytes = if real { [&FRAME[..], &bytes].concat() } else { bytes };
            if let Ok(count) = Scan::default().pass(&bytes) {
                prop_assert!(count <= bytes.len());
            }
        }
    }
}
