//! How long a method takes on a disk: what the drive says of itself, else a cautious rate.

use crate::method::{Family, Method};
use crate::probe::Probe;
use crate::sanitize::Operation;
use std::time::Duration;

/// Bytes per second that a disk is overwritten at, where nothing is known: one that spins, one that does not.
const RATE: (u64, u64) = (120_000_000, 400_000_000);
/// Bytes per second at which flash writes zeroes or discards by itself.
const OWN_RATE: u64 = 2_000_000_000;
/// A key is changed, and what depends on it set up again.
const KEY: Duration = Duration::from_secs(30);
/// All blocks of a flash disk are erased.
const BLOCKS: Duration = Duration::from_secs(300);

/// How long `method` takes on the disk, without the reading back.
pub fn estimate(probe: &Probe, method: Method) -> Duration {
    let (disk, times) = (&probe.disk, probe.nvme.map(|nvme| nvme.sanitize_times).unwrap_or_default());
    let security = probe.ata.map(|ata| ata.security).unwrap_or_default();
    let at = |rate: u64| Duration::from_secs(disk.size / rate + 1);
    let written = at(if disk.rotational { RATE.0 } else { RATE.1 });
    match method {
        Method::Sanitize(Family::Nvme, Operation::Crypto) => times.crypto.unwrap_or(KEY),
        Method::Sanitize(Family::Nvme, Operation::Block) => times.block.unwrap_or(BLOCKS),
        Method::Sanitize(Family::Nvme, Operation::Overwrite) => times.overwrite.unwrap_or(written),
        Method::Sanitize(_, Operation::Crypto) | Method::OpalRevert | Method::NvmeFormatCrypto => KEY,
        Method::Sanitize(_, Operation::Block) | Method::NvmeFormat | Method::EmmcSanitize => BLOCKS,
        Method::AtaEnhancedErase => security.enhanced_time.unwrap_or(written),
        Method::AtaErase => security.time.unwrap_or(written),
        Method::OverwriteWith(passes) => written * u32::from(passes.count.get()),
        Method::Discard | Method::SecureDiscard => at(OWN_RATE),
        Method::ZeroOut if !disk.rotational => at(OWN_RATE),
        Method::Sanitize(_, Operation::Overwrite)
        | Method::ZeroOut
        | Method::Overwrite
        | Method::ScsiFormat => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;

    #[test]
    fn the_drives_own_words_count_and_else_the_size() {
        let disk = Disk { size: 4_000_000_000_000, rotational: true, ..Disk::default() };
        let mut probe = Probe { disk, ..Probe::default() };
        assert_eq!(estimate(&probe, Method::Overwrite).as_secs(), 33_334);
        let mut ata = crate::ata::Capabilities::default();
        ata.security.time = Some(Duration::from_secs(120));
        probe.ata = Some(ata);
        assert_eq!(estimate(&probe, Method::AtaErase).as_secs(), 120);
        assert_eq!(estimate(&probe, Method::AtaEnhancedErase), estimate(&probe, Method::Overwrite));
    }

    #[test]
    fn what_the_drive_does_itself_takes_its_time_and_what_is_written_that_of_the_size() {
        let disk = Disk { size: 40_000_000_000, ..Disk::default() };
        let passes = crate::method::Passes {
            count: std::num::NonZeroU8::new(3).unwrap(),
            last: crate::method::Fill::Random,
        };
        // Seconds on flash, and on a disk that turns.
        for (method, flash, turning) in [
            ("nvme-sanitize-crypto", 30, 30),
            ("nvme-sanitize-block", 300, 300),
            ("nvme-sanitize-overwrite", 101, 334),
            ("ata-sanitize-crypto", 30, 30),
            ("scsi-sanitize-block", 300, 300),
            ("ata-sanitize-overwrite", 101, 334),
            ("opal-psid-revert", 30, 30),
            ("nvme-format-user-data", 300, 300),
            ("ata-secure-erase", 101, 334),
            ("ata-secure-erase-enhanced", 101, 334),
            ("zero-out", 21, 334),
            ("discard", 21, 21),
            ("overwrite-zeroes", 101, 334),
            ("overwrite-random", 303, 1002),
        ] {
            let method = match Method::of(method).unwrap() {
                Method::OverwriteWith(_) => Method::OverwriteWith(passes),
                other => other,
            };
            for (rotational, seconds) in [(false, flash), (true, turning)] {
                let probe = Probe { disk: Disk { rotational, ..disk.clone() }, ..Probe::default() };
                assert_eq!(estimate(&probe, method).as_secs(), seconds, "{method:?} {rotational}");
            }
        }
    }
}
