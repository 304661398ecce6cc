//! What a ramdisk takes from virtual media: the file systems of drives that a stranger may have written.
//!
//! The seeds are smaller than those of an Ironic, to be within the longest input: FAT with one table and 16 entries (that of 16 bits has
//! the same sectors, said to be more clusters; in another a chain of clusters comes back to where it was), and a CD of xorriso's without
//! the sectors that are not read.

use ramdisk_init::virtual_media::{VirtualMedia, Wanted};

/// Bit 0 of the first byte: the rest is a CD, from its first volume descriptor on. Bit 1: the CD of one publisher is wanted.
const IS_CD: u8 = 1;
const HAS_PUBLISHER: u8 = 2;
/// Of the CD among the seeds.
const PUBLISHER: &str = "6f2f8ddd-9f3a-4d5e-8a5b-7d0f6d3f2a11";
/// Bytes before the first volume descriptor, which nothing reads (ECMA-119 6.2.1).
const SYSTEM_AREA: usize = 16 * 2048;
/// Most bytes of parameters. With a chain that comes back, the drive may have fewer.
const MOST: usize = 64 << 10;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    let drive = drive(*kind, bytes);
    let Ok(media) = media(*kind, &drive) else { return };
    assert!(media.parameters.len() <= MOST, "more parameters than a file may have");
    let words: Vec<&str> = media.parameters.split_whitespace().collect();
    assert_eq!(media.parameters, words.join(" "), "not in the form of a kernel command line");
    assert!(media.network_data.is_none_or(|data| data.len() <= drive.len()), "more than the drive has");
}

/// What the drive of an input brings. `None` of an empty one.
pub fn read(input: &[u8]) -> Option<Result<VirtualMedia, String>> {
    input.split_first().map(|(kind, bytes)| media(*kind, &drive(*kind, bytes)))
}

fn drive(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let before = if kind & IS_CD == 0 { 0 } else { SYSTEM_AREA };
    [&vec![0; before][..], bytes].concat()
}

fn media(kind: u8, drive: &[u8]) -> Result<VirtualMedia, String> {
    let publisher = (kind & HAS_PUBLISHER != 0).then(|| PUBLISHER.to_owned());
    Wanted { publisher }.of_drive(drive)
}
