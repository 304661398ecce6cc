//! Digests of bytes as they pass.

use crate::checksum::Algorithm;
use md5::{Digest as _, Md5};
use ring::digest::{Context, SHA256, SHA512};
use std::fmt::Write as _;

/// A digest in the making.
pub enum Digest {
    /// SHA-256 or SHA-512.
    Ring(Box<Context>),
    /// MD5.
    Md5(Box<Md5>),
}

impl Digest {
    /// Of no bytes.
    pub fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Md5 => Digest::Md5(Box::default()),
            Algorithm::Sha256 => Digest::Ring(Box::new(Context::new(&SHA256))),
            Algorithm::Sha512 => Digest::Ring(Box::new(Context::new(&SHA512))),
        }
    }

    /// With these bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Digest::Ring(context) => context.update(bytes),
            Digest::Md5(context) => context.update(bytes),
        }
    }

    /// Lower case hexadecimal.
    pub fn finish(self) -> String {
        match self {
            Digest::Ring(context) => hex(context.finish().as_ref()),
            Digest::Md5(context) => hex(&context.finalize()),
        }
    }
}

/// Lower case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        let of = |algorithm, text: &[u8]| {
            let mut digest = Digest::new(algorithm);
            digest.update(text);
            digest.finish()
        };
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of(Algorithm::Sha256, b"abc"), abc);
        assert_eq!(of(Algorithm::Md5, b"abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert!(of(Algorithm::Sha512, b"abc").starts_with("ddaf35a193617abacc417349ae204131"));
    }
}
