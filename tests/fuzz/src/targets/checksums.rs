//! Files of checksums.

use image_writer::checksum::find;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    for algorithm in [None, Some(image_writer::Algorithm::Sha512)] {
        if let Ok(found) = find(input, "image.raw", algorithm, true) {
            let text = String::from_utf8_lossy(input).to_lowercase();
            assert!(text.contains(&found.value), "a digest that is not in the file");
        }
    }
}
