//! What a switch says of itself and of the port (IEEE 802.1AB), from the TLVs as agents keep them: `[type, hex]`. Pure.

use serde_json::Value;
use std::net::{Ipv4Addr, Ipv6Addr};

const CHASSIS_ID: u64 = 1;
const PORT_ID: u64 = 2;
const PORT_DESCRIPTION: u64 = 4;
const SYSTEM_NAME: u64 = 5;
const MANAGEMENT_ADDRESS: u64 = 8;
const ORGANISATION: u64 = 127;
/// IEEE 802.1, subtype "Port VLAN ID".
const PORT_VLAN: [u8; 4] = [0x00, 0x80, 0xc2, 1];
/// Subtypes of ids that are MAC addresses.
const CHASSIS_MAC: u8 = 4;
const PORT_MAC: u8 = 3;
/// Address families of IANA.
const IPV4: u8 = 1;
const IPV6: u8 = 2;

/// A neighbour. Fields that it does not announce are empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Neighbour {
    /// Its name.
    pub system: String,
    /// Which box it is, mostly by MAC.
    pub chassis: String,
    /// Which of its ports.
    pub port: String,
    /// What its owner calls the port.
    pub description: String,
    /// VLAN of untagged frames.
    pub vlan: String,
    /// Where it is managed.
    pub address: String,
}

/// From the TLVs of an interface; `None` when there are none.
pub fn neighbour(tlvs: &Value) -> Option<Neighbour> {
    let mut found = Neighbour::default();
    for tlv in tlvs.as_array()? {
        let (Some(kind), Some(value)) = (tlv[0].as_u64(), tlv[1].as_str().and_then(unhex)) else { continue };
        match kind {
            CHASSIS_ID => found.chassis = id(&value, CHASSIS_MAC),
            PORT_ID => found.port = id(&value, PORT_MAC),
            PORT_DESCRIPTION => found.description = text(&value),
            SYSTEM_NAME => found.system = text(&value),
            MANAGEMENT_ADDRESS if found.address.is_empty() => found.address = address(&value),
            ORGANISATION => {
                if let Some([high, low]) = value.strip_prefix(&PORT_VLAN) {
                    found.vlan = u16::from_be_bytes([*high, *low]).to_string();
                }
            }
            _ => {}
        }
    }
    (found != Neighbour::default()).then_some(found)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

/// A subtype, and a MAC address or a text.
fn id(value: &[u8], mac: u8) -> String {
    match value {
        [subtype, rest @ ..] if *subtype == mac && rest.len() == 6 => {
            rest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        [_, rest @ ..] => text(rest),
        [] => String::new(),
    }
}

/// Length of family and address, family, address.
fn address(value: &[u8]) -> String {
    match value {
        [5, IPV4, rest @ ..] if rest.len() >= 4 => {
            Ipv4Addr::from([rest[0], rest[1], rest[2], rest[3]]).to_string()
        }
        [17, IPV6, rest @ ..] => {
            let octets = rest.get(..16).and_then(|octets| <[u8; 16]>::try_from(octets).ok());
            octets.map(|octets| Ipv6Addr::from(octets).to_string()).unwrap_or_default()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_switch_is_known_by_what_it_says() {
        let tlvs = json!([
            [1, "040200000000 01".replace(' ', "")],
            [2, "0545746831 2f37".replace(' ', "")],
            [3, "0078"],
            [4, "7570206c696e6b"],
            [5, "6c6561662d33"],
            [8, "0501c0000201020000000100"],
            [127, "0080c2010064"],
            [127, "00120f01"],
            [99, "xx"],
            "nonsense",
            [5]
        ]);
        let found = neighbour(&tlvs).expect("a neighbour");
        assert_eq!(
            found,
            Neighbour {
                system: "leaf-3".into(),
                chassis: "02:00:00:00:00:01".into(),
                port: "Eth1/7".into(),
                description: "up link".into(),
                vlan: "100".into(),
                address: "192.0.2.1".into(),
            }
        );
        for nothing in [json!([]), json!(null), json!([[0, ""]]), json!([[1, "zz"]])] {
            assert_eq!(neighbour(&nothing), None, "{nothing}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(tlvs in prop::collection::vec((0_u8..128, prop::collection::vec(any::<u8>(), 0..40)), 0..6)) {
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            let tlvs: Value = tlvs.iter().map(|(kind, value)| json!([kind, hex(value)])).collect();
            let _ = neighbour(&tlvs);
        }
    }
}
