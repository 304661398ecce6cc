//! The partition table of an image, as the disk that gets it sees it. Pure.

use crate::error::ImageError;
use crate::gpt::Gpt;
use crate::mbr::Mbr;

/// Either kind.
pub(crate) enum Table {
    Gpt(Gpt),
    Mbr(Mbr),
}

impl Table {
    /// Of an image of `size` bytes that begins with `head`, on a disk with sectors of so many bytes.
    pub(crate) fn read(head: &[u8], sector: usize, size: u64) -> Result<Self, ImageError> {
        refuse_sector_size(head, sector)?;
        let table = if Gpt::is_at(head, sector) {
            Gpt::parse(head, sector, size).map(Table::Gpt)
        } else {
            Mbr::parse(head, sector).map(Table::Mbr)
        };
        table.map_err(ImageError::Table)
    }
}

/// An image whose table was made for sectors of another size than the disk's is not found by what boots from it.
pub(crate) fn refuse_sector_size(head: &[u8], sector: usize) -> Result<(), ImageError> {
    let made_for = [512, 4096].into_iter().find(|&other| Gpt::is_at(head, other));
    match made_for {
        Some(other) if other != sector && !Gpt::is_at(head, sector) => Err(ImageError::Table(format!(
            "it was made for sectors of {other} bytes, and the disk has sectors of {sector}; use an image for such disks"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_for_other_sectors_is_refused() {
        for (made, disk, fits) in
            [(512, 512, true), (512, 4096, false), (4096, 512, false), (4096, 4096, true)]
        {
            let mut head = vec![0; 8192];
            head[made..made + 8].copy_from_slice(b"EFI PART");
            let judged = refuse_sector_size(&head, disk).map_err(|error| error.to_string());
            assert_eq!(judged.is_ok(), fits, "{made} {disk}: {judged:?}");
        }
        assert!(refuse_sector_size(&[0; 100], 512).is_ok());
    }
}
