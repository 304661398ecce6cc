//! What a ramdisk takes from virtual media: the file systems of drives that a stranger may have written.

use ramdisk_init::virtual_media::Wanted;

/// Bit 0 of the first byte: the rest is a CD, from its first volume descriptor on. Bit 1: the CD of one publisher is wanted.
const IS_CD: u8 = 1;
const HAS_PUBLISHER: u8 = 2;
/// Of the CD among the seeds.
const PUBLISHER: &str = "6f2f8ddd-9f3a-4d5e-8a5b-7d0f6d3f2a11";
/// Sectors before the first volume descriptor, which nothing reads (ECMA-119 6.2.1).
const SYSTEM_AREA: usize = 16 * 2048;
/// Most bytes of one file.
const MOST: usize = 64 << 10;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    let Some((kind, bytes)) = input.split_first() else { return };
    let before = if kind & IS_CD == 0 { 0 } else { SYSTEM_AREA };
    let drive = [&vec![0; before][..], bytes].concat();
    let publisher = (kind & HAS_PUBLISHER != 0).then(|| PUBLISHER.to_owned());
    let Ok(media) = (Wanted { publisher }).of_drive(&drive) else { return };
    assert!(media.parameters.len() <= MOST, "more parameters than a file may have");
    let words: Vec<&str> = media.parameters.split_whitespace().collect();
    assert_eq!(media.parameters, words.join(" "), "not in the form of a kernel command line");
    assert!(
        media.network_data.is_none_or(|data| data.len() <= MOST.min(drive.len())),
        "more than the drive has"
    );
}
