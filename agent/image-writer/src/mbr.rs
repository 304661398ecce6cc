//! Partition tables of the first sector. Pure.

/// Sectors of such a table have 512 bytes, whatever the disk's have, in images that were made on a file.
const ENTRIES: usize = 446;
/// Type of a partition with a Linux file system.
const LINUX: u8 = 0x83;
/// Type of the entry that protects a GPT.
const PROTECTIVE: u8 = 0xee;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mbr {
    sector: u64,
    bytes: Vec<u8>,
}

/// A primary partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1.
    pub number: u32,
    /// Its type.
    pub kind: u8,
    /// First sector.
    pub first: u64,
    /// Sectors.
    pub sectors: u64,
}

impl Mbr {
    /// The table in the first sector of a disk with sectors of so many bytes.
    ///
    /// # Errors
    /// When there is none.
    pub fn parse(head: &[u8], sector: usize) -> Result<Self, String> {
        let bytes = head.get(..512).ok_or("it is too short")?.to_vec();
        if bytes[510..] != [0x55, 0xaa] {
            return Err("there is none: no GPT and no MBR".to_owned());
        }
        let mbr = Mbr { sector: sector as u64, bytes };
        let used: Vec<_> = mbr.used().collect();
        if used.is_empty() {
            return Err("it has no partition".to_owned());
        }
        if used.iter().any(|&(_, kind, ..)| kind == PROTECTIVE) {
            return Err("its MBR protects a GPT that is not there".to_owned());
        }
        Ok(mbr)
    }

    /// Place in the table, type, first sector and number of sectors of the primary partitions.
    fn used(&self) -> impl Iterator<Item = (usize, u8, u64, u64)> {
        (0..4usize).filter_map(|number| {
            let raw = &self.bytes[ENTRIES + 16 * number..ENTRIES + 16 * (number + 1)];
            let word =
                |at: usize| u64::from(u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]));
            (raw[4] != 0).then(|| (number, raw[4], word(8), word(12)))
        })
    }

    /// The primary partitions.
    pub fn partitions(&self) -> Vec<Partition> {
        let one = |(place, kind, first, sectors)| Partition {
            number: u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1),
            kind,
            first,
            sectors,
        };
        self.used().map(one).collect()
    }

    /// The identifier of the disk, as it is stored.
    pub fn id(&self) -> [u8; 4] {
        [self.bytes[440], self.bytes[441], self.bytes[442], self.bytes[443]]
    }

    /// Adds a partition of `length` bytes at the end of a disk of `size` bytes, or of what such a table reaches.
    /// First byte, bytes, and the sector with the table.
    ///
    /// # Errors
    /// When there is no room.
    pub fn add_at_end(&mut self, size: u64, length: u64) -> Result<(u64, u64, Vec<u8>), String> {
        let used: Vec<_> = self.used().collect();
        if used.len() > 3 {
            return Err("the MBR has four primary partitions already".to_owned());
        }
        let end = (size / self.sector).min(u64::from(u32::MAX));
        let first = (end * self.sector).saturating_sub(length) >> 20 << 20;
        let behind = used.iter().map(|(_, _, first, count)| (first + count) * self.sector).max().unwrap_or(0);
        if first < behind.max(1 << 20) {
            return Err(format!("there are no {} MiB behind the last partition", length >> 20));
        }
        let free = (0..4usize).find(|number| used.iter().all(|(taken, ..)| taken != number));
        let free = free.ok_or("the MBR has no free entry")?;
        let lba = first / self.sector;
        let count = end - lba;
        let raw = &mut self.bytes[ENTRIES + 16 * free..ENTRIES + 16 * (free + 1)];
        raw.fill(0);
        // Cylinders are beyond what can be said.
        raw[1..4].copy_from_slice(&[0xfe, 0xff, 0xff]);
        raw[4] = LINUX;
        raw[5..8].copy_from_slice(&[0xfe, 0xff, 0xff]);
        let words = [u32::try_from(lba), u32::try_from(count)].map(|word| word.unwrap_or(0).to_le_bytes());
        raw[8..12].copy_from_slice(&words[0]);
        raw[12..16].copy_from_slice(&words[1]);
        Ok((first, count * self.sector, self.bytes.clone()))
    }
}

/// The identifier in the first sector of a disk, in Ironic's form: `0x1a2b3c4d`.
pub fn disk_id(head: &[u8]) -> String {
    let id = head.get(440..444).map_or(0, |id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]));
    format!("0x{id:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kinds: [u8; 4]) -> Vec<u8> {
        let mut head = vec![0; 1 << 20];
        for (number, kind) in (0u8..).zip(kinds) {
            let at = ENTRIES + 16 * usize::from(number);
            head[at + 4] = kind;
            head[at + 8..at + 12].copy_from_slice(&(2048 * (u32::from(number) + 1)).to_le_bytes());
            head[at + 12..at + 16].copy_from_slice(&2048u32.to_le_bytes());
        }
        head[440..444].copy_from_slice(&0x1a2b_3c4du32.to_le_bytes());
        head[510..512].copy_from_slice(&[0x55, 0xaa]);
        head
    }

    #[test]
    fn a_partition_is_added_where_there_is_room() {
        let mut mbr = Mbr::parse(&head([0x83, 0, 0x82, 0]), 512).expect("a table");
        assert_eq!(disk_id(&head([0x83, 0, 0x82, 0])), "0x1a2b3c4d");
        let (offset, length, bytes) = mbr.add_at_end(100 << 20, 64 << 20).expect("added");
        assert_eq!((offset, length), (36 << 20, 64 << 20));
        assert_eq!(bytes[ENTRIES + 16 + 4], LINUX);
        assert_eq!(Mbr::parse(&bytes, 512).expect("ours").used().count(), 3);
        assert!(mbr.clone().add_at_end(10 << 20, 64 << 20).expect_err("small").contains("64 MiB"));
        let mut full = Mbr::parse(&head([0x83, 0x83, 0x83, 0x83]), 512).expect("a table");
        assert!(full.add_at_end(100 << 20, 64 << 20).expect_err("full").contains("four primary"));
        let (offset, ..) = Mbr::parse(&head([0x83, 0, 0, 0]), 512)
            .expect("a table")
            .add_at_end(8 << 40, 64 << 20)
            .expect("added");
        assert!(offset < 2 << 40, "such a table reaches 2 TiB");
    }

    #[test]
    fn what_is_no_table_is_said() {
        assert!(Mbr::parse(&vec![0; 512], 512).expect_err("zeroes").contains("there is none"));
        assert!(Mbr::parse(&head([0; 4]), 512).expect_err("empty").contains("no partition"));
        assert!(Mbr::parse(&head([0xee, 0, 0, 0]), 512).expect_err("protective").contains("GPT"));
        assert!(Mbr::parse(&[0; 10], 512).is_err());
    }
}
