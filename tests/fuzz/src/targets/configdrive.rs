//! Configuration drives: the form in which they travel, and ISO 9660 file systems, which become FAT on disks with sectors of
//! 4096 bytes.

use image_writer::configdrive::{LARGEST, decode, for_disk, iso, label};

const SECTOR: usize = 2048;
/// Sectors of a file system.
const SECTORS: usize = 26;

/// A file system in which the volume descriptors are sound up to the root directory, and what comes from the fuzzer lies where
/// they point.
fn file_system(input: &[u8]) -> Vec<u8> {
    let mut image = vec![0; SECTORS * SECTOR];
    let joliet = input.first().is_some_and(|byte| byte % 2 == 1);
    for (sector, kind) in [(16, 1), (17, if joliet { 2 } else { 255 }), (18, 255)] {
        let descriptor = &mut image[sector * SECTOR..][..SECTOR];
        descriptor[..7].copy_from_slice(&[kind, b'C', b'D', b'0', b'0', b'1', 1]);
        descriptor[88..91].copy_from_slice(b"%/E");
        descriptor[128..130].copy_from_slice(&[0, 8]);
        let root = &mut descriptor[156..190];
        (root[0], root[2], root[11], root[25], root[32]) = (34, 20, 8, 2, 1);
    }
    let place = &mut image[20 * SECTOR..];
    let length = input.len().min(place.len());
    place[..length].copy_from_slice(&input[..length]);
    image
}

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(unpacked) = decode(text)
    {
        assert!(unpacked.len() as u64 <= LARGEST, "too much was unpacked");
    }
    for image in [input.to_vec(), file_system(input)] {
        let _ = label(&image);
        if let Ok(entries) = iso::entries(&image) {
            let content: usize = entries.iter().filter_map(|entry| entry.content).map(<[u8]>::len).sum();
            assert!(content as u64 <= LARGEST, "files overlap beyond the bound");
            for entry in &entries {
                assert!(!entry.path.split('/').any(|name| matches!(name, "" | "." | "..")), "{}", entry.path);
            }
        }
        assert_eq!(for_disk(&image, 512, LARGEST).as_deref(), Ok(&image[..]));
        if let Ok(made) = for_disk(&image, 4096, LARGEST) {
            assert!(made.len() as u64 <= LARGEST, "it does not fit");
        }
    }
}
