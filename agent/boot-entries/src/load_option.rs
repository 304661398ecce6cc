//! `EFI_LOAD_OPTION`, the value of `Boot0001` (UEFI Specification 2.10, 3.1.3). Pure.

/// `LOAD_OPTION_ACTIVE`: the firmware tries it.
const ACTIVE: u32 = 1;

/// A boot entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOption {
    /// The firmware tries it.
    pub active: bool,
    /// What the firmware's menu shows.
    pub description: String,
    /// Device paths, as they are stored.
    pub path: Vec<u8>,
    /// What the loader is given.
    pub data: Vec<u8>,
}

impl LoadOption {
    /// An entry; `None` when it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let attributes = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
        let length = usize::from(u16::from_le_bytes(bytes.get(4..6)?.try_into().ok()?));
        let (description, used) = crate::text(bytes.get(6..)?);
        let rest = bytes.get(6 + used..)?;
        Some(Self {
            active: attributes & ACTIVE != 0,
            description,
            path: rest.get(..length)?.to_vec(),
            data: rest[length..].to_vec(),
        })
    }

    /// The entry as the firmware stores it; `None` when its path is too long.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = u32::from(self.active).to_le_bytes().to_vec();
        bytes.extend(u16::try_from(self.path.len()).ok()?.to_le_bytes());
        bytes.extend(self.description.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        bytes.extend(&self.path);
        bytes.extend(&self.data);
        Some(bytes)
    }
}
