//! Partition tables of images: GPT with both sizes of sectors, and MBR.

use image_writer::gpt::Gpt;
use image_writer::mbr::Mbr;

const MIB: u64 = 1 << 20;

/// Reads one input; panics when a promise does not hold.
pub fn run(input: &[u8]) {
    for sector in [512, 4096] {
        if let Ok(mut gpt) = Gpt::parse_unsigned(input, sector, 64 * MIB) {
            let before = gpt.partitions();
            if gpt.move_to(200 * MIB).is_ok()
                && let Ok(added) = gpt.add_at_end(64 * MIB, "config-2", [7; 16])
            {
                assert!(before.iter().all(|one| one.offset + one.length <= added.offset), "they overlap");
                assert!(added.offset + added.length <= 200 * MIB, "it is not on the disk");
            }
            for patch in gpt.patches() {
                assert!(patch.bytes.len() as u64 <= MIB, "{}", patch.what);
            }
        }
        if let Ok(mut mbr) = Mbr::parse(input, sector)
            && let Ok((offset, length, _)) = mbr.add_at_end(200 * MIB, 64 * MIB)
        {
            assert!(offset + length <= 200 * MIB, "it is not on the disk");
        }
    }
}
