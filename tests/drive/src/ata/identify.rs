//! IDENTIFY DEVICE data (ACS-4 7.13.6).

use crate::drive::Drive;
use crate::scsi::{name, padded};

/// The 512 bytes.
pub(crate) fn identify(drive: &Drive) -> [u8; 512] {
    let (spec, state) = (&drive.spec, &drive.ata);
    let mut data = [0u8; 512];
    let mut put =
        |word: usize, value: u16| data[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
    let bits = |bits: &[(u16, bool)]| bits.iter().fold(0, |word, &(bit, set)| word | u16::from(set) << bit);
    // The low 16 bits of a number, from a bit on.
    let part = |value: u64, shift: u32| u16::try_from(value >> shift & 0xffff).unwrap_or(0);
    let mut text = |word: usize, text: &str, length: usize| {
        for (index, pair) in padded(text, length).chunks(2).enumerate() {
            put(word + index, u16::from_be_bytes([pair[0], pair[1]]));
        }
    };
    text(10, &spec.serial, 20);
    text(23, "0001", 8);
    text(27, "Anneal drive of the lab", 40);
    // LBA.
    put(49, 1 << 9);
    let sanitizes = spec.crypto || spec.block || spec.overwrite;
    put(59, bits(&[(12, sanitizes), (13, spec.crypto), (14, spec.overwrite), (15, spec.block)]));
    let small = state.addressable.min(0x0fff_ffff);
    put(60, part(small, 0));
    put(61, part(small, 16));
    // DRAT and RZAT where it is flash.
    put(69, if spec.spins { 0 } else { 1 << 14 | 1 << 5 });
    // ACS-2, ACS-3, ACS-4.
    put(80, 1 << 9 | 1 << 10 | 1 << 11);
    // Supported and enabled: security; host protected area; then in words 83 and 86: 48 bits, overlay.
    let (security, hidden) = (spec.security, spec.hidden > 0 && !spec.amac);
    put(82, bits(&[(1, security), (10, hidden)]));
    put(83, bits(&[(14, true), (10, true), (11, hidden)]));
    put(84, 1 << 14);
    put(85, bits(&[(1, drive.memory.password.is_some()), (10, hidden)]));
    put(86, bits(&[(10, true), (11, hidden)]));
    put(87, 1 << 14);
    // Two minutes, the shortest time that the field can express.
    put(89, u16::from(security));
    put(90, u16::from(security && !spec.plain));
    for (index, shift) in [0, 16, 32, 48].into_iter().enumerate() {
        put(100 + index, part(state.addressable, shift));
        put(108 + index, part(name(drive), 48 - shift));
    }
    put(119, bits(&[(14, true), (8, spec.amac)]));
    put(120, bits(&[(14, true), (8, spec.amac)]));
    put(
        128,
        bits(&[
            (0, security),
            (1, drive.memory.password.is_some()),
            (2, state.locked),
            (3, security && state.frozen),
            (4, state.wrong >= super::security::MOST_WRONG),
            (5, security && !spec.plain),
        ]),
    );
    put(217, if spec.spins { 7200 } else { 1 });
    sum(&mut data);
    data
}

/// Signature and checksum in the last word.
pub(super) fn sum(data: &mut [u8; 512]) {
    data[510] = 0xa5;
    data[511] = 0;
    data[511] = data.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
}
