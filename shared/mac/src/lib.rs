//! Ethernet MAC addresses, as nodes, firmware and Ironic write them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A MAC address of six octets (EUI-48). Displays and serializes in lower case with colons, the form Ironic stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac([u8; 6]);

/// A text that is not a MAC address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not a MAC address; expected six pairs of hexadecimal digits, as 52:54:00:12:34:56")]
pub struct MacError {
    given: String,
}

impl Mac {
    /// From its octets, in the order of transmission.
    pub const fn new(octets: [u8; 6]) -> Self {
        Self(octets)
    }

    /// Its octets, in the order of transmission.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// As PXELINUX and the kernel's `BOOTIF=` write it: hardware type 01 (Ethernet), then hyphens.
    pub fn bootif(self) -> String {
        format!("01-{}", self.to_string().replace(':', "-"))
    }
}

impl FromStr for Mac {
    type Err = MacError;

    /// Accepts colons or hyphens (iPXE `${mac}` and `${mac:hexhyp}`), either case.
    fn from_str(text: &str) -> Result<Self, MacError> {
        let error = || MacError { given: text.chars().filter(|c| !c.is_control()).take(40).collect() };
        let mut octets = [0; 6];
        let mut pairs = text.split([':', '-']);
        for octet in &mut octets {
            let pair = pairs.next().filter(|pair| pair.len() == 2).ok_or_else(error)?;
            // from_str_radix would accept a sign.
            if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(error());
            }
            *octet = u8::from_str_radix(pair, 16).map_err(|_| error())?;
        }
        if pairs.next().is_some() { Err(error()) } else { Ok(Self(octets)) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn colons_and_hyphens_are_read_and_anything_else_is_rejected() {
        let mac: Mac = "52:54:00:AB:cd:01".parse().unwrap();
        assert_eq!(mac, "52-54-00-ab-CD-01".parse().unwrap());
        assert_eq!(mac.octets(), [0x52, 0x54, 0x00, 0xab, 0xcd, 0x01]);
        assert_eq!(mac.to_string(), "52:54:00:ab:cd:01");
        assert_eq!(mac.bootif(), "01-52-54-00-ab-cd-01");
        for bad in [
            "",
            "52:54:00:ab:cd",
            "52:54:00:ab:cd:01:02",
            "52:54:00:ab:cd:+1",
            "52:54:00:ab:cd:g0",
            " 52:54:00:ab:cd:01",
            "525400abcd01",
            "5254.00ab.cd01",
            "é2:54:00:ab:cd:01",
        ] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_error_shows_a_short_printable_part_of_the_text() {
        let error = format!("\u{1b}[2J{}", "x".repeat(100)).parse::<Mac>().unwrap_err().to_string();
        assert!(error.starts_with("'[2Jxxx") && error.len() < 150, "{error}");
    }

    proptest! {
        #[test]
        fn every_address_round_trips_as_text_and_as_json(octets: [u8; 6], text in ".{0,40}") {
            let mac = Mac::new(octets);
            prop_assert_eq!(mac.to_string().parse(), Ok(mac));
            prop_assert_eq!(mac.bootif()[3..].to_uppercase().parse(), Ok(mac));
            let json = serde_json::to_string(&mac).unwrap();
            prop_assert_eq!(&json, &format!("\"{mac}\""));
            prop_assert_eq!(serde_json::from_str::<Mac>(&json).unwrap(), mac);
            // No text makes it panic, and what it accepts it writes in one way.
            if let Ok(read) = text.parse::<Mac>() {
                prop_assert_eq!(read.to_string(), text.to_lowercase().replace('-', ":"));
            }
        }
    }
}
