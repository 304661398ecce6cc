//! Taking from a TPM what its users have put into it (TPM 2.0 Library, Part 3, section 24.6).

use super::error::TpmError;
use super::session::{Authorization, Command, Tpm};
use super::transport::Transport;
use crate::bytes::{Malformed, Reader, Writer};

/// `TPM_RH_LOCKOUT`.
const LOCKOUT: u32 = 0x4000_000a;
/// `TPM_CAP_TPM_PROPERTIES`, `TPM_PT_PERMANENT`.
const PROPERTIES: u32 = 6;
const PERMANENT: u32 = 0x200;
/// Bits of `TPMA_PERMANENT` (Part 2, section 8.6).
const LOCKOUT_PASSWORD: u32 = 1 << 2;
const CLEAR_DISABLED: u32 = 1 << 8;

/// What is needed to clear a TPM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClearAuthority {
    /// The operating system.
    System,
    /// A user of the TPM, by a password.
    Password,
    /// The firmware alone: a user has forbidden it to all others.
    Firmware,
}

impl<T: Transport> Tpm<T> {
    /// What is needed to clear it. A wrong password is not tried: the TPM counts it.
    ///
    /// # Errors
    /// See [`TpmError`].
    pub fn clear_authority(&mut self) -> Result<ClearAuthority, TpmError> {
        let found = self.run(&Command {
            name: "TPM2_GetCapability",
            code: 0x17a,
            handles: &[],
            authorizations: &[],
            parameters: Writer::default().u32(PROPERTIES).u32(PERMANENT).u32(1).done(),
            makes_handle: false,
        })?;
        let mut reader = Reader::new(&found.parameters);
        let (_more, capability, count) = (reader.u8()?, reader.u32()?, reader.u32()?);
        if (capability, count, reader.u32()?) != (PROPERTIES, 1, PERMANENT) {
            return Err(Malformed("it does not say which passwords are set").into());
        }
        let attributes = reader.u32()?;
        Ok(if attributes & CLEAR_DISABLED != 0 {
            ClearAuthority::Firmware
        } else if attributes & LOCKOUT_PASSWORD != 0 {
            ClearAuthority::Password
        } else {
            ClearAuthority::System
        })
    }

    /// Clear it, where [the operating system may](Self::clear_authority): keys, passwords and what users have stored are gone. The
    /// endorsement key stays.
    ///
    /// # Errors
    /// See [`TpmError`].
    pub fn clear(&mut self) -> Result<(), TpmError> {
        self.run(&Command {
            name: "TPM2_Clear",
            code: 0x126,
            handles: &[LOCKOUT],
            authorizations: &[Authorization::Empty],
            parameters: Vec::new(),
            makes_handle: false,
        })?;
        Ok(())
    }
}
