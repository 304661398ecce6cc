//! What each method reaches, and the clauses that say so.

use super::{Family, Level, Method};

impl Method {
    /// The level that it reaches on a disk that does or does not spin; `docs/erase.md` has the clauses. Where NIST
    /// SP 800-88 Rev. 1, now withdrawn, and IEEE 2883 differ, the lower one counts.
    pub fn level(self, rotational: bool) -> Level {
        match self {
            Method::Sanitize(..) | Method::OpalRevert => Level::Purge,
            Method::AtaEnhancedErase if rotational => Level::Purge,
            _ => Level::Clear,
        }
    }

    /// The clauses that name it, those of `docs/erase.md` written out. NIST SP 800-88
    /// Rev. 2 leaves techniques to IEEE 2883.
    pub fn standard(self) -> &'static str {
        use Family::{Ata, Nvme, Scsi};
        match self {
            Method::Sanitize(Nvme, _) => "NVMe Base 2.0, 5.24; IEEE 2883-2022 purge (NIST SP 800-88r2)",
            Method::Sanitize(Ata, _) => "ACS-4 7.36; IEEE 2883-2022 purge (NIST SP 800-88r2)",
            Method::Sanitize(Scsi, _) => "SBC-4 5.30; IEEE 2883-2022 purge (NIST SP 800-88r2)",
            Method::OpalRevert => "TCG Opal SSC PSID 1.00; IEEE 2883-2022 purge (NIST SP 800-88r2)",
            Method::NvmeFormatCrypto => {
                "NVMe Base 2.0, 5.14; IEEE 2883-2022 clear, purge if the vendor says so (NIST SP 800-88r2)"
            }
            Method::NvmeFormat => "NVMe Base 2.0, 5.14; IEEE 2883-2022 clear (NIST SP 800-88r2)",
            Method::AtaEnhancedErase => "ACS-4 7.40; IEEE 2883-2022 purge (NIST SP 800-88r2)",
            Method::AtaErase => "ACS-4 7.40; IEEE 2883-2022 clear (NIST SP 800-88r2)",
            Method::EmmcSanitize => "JESD84-B51 6.6.9, 6.6.11",
            Method::SecureDiscard => "BLKSECDISCARD; JESD84 6.6.12",
            Method::ZeroOut => "BLKZEROOUT (NVMe Write Zeroes, SCSI WRITE SAME)",
            Method::Discard => {
                "BLKDISCARD where zeroes are guaranteed (DLFEAT, RZAT, LBPRZ), read back in full"
            }
            Method::Overwrite | Method::OverwriteWith(_) => "IEEE 2883-2022 clear (NIST SP 800-88r2)",
            Method::ScsiFormat => "SBC-4 5.4; IEEE 2883-2022 clear (NIST SP 800-88r2)",
        }
    }
}
