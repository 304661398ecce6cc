//! Long names in a FAT (Microsoft's FAT specification 1.03, section 7).

/// Characters in an entry.
const CHARACTERS: usize = 13;
/// Marks an entry of a long name, and in its number the last part of it.
const LONG_NAME: u8 = 0x0f;
const LAST: u8 = 0x40;

/// The entries that give the file with this short name a long one. They stand before its own.
pub(crate) fn entries(name: &str, short: &[u8; 11]) -> Vec<u8> {
    let sum = short.iter().fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
    let mut units: Vec<u16> = name.encode_utf16().collect();
    if !units.len().is_multiple_of(CHARACTERS) {
        units.push(0);
    }
    units.resize(units.len().next_multiple_of(CHARACTERS), 0xffff);
    let parts = units.chunks(CHARACTERS).zip(1_u8..);
    let count = units.len() / CHARACTERS;
    let mut entries: Vec<Vec<u8>> = parts
        .map(|(part, number)| {
            let text: Vec<u8> = part.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            let last = if usize::from(number) == count { LAST } else { 0 };
            [&[number | last][..], &text[..10], &[LONG_NAME, 0, sum], &text[10..22], &[0, 0], &text[22..]]
                .concat()
        })
        .collect();
    entries.reverse();
    entries.concat()
}
