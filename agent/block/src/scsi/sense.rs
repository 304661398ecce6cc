//! Sense data (SPC-6 4.4).

/// Sense data in either format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sense<'a> {
    /// Sense key, 0..=15.
    pub key: u8,
    /// Additional sense code.
    pub code: u8,
    /// Its qualifier.
    pub qualifier: u8,
    /// How far the operation is in 65536ths, where the drive says.
    pub progress: Option<u16>,
    descriptors: &'a [u8],
}

impl<'a> Sense<'a> {
    /// From the bytes; `None` for what is neither format.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        match *bytes.first()? & 0x7f {
            0x70 | 0x71 => {
                let &[_, _, key, _, _, _, _, additional, ..] = bytes else { return None };
                // What the drive did not send reads as zero.
                let end = (8 + usize::from(additional)).min(bytes.len());
                let byte = |at: usize| if at < end { bytes[at] } else { 0 };
                let progress = key_specific([byte(15), byte(16), byte(17)], key & 0xf);
                Some(Sense {
                    key: key & 0xf,
                    code: byte(12),
                    qualifier: byte(13),
                    progress,
                    descriptors: &[],
                })
            }
            0x72 | 0x73 => {
                let &[_, key, code, qualifier, _, _, _, additional, ref rest @ ..] = bytes else {
                    return None;
                };
                let descriptors = &rest[..usize::from(additional).min(rest.len())];
                let mut sense = Sense { key: key & 0xf, code, qualifier, progress: None, descriptors };
                sense.progress = match sense.descriptor(0x02) {
                    Some(&[_, _, _, _, a, b, c, ..]) => key_specific([a, b, c], sense.key),
                    _ => None,
                };
                Some(sense)
            }
            _ => None,
        }
    }

    /// Whether it carries this code and qualifier.
    pub fn is(&self, code: u8, qualifier: u8) -> bool {
        (self.code, self.qualifier) == (code, qualifier)
    }

    /// The first descriptor of a type, whole with its head.
    pub fn descriptor(&self, kind: u8) -> Option<&'a [u8]> {
        let mut rest = self.descriptors;
        while let &[found, length, ..] = rest {
            let end = 2 + usize::from(length);
            let one = rest.get(..end)?;
            if found == kind {
                return Some(one);
            }
            rest = &rest[end..];
        }
        None
    }
}

/// Progress stands in the sense-key specific bytes when SKSV is set and the key is NO SENSE or NOT READY.
fn key_specific(bytes: [u8; 3], key: u8) -> Option<u16> {
    (bytes[0] & 0x80 != 0 && matches!(key, 0 | 2)).then(|| u16::from_be_bytes([bytes[1], bytes[2]]))
}

impl std::fmt::Display for Sense<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = match (self.key, self.code, self.qualifier) {
            (_, 0x04, 0x04) => "format in progress",
            (_, 0x04, 0x1b) => "sanitize in progress",
            (_, 0x20, 0x00) => "invalid command operation code",
            (_, 0x24, 0x00) => "invalid field in CDB",
            (_, 0x26, 0x00) => "invalid field in parameter list",
            (_, 0x27, _) => "write protected",
            (_, 0x31, 0x01) => "format command failed",
            (_, 0x31, 0x03) => "sanitize command failed",
            (_, 0x3a, _) => "medium not present",
            (2, ..) => "not ready",
            (3, ..) => "medium error",
            (4, ..) => "hardware error",
            (5, ..) => "illegal request",
            (6, ..) => "unit attention",
            (7, ..) => "data protect",
            (0xb, ..) => "aborted command",
            _ => "see SPC-6 annex F",
        };
        write!(f, "sense {:x}/{:02x}/{:02x} ({words})", self.key, self.code, self.qualifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sanitize_in_progress_in_both_formats() {
        let mut fixed = [0u8; 18];
        (fixed[0], fixed[2], fixed[7], fixed[12], fixed[13]) = (0x70, 0x02, 10, 0x04, 0x1b);
        (fixed[15], fixed[16], fixed[17]) = (0x80, 0x40, 0x01);
        let sense = Sense::parse(&fixed).unwrap();
        assert!(sense.is(0x04, 0x1b));
        assert_eq!((sense.key, sense.progress), (2, Some(0x4001)));
        let descriptor = [0x72, 2, 0x04, 0x1b, 0, 0, 0, 8, 0x02, 6, 0, 0, 0x80, 0x40, 0x01, 0];
        let sense = Sense::parse(&descriptor).unwrap();
        assert!(sense.is(0x04, 0x1b));
        assert_eq!((sense.key, sense.progress), (2, Some(0x4001)));
        fixed[15] = 0;
        assert_eq!(Sense::parse(&fixed).unwrap().progress, None, "without SKSV the bytes mean nothing");
        fixed[7] = 4;
        assert!(
            Sense::parse(&fixed).unwrap().is(0, 0),
            "bytes behind the additional length are not the drive's"
        );
    }

    #[test]
    fn descriptors_are_found_and_short_ones_are_not_read() {
        let sense = [0x72, 1, 0, 0x1d, 0, 0, 0, 6, 0x00, 0, 0x09, 2, 7, 8, 0, 0];
        let sense = Sense::parse(&sense).unwrap();
        assert_eq!(sense.descriptor(0x09), Some(&[0x09, 2, 7, 8][..]));
        assert_eq!(sense.descriptor(0x02), None);
        assert_eq!(
            Sense::parse(&[0x72, 1, 0, 0x1d, 0, 0, 0, 4, 0x09, 12, 1, 2]).unwrap().descriptor(9),
            None
        );
        assert_eq!(Sense::parse(&[]), None);
        assert_eq!(Sense::parse(&[0x70, 0, 2]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), kind: u8) {
            if let Some(sense) = Sense::parse(&bytes) {
                let _ = (sense.descriptor(kind), sense.to_string());
            }
        }
    }
}
