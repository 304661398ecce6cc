//! Ethernet addresses as nodes and firmware write them.

use std::fmt;
use std::str::FromStr;

/// An Ethernet MAC address. Displays in lower case with colons, the form Ironic stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

/// Text that is no MAC address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not a MAC address; expected six pairs of hexadecimal digits, as 52:54:00:12:34:56")]
pub struct MacError {
    given: String,
}

impl FromStr for Mac {
    type Err = MacError;

    /// Accepts colons or hyphens (iPXE `${mac}` and `${mac:hexhyp}`), either case.
    fn from_str(text: &str) -> Result<Self, MacError> {
        let error = || MacError { given: text.chars().filter(|c| !c.is_control()).take(40).collect() };
        let mut bytes = [0; 6];
        let mut pairs = text.split([':', '-']);
        for byte in &mut bytes {
            let pair = pairs.next().filter(|pair| pair.len() == 2).ok_or_else(error)?;
            if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(error());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| error())?;
        }
        if pairs.next().is_some() { Err(error()) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Mac {
    /// As PXELINUX and the kernel's `BOOTIF=` write it: hardware type 01 (Ethernet), then hyphens.
    pub fn bootif(self) -> String {
        format!("01-{}", self.to_string().replace(':', "-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_spellings_and_refuses_the_rest() {
        let mac: Mac = "52:54:00:AB:cd:01".parse().unwrap();
        assert_eq!(mac, "52-54-00-ab-CD-01".parse().unwrap());
        assert_eq!(mac.to_string(), "52:54:00:ab:cd:01");
        assert_eq!(mac.bootif(), "01-52-54-00-ab-cd-01");
        for bad in [
            "",
            "52:54:00:ab:cd",
            "52:54:00:ab:cd:01:02",
            "52:54:00:ab:cd:+1",
            "525400abcd01",
            "é2:54:00:ab:cd:01",
        ] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics_and_round_trips(text in ".{0,40}", bytes: [u8; 6]) {
            let _ = text.parse::<Mac>();
            proptest::prop_assert_eq!(Mac(bytes).to_string().parse(), Ok(Mac(bytes)));
        }
    }
}
