//! Memory: what the kernel has, and what is fitted.

use agent_protocol::inventory::Memory;
use std::path::Path;

/// SMBIOS structure type "Memory Device" (DMTF DSP0134, 7.18).
const MEMORY_DEVICE: &str = "17-";

/// `total` in bytes; `entries` is `/sys/firmware/dmi/entries` (root only).
pub fn memory(total: u64, entries: &Path) -> Memory {
    Memory { total, physical_mb: physical(entries) }
}

fn physical(entries: &Path) -> Option<u64> {
    let devices = std::fs::read_dir(entries)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(MEMORY_DEVICE));
    let sizes: Vec<u64> = devices
        .filter_map(|entry| std::fs::read(entry.path().join("raw")).ok())
        .filter_map(|raw| size(&raw))
        .collect();
    let sum: u64 = sizes.iter().sum();
    (sum > 0).then_some(sum)
}

/// MiB of a memory device (DSP0134, 7.18: size at 0x0c; 0x7fff points to the extended size at 0x1c).
fn size(raw: &[u8]) -> Option<u64> {
    let word = u16::from_le_bytes(raw.get(0x0c..0x0e)?.try_into().ok()?);
    match word {
        0 | 0xffff => None,
        0x7fff => {
            let extended = u32::from_le_bytes(raw.get(0x1c..0x20)?.try_into().ok()?);
            Some(u64::from(extended & 0x7fff_ffff))
        }
        kib if kib & 0x8000 != 0 => Some(u64::from(kib & 0x7fff) / 1024),
        mib => Some(u64::from(mib)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimm_sizes_follow_smbios() {
        let device = |size: u16, extended: u32| {
            let mut raw = vec![0; 0x28];
            raw[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
            raw[0x1c..0x20].copy_from_slice(&extended.to_le_bytes());
            raw
        };
        assert_eq!(size(&device(16384, 0)), Some(16384));
        assert_eq!(size(&device(0x7fff, 65536)), Some(65536));
        assert_eq!(size(&device(0x8000 | 2048, 0)), Some(2));
        assert_eq!(size(&device(0, 0)), None);
        assert_eq!(size(&[17, 4]), None);
    }
}
