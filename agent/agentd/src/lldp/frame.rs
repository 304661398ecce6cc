//! An LLDP frame. Pure.

use serde_json::{Value, json};

const HEADER: usize = 14;
const ETHERTYPE: [u8; 2] = [0x88, 0xcc];
const END: u8 = 0;
const CHASSIS_ID: u8 = 1;
const PORT_ID: u8 = 2;
const TIME_TO_LIVE: u8 = 3;

/// One TLV of a neighbour's frame: type (0 to 127) and value (at most 511 bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tlv {
    /// Its type, IEEE 802.1AB table 8-1.
    pub kind: u8,
    /// Its value.
    pub value: Vec<u8>,
}

impl Tlv {
    /// `[type, hex]`, as ironic-python-agent writes it.
    pub fn to_json(&self) -> Value {
        let hex: String = self.value.iter().map(|byte| format!("{byte:02x}")).collect();
        json!([self.kind, hex])
    }
}

/// The TLVs of an Ethernet frame, without the one that ends them. `None` when it is no LLDP frame, is broken, or says
/// that its sender is going away (time to live 0).
pub fn tlvs(frame: &[u8]) -> Option<Vec<Tlv>> {
    if frame.get(HEADER - 2..HEADER)? != ETHERTYPE {
        return None;
    }
    let mut rest = &frame[HEADER..];
    let mut found: Vec<Tlv> = Vec::new();
    while let [first, second, after @ ..] = rest {
        let length = usize::from(first & 1) << 8 | usize::from(*second);
        let (value, next) = after.split_at_checked(length)?;
        let kind = first >> 1;
        if kind == END {
            break;
        }
        found.push(Tlv { kind, value: value.to_owned() });
        rest = next;
    }
    // 802.1AB, 9.2.7.7.1: these three come first, or the frame is thrown away.
    let begins = found.iter().map(|tlv| tlv.kind).take(3).eq([CHASSIS_ID, PORT_ID, TIME_TO_LIVE]);
    let stays = found.get(2).is_some_and(|tlv| tlv.value.len() >= 2 && tlv.value[..2] != [0, 0]);
    (begins && stays).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(parts: &[(u8, &[u8])]) -> Vec<u8> {
        let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc];
        for (kind, value) in parts {
            let length = u16::try_from(value.len()).expect("short");
            frame.extend((u16::from(*kind) << 9 | length).to_be_bytes());
            frame.extend(*value);
        }
        frame
    }

    const FIRST: [(u8, &[u8]); 3] = [(1, b"\x04\xaa"), (2, b"\x05eth1"), (3, b"\0\x78")];

    #[test]
    fn a_frame_is_read_up_to_its_end_and_written_as_ipa_does() {
        let long = [7; 511];
        let all = [&FIRST[..], &[(5, b"leaf1"), (127, &long), (0, b""), (5, b"padding")]].concat();
        let read = tlvs(&frame(&all)).expect("a frame");
        assert_eq!(read.iter().map(|tlv| tlv.kind).collect::<Vec<_>>(), [1, 2, 3, 5, 127]);
        assert_eq!(read[1].to_json(), json!([2, "0565746831"]));
        assert_eq!(read[4].value, long);
    }

    #[test]
    fn what_is_no_neighbour_is_not_believed() {
        assert!(tlvs(&frame(&FIRST)).is_some());
        let goodbye = [FIRST[0], FIRST[1], (3, b"\0\0")];
        let swapped = [FIRST[1], FIRST[0], FIRST[2]];
        for wrong in [&goodbye[..], &swapped, &FIRST[..2], &[FIRST[0], FIRST[1], (3, b"")]] {
            assert_eq!(tlvs(&frame(wrong)), None, "{wrong:?}");
        }
        let whole = frame(&FIRST);
        assert_eq!(tlvs(&whole[..whole.len() - 1]), None, "cut off");
        let mut other = whole;
        other[13] = 0xcd;
        assert_eq!(tlvs(&other), None);
    }

    proptest! {
        #[test]
        fn garbage_breaks_nothing_and_nothing_is_made_up(
            garbage in prop::collection::vec(any::<u8>(), 0..1600), lldp in any::<bool>(),
        ) {
            let mut bytes = garbage;
            if lldp && bytes.len() >= HEADER {
                bytes[12..14].copy_from_slice(&ETHERTYPE);
            }
            if let Some(found) = tlvs(&bytes) {
                let length: usize = found.iter().map(|tlv| tlv.value.len() + 2).sum();
                prop_assert!(length <= bytes.len() - HEADER);
            }
        }

        #[test]
        fn every_tlv_comes_through(
            more in prop::collection::vec((1_u8..=127, prop::collection::vec(any::<u8>(), 0..512)), 0..8),
        ) {
            let mut parts = FIRST.to_vec();
            parts.extend(more.iter().map(|(kind, value)| (*kind, &value[..])));
            let found = tlvs(&frame(&parts)).expect("a frame");
            let found: Vec<(u8, &[u8])> = found.iter().map(|tlv| (tlv.kind, &tlv.value[..])).collect();
            prop_assert_eq!(found, parts);
        }
    }
}
