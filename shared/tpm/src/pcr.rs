//! Platform configuration registers (PCRs) of the SHA-256 bank.

use crate::algorithm::SHA256;
use crate::bytes::{Malformed, Reader, Writer};
use crate::digest::Digest;
use std::collections::BTreeMap;

/// The PCRs that a proof covers (TCG PC Client Platform Firmware Profile, section 3.3.4; systemd's `TPM2_PCR_MEASUREMENTS`):
/// firmware (0), option ROMs (2, 3), started programs (4), Secure Boot (7), kernel command line and initrd (9), and the parts of
/// the signed program (11). Not 1 and 5: they change with boot variables and disks.
pub const PCRS: [u8; 7] = [0, 2, 3, 4, 7, 9, 11];

/// Bytes of a selection on a PC: 24 PCRs.
const SELECT: u8 = 3;

/// PCRs and their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pcrs(pub BTreeMap<u8, Digest>);

impl Pcrs {
    /// What a quote of them holds: SHA-256 of all values in ascending order.
    pub fn digest(&self) -> Digest {
        let values: Vec<&[u8]> = self.0.values().map(|value| value.0.as_slice()).collect();
        Digest::of_all(&values)
    }

    /// The value of one; zeros where nothing was measured into it.
    pub fn value(&self, pcr: u8) -> Digest {
        self.0.get(&pcr).copied().unwrap_or(Digest::ZERO)
    }
}

/// `TPML_PCR_SELECTION` of PCRs of the SHA-256 bank.
pub(crate) fn selection(pcrs: &[u8]) -> Vec<u8> {
    let mut select = [0_u8; SELECT as usize];
    for pcr in pcrs {
        if let Some(byte) = select.get_mut(usize::from(pcr / 8)) {
            *byte |= 1 << (pcr % 8);
        }
    }
    Writer::default().u32(1).u16(SHA256).raw(&[SELECT]).raw(&select).done()
}

/// The PCRs of a `TPML_PCR_SELECTION` of the SHA-256 bank alone.
pub(crate) fn selected(reader: &mut Reader) -> Result<Vec<u8>, Malformed> {
    if (reader.u32()?, reader.u16()?) != (1, SHA256) {
        return Err(Malformed("it is not of the SHA-256 bank alone"));
    }
    let length = reader.u8()?;
    let select = reader.take(length.into())?;
    let bits = (0..=u8::MAX).take(select.len() * 8);
    Ok(bits.filter(|pcr| select[usize::from(pcr / 8)] & (1 << (pcr % 8)) != 0).collect())
}
