//! Device paths of boot entries (UEFI Specification 2.10, 10.3): a partition of a disk, and a file on it. Pure.

const MEDIA: u8 = 4;
const HARD_DRIVE: u8 = 1;
const FILE: u8 = 4;
const END: [u8; 4] = [0x7f, 0xff, 4, 0];
const HEADER: usize = 4;
/// Of a hard drive's node, its header included.
const HARD_DRIVE_BYTES: u8 = 42;

/// A node that names a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardDrive {
    /// Its number, from 1.
    pub number: u32,
    /// First sector.
    pub start: u64,
    /// Sectors.
    pub sectors: u64,
    /// What it is known by.
    pub signature: Signature,
}

/// What a partition is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signature {
    /// Its GUID in the GPT, as it is stored.
    Gpt([u8; 16]),
    /// The identifier in the disk's MBR, as it is stored.
    Mbr([u8; 4]),
    /// Nothing, or something else.
    Other,
}

impl HardDrive {
    fn parse(data: &[u8]) -> Option<Self> {
        let signature: [u8; 16] = data.get(20..36)?.try_into().ok()?;
        let (format, kind) = (*data.get(36)?, *data.get(37)?);
        Some(Self {
            number: u32::from_le_bytes(data[..4].try_into().ok()?),
            start: u64::from_le_bytes(data[4..12].try_into().ok()?),
            sectors: u64::from_le_bytes(data[12..20].try_into().ok()?),
            signature: match (format, kind) {
                (2, 2) => Signature::Gpt(signature),
                (1, 1) => Signature::Mbr([signature[0], signature[1], signature[2], signature[3]]),
                _ => Signature::Other,
            },
        })
    }

    fn node(&self) -> Vec<u8> {
        let mut bytes = vec![MEDIA, HARD_DRIVE, HARD_DRIVE_BYTES, 0];
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.start.to_le_bytes());
        bytes.extend(self.sectors.to_le_bytes());
        let mut signature = [0; 16];
        let kind = match &self.signature {
            Signature::Gpt(id) => {
                signature = *id;
                [2, 2]
            }
            Signature::Mbr(id) => {
                signature[..4].copy_from_slice(id);
                [1, 1]
            }
            Signature::Other => [0, 0],
        };
        bytes.extend(signature);
        bytes.extend(kind);
        bytes
    }
}

/// The path of a file on a partition: `\EFI\debian\shimx64.efi`. `None` when the file's name is too long for a node.
pub fn file_on(drive: &HardDrive, file: &str) -> Option<Vec<u8>> {
    let name: Vec<u8> = file.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    let length = u16::try_from(HEADER + name.len()).ok()?.to_le_bytes();
    let mut path = drive.node();
    path.extend([MEDIA, FILE, length[0], length[1]]);
    path.extend(name);
    path.extend(END);
    Some(path)
}

/// The partition, when the path begins with one: the short form in which an operating system writes what it has put on
/// a disk. Paths over a network, into the firmware and to a removable device begin with something else.
pub fn partition(path: &[u8]) -> Option<HardDrive> {
    let (kind, data) = nodes(path).next()?;
    (kind == [MEDIA, HARD_DRIVE] && data.len() + HEADER == usize::from(HARD_DRIVE_BYTES))
        .then(|| HardDrive::parse(data))
        .flatten()
}

/// The file that the path ends with.
pub fn file(path: &[u8]) -> Option<String> {
    let (kind, data) = nodes(path).last()?;
    (kind == [MEDIA, FILE]).then(|| crate::text(data).0)
}

/// Type and sub-type of each node, and its data, up to the first that is malformed or the end.
fn nodes(mut path: &[u8]) -> impl Iterator<Item = ([u8; 2], &[u8])> {
    std::iter::from_fn(move || {
        let header: [u8; HEADER] = path.get(..HEADER)?.try_into().ok()?;
        let length = usize::from(u16::from_le_bytes([header[2], header[3]]));
        let data = path.get(HEADER..length)?;
        path = &path[length..];
        (header[0] != END[0]).then_some(([header[0], header[1]], data))
    })
}
