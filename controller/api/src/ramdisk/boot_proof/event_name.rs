//! What an event of a firmware's log says of itself (TCG PC Client Platform Firmware Profile 1.06, section 10.4): a help for operators,
//! and no proof.

use tpm::Event;

/// Types of events by their numbers (table 27).
const KINDS: [(u32, &str); 21] = [
    (0x4, "EV_SEPARATOR"),
    (0x5, "EV_ACTION"),
    (0x7, "EV_S_CRTM_CONTENTS"),
    (0x8, "EV_S_CRTM_VERSION"),
    (0x1, "EV_POST_CODE"),
    (0xd, "EV_IPL"),
    (0xa, "EV_PLATFORM_CONFIG_FLAGS"),
    (0xb, "EV_TABLE_OF_DEVICES"),
    (0xc, "EV_COMPACT_HASH"),
    (0xf, "EV_NONHOST_CODE"),
    (0x8000_0001, "EV_EFI_VARIABLE_DRIVER_CONFIG"),
    (0x8000_0002, "EV_EFI_VARIABLE_BOOT"),
    (0x8000_0003, "EV_EFI_BOOT_SERVICES_APPLICATION"),
    (0x8000_0004, "EV_EFI_BOOT_SERVICES_DRIVER"),
    (0x8000_0005, "EV_EFI_RUNTIME_SERVICES_DRIVER"),
    (0x8000_0006, "EV_EFI_GPT_EVENT"),
    (0x8000_0007, "EV_EFI_ACTION"),
    (0x8000_0008, "EV_EFI_PLATFORM_FIRMWARE_BLOB"),
    (0x8000_0009, "EV_EFI_HANDOFF_TABLES"),
    (0x8000_000a, "EV_EFI_PLATFORM_FIRMWARE_BLOB2"),
    (0x8000_00e0, "EV_EFI_VARIABLE_AUTHORITY"),
];
/// Types whose data is `UEFI_VARIABLE_DATA`.
const VARIABLES: [u32; 3] = [0x8000_0001, 0x8000_0002, 0x8000_00e0];
/// Bytes of `UEFI_VARIABLE_DATA` before the name: GUID, characters of the name, bytes of the value.
const VARIABLE_HEAD: usize = 32;
/// Longest name or text that is shown, in characters.
const SHOWN: usize = 60;

/// Its type, and the name or the text in its data, where it has one.
pub fn event_name(event: &Event) -> String {
    let known = KINDS.iter().find(|(kind, _)| *kind == event.kind);
    let kind = known.map_or_else(|| format!("event {:#x}", event.kind), |(_, name)| (*name).to_owned());
    let detail = if VARIABLES.contains(&event.kind) { variable(event.data) } else { text(event.data) };
    detail.map_or_else(|| kind.clone(), |detail| format!("{kind} {detail}"))
}

/// The name of a variable.
fn variable(data: &[u8]) -> Option<String> {
    let (head, rest) = data.split_at_checked(VARIABLE_HEAD)?;
    let length = u64::from_le_bytes(head.get(16..24)?.try_into().ok()?);
    let characters = usize::try_from(length).ok()?.min(SHOWN);
    let name = rest.get(..characters * 2)?;
    let units = name.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let name: String = char::decode_utf16(units).map(|unit| unit.unwrap_or('?')).collect();
    printable(&name)
}

/// Data that is text.
fn text(data: &[u8]) -> Option<String> {
    let end = data.iter().rposition(|byte| *byte != 0)? + 1;
    printable(std::str::from_utf8(&data[..end.min(SHOWN)]).ok()?)
}

/// Whatever a firmware writes there must not control a terminal.
fn printable(text: &str) -> Option<String> {
    let is_plain = text.chars().all(|letter| letter == ' ' || letter.is_ascii_graphic());
    (!text.is_empty() && is_plain).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpm::Digest;

    fn named(kind: u32, data: &[u8]) -> String {
        event_name(&Event { pcr: 7, kind, digest: Digest::ZERO, data })
    }

    #[test]
    fn what_is_readable_is_shown_and_nothing_else() {
        let mut variable = vec![0; 16];
        variable.extend(10_u64.to_le_bytes());
        variable.extend(1_u64.to_le_bytes());
        variable.extend("SecureBoot".encode_utf16().flat_map(u16::to_le_bytes));
        variable.push(1);
        assert_eq!(named(0x8000_0001, &variable), "EV_EFI_VARIABLE_DRIVER_CONFIG SecureBoot");
        assert_eq!(named(0x8000_0001, &variable[..40]), "EV_EFI_VARIABLE_DRIVER_CONFIG");
        let action = b"Calling EFI Application from Boot Option";
        assert_eq!(named(0x8000_0007, action), "EV_EFI_ACTION Calling EFI Application from Boot Option");
        assert_eq!(named(0x4, &[0; 4]), "EV_SEPARATOR");
        assert_eq!(named(0x5, b"\x1b[2J"), "EV_ACTION");
        assert_eq!(named(0x1234, b"x\0"), "event 0x1234 x");
        variable[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(named(0x8000_0001, &variable), "EV_EFI_VARIABLE_DRIVER_CONFIG");
    }
}
