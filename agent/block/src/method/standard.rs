//! What each method reaches, and the clauses that say so.

use super::{Family, Level, Method};
use crate::sanitize::Operation;

impl Method {
    /// The level that it reaches on a disk that does or does not spin; `docs/erase.md` has the clauses. Where NIST
    /// SP 800-88r1 and IEEE 2883 differ, the lower one counts.
    pub fn level(self, rotational: bool) -> Level {
        match self {
            Method::Sanitize(..) | Method::OpalRevert => Level::Purge,
            Method::AtaEnhancedErase if rotational => Level::Purge,
            _ => Level::Clear,
        }
    }

    /// The clauses that name it, those of `docs/erase.md` written out, of a disk that does or does not spin.
    pub fn standard(self, rotational: bool) -> &'static str {
        use Family::{Ata, Nvme, Scsi};
        use Operation::{Block, Crypto, Overwrite};
        match self {
            Method::Sanitize(Nvme, _) => "NVMe Base 2.0, 5.24; IEEE 2883-2022 purge",
            Method::Sanitize(Ata, Crypto) => {
                "ACS-4 7.36; NIST SP 800-88r1 A-5, A-8 purge; IEEE 2883-2022 purge"
            }
            Method::Sanitize(Ata, Block) => "ACS-4 7.36; NIST SP 800-88r1 A-8 purge; IEEE 2883-2022 purge",
            Method::Sanitize(Ata, Overwrite) => {
                "ACS-4 7.36; NIST SP 800-88r1 A-5 purge; IEEE 2883-2022 purge"
            }
            Method::Sanitize(Scsi, Crypto) => {
                "SBC-4 5.30; NIST SP 800-88r1 A-5, A-8 purge; IEEE 2883-2022 purge"
            }
            Method::Sanitize(Scsi, Block) => "SBC-4 5.30; NIST SP 800-88r1 A-8 purge; IEEE 2883-2022 purge",
            Method::Sanitize(Scsi, Overwrite) => {
                "SBC-4 5.30; NIST SP 800-88r1 A-5 purge; IEEE 2883-2022 purge"
            }
            Method::OpalRevert => {
                "TCG Opal SSC PSID 1.00; NIST SP 800-88r1 A-5, A-8 purge; IEEE 2883-2022 purge"
            }
            Method::NvmeFormatCrypto => {
                "NVMe Base 2.0, 5.14; NIST SP 800-88r1 A-8 purge; IEEE 2883-2022 clear, purge if the vendor says so"
            }
            Method::NvmeFormat => "NVMe Base 2.0, 5.14; NIST SP 800-88r1 A-8 purge; IEEE 2883-2022 clear",
            Method::AtaEnhancedErase if rotational => {
                "ACS-4 7.40; NIST SP 800-88r1 A-5 purge; IEEE 2883-2022 purge"
            }
            Method::AtaEnhancedErase => "ACS-4 7.40; NIST SP 800-88r1 A-8 clear; IEEE 2883-2022 purge",
            Method::AtaErase => "ACS-4 7.40; NIST SP 800-88r1 A-5, A-8 clear; IEEE 2883-2022 clear",
            Method::EmmcSanitize => "JESD84-B51 6.6.9, 6.6.11",
            Method::SecureDiscard => "BLKSECDISCARD; JESD84 6.6.12",
            Method::ZeroOut => {
                "BLKZEROOUT (NVMe Write Zeroes, SCSI WRITE SAME); NIST SP 800-88r1 A-5, A-8 clear"
            }
            Method::Discard => {
                "BLKDISCARD where zeroes are guaranteed (DLFEAT, RZAT, LBPRZ), read back in full"
            }
            Method::Overwrite | Method::OverwriteWith(_) => {
                "NIST SP 800-88r1 A-5, A-8 clear; IEEE 2883-2022 clear"
            }
            Method::ScsiFormat => "SBC-4 5.4; IEEE 2883-2022 clear",
        }
    }
}
