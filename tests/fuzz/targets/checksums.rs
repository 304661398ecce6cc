//! Files of checksums.
#![no_main]

use image_writer::checksum::find;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    for algorithm in [None, Some(image_writer::Algorithm::Sha512)] {
        if let Ok(found) = find(input, "image.raw", algorithm, true) {
            let text = String::from_utf8_lossy(input).to_lowercase();
            assert!(text.contains(&found.value), "a digest that is not in the file");
        }
    }
});
