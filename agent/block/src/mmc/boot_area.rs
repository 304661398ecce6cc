//! Boot areas of an eMMC, which the kernel has as disks of their own.

use crate::disk::Disk;
use std::fs::File;
use std::io::{self, Seek};
use std::os::unix::fs::FileExt;

/// A boot area of an eMMC (`mmcblk0boot0`): sectors of their own, which hold firmware or hidden data. Nothing
/// erases them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BootArea {
    /// Kernel name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// It holds one byte repeated.
    pub blank: bool,
}

/// The boot areas of an eMMC, which the kernel has as disks of their own.
pub(crate) fn boot_areas(disk: &Disk) -> Vec<BootArea> {
    let area = |number: u8| {
        let name = format!("{}boot{number}", disk.name);
        let mut file = File::open(disk.path.with_file_name(&name)).ok()?;
        let seen = file.seek(io::SeekFrom::End(0)).and_then(|size| Ok((size, is_blank(&file, size)?)));
        let (size, blank) = seen.unwrap_or_else(|error| {
            tracing::warn!(area = name, %error, "the boot area cannot be read");
            (0, false)
        });
        Some(BootArea { name, size, blank })
    };
    (0..2).filter_map(area).collect()
}

/// Whether all of the first `size` bytes are the same.
fn is_blank(file: &File, size: u64) -> io::Result<bool> {
    let (mut buffer, mut offset, mut first) = (vec![0; 64 * 1024], 0, None);
    while offset < size {
        let length = usize::try_from(size - offset).unwrap_or(usize::MAX).min(buffer.len());
        let part = &mut buffer[..length];
        file.read_exact_at(part, offset)?;
        let byte = *first.get_or_insert(part[0]);
        if part.iter().any(|&other| other != byte) {
            return Ok(false);
        }
        offset += length as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_areas_are_looked_at_to_their_last_byte() {
        let room = tempfile::tempdir().unwrap();
        let disk = Disk { name: "mmcblk0".into(), path: room.path().join("mmcblk0"), ..Disk::default() };
        assert_eq!(boot_areas(&disk), []);
        let mut second = vec![0xff; 200_000];
        std::fs::write(room.path().join("mmcblk0boot0"), &second).unwrap();
        second[199_999] = 0;
        std::fs::write(room.path().join("mmcblk0boot1"), &second).unwrap();
        let area = |name: &str, blank| BootArea { name: name.to_owned(), size: 200_000, blank };
        assert_eq!(boot_areas(&disk), [area("mmcblk0boot0", true), area("mmcblk0boot1", false)]);
        std::fs::remove_file(room.path().join("mmcblk0boot0")).unwrap();
        std::fs::create_dir(room.path().join("mmcblk0boot0")).unwrap();
        assert!(!boot_areas(&disk)[0].blank, "what cannot be read is not blank");
    }
}
