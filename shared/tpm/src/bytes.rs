//! Reading and writing what a TPM marshals: big-endian numbers, and bytes with a length of two bytes before them (`TPM2B`).

/// Bytes that are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(crate) &'static str);

const SHORT: Malformed = Malformed("it ends too early");

/// Reads from the beginning.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Malformed> {
        self.take(LENGTH)?.try_into().map_err(|_| SHORT)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    /// Little-endian, as firmware writes its log.
    pub(crate) fn u16_le(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// Little-endian, as firmware writes its log.
    pub(crate) fn u32_le(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// A `TPM2B`.
    pub(crate) fn sized(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u16()?;
        self.take(length.into())
    }

    /// What is left.
    pub(crate) fn all(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed("more follows than belongs to it")) }
    }
}

/// Writes to the end.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn u16(mut self, number: u16) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn u32(mut self, number: u32) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    /// A `TPM2B`. What does not fit has no length that any TPM would accept.
    pub(crate) fn sized(self, bytes: &[u8]) -> Self {
        self.u16(u16::try_from(bytes.len()).unwrap_or(u16::MAX)).raw(bytes)
    }

    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}
