//! Bundles: trailer, manifest and signature of a file from an untrusted source.

use bundle::{Manifest, Trust, verify};
use std::io::Cursor;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let _ = Manifest::parse(input);
    let _ = verify(&mut Cursor::new(input), &Trust::Digest);
    assert!(verify(&mut Cursor::new(input), &Trust::Keys { keys: Vec::new(), unsigned: false }).is_err());
}
