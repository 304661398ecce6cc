//! Numbers of TPM 2.0 Library, Part 2, sections 6.3, 6.4, 7.4 and 8.3.

pub(crate) const AES: u16 = 0x0006;
pub(crate) const SHA256: u16 = 0x000b;
pub(crate) const NULL: u16 = 0x0010;
pub(crate) const ECDSA: u16 = 0x0018;
pub(crate) const ECC: u16 = 0x0023;
pub(crate) const CFB: u16 = 0x0043;
pub(crate) const NIST_P256: u16 = 0x0003;

/// `TPM_RH_ENDORSEMENT`.
pub(crate) const ENDORSEMENT: u32 = 0x4000_000b;

/// Attributes of an object (`TPMA_OBJECT`).
pub(crate) mod attribute {
    pub(crate) const FIXED_TPM: u32 = 1 << 1;
    pub(crate) const FIXED_PARENT: u32 = 1 << 4;
    pub(crate) const SENSITIVE_DATA_ORIGIN: u32 = 1 << 5;
    pub(crate) const USER_WITH_AUTH: u32 = 1 << 6;
    pub(crate) const ADMIN_WITH_POLICY: u32 = 1 << 7;
    pub(crate) const NO_DA: u32 = 1 << 10;
    pub(crate) const RESTRICTED: u32 = 1 << 16;
    pub(crate) const DECRYPT: u32 = 1 << 17;
    pub(crate) const SIGN: u32 = 1 << 18;
}
