//! The fingerprint of a certificate.

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use std::str::FromStr;

/// SHA-256 of the DER of one certificate; written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pin([u8; 32]);

/// What was given cannot be a pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadPin(String);

impl Pin {
    /// That of the certificate with this DER.
    pub fn of_der(der: &[u8]) -> Self {
        let mut pin = [0; 32];
        pin.copy_from_slice(digest(&SHA256, der).as_ref());
        Self(pin)
    }

    /// That of the first certificate in a PEM text.
    ///
    /// # Errors
    /// When there is no readable certificate in it.
    pub fn of_pem(pem: &str) -> Result<Self, BadPin> {
        match CertificateDer::from_pem_slice(pem.as_bytes()) {
            Ok(certificate) => Ok(Self::of_der(&certificate)),
            Err(error) => Err(BadPin(format!("no certificate can be read: {error}"))),
        }
    }
}

impl FromStr for Pin {
    type Err = BadPin;

    /// Case does not matter, nor do colons between the digits, as openssl prints them.
    fn from_str(text: &str) -> Result<Self, BadPin> {
        let hex = text.strip_prefix("sha256:").ok_or_else(|| {
            BadPin(format!("a pin is written sha256: and 64 hexadecimal digits, not {text:?}"))
        })?;
        let digits: Vec<u8> = hex.bytes().filter(|&byte| byte != b':').collect();
        if digits.len() != 64 {
            return Err(BadPin(format!("a pin has 64 hexadecimal digits, this one has {}", digits.len())));
        }
        let mut pin = [0; 32];
        for (byte, pair) in pin.iter_mut().zip(digits.chunks_exact(2)) {
            let digit =
                |at: usize| char::from(pair[at]).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            let (Some(high), Some(low)) = (digit(0), digit(1)) else {
                return Err(BadPin(format!("{text:?} is not hexadecimal")));
            };
            *byte = high << 4 | low;
        }
        Ok(Self(pin))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for BadPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPin {}

#[cfg(test)]
mod tests {
    use super::Pin;

    #[test]
    fn pins_are_read_and_written() {
        let text = format!("sha256:{}", "0aF1".repeat(16));
        let pin: Pin = text.parse().unwrap();
        assert_eq!(pin.to_string(), text.to_lowercase());
        assert_eq!(format!("sha256:{}0A:F1", "0A:F1:".repeat(15)).parse(), Ok(pin));
        for bad in [
            "",
            "sha256:",
            "md5:00",
            &"a".repeat(64),
            &format!("sha256:{}", "zz".repeat(32)),
            &format!("sha256:{}", "+1".repeat(32)),
            &format!("sha256:{}", "é".repeat(32)),
            &format!("sha256:{}", "0".repeat(65)),
        ] {
            assert!(bad.parse::<Pin>().is_err(), "{bad}");
        }
    }

    /// By `openssl x509 -fingerprint -sha256` over the same bytes: SHA-256 of "abc", FIPS 180-2.
    #[test]
    fn a_pin_is_the_digest_of_the_der() {
        let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Pin::of_der(b"abc").to_string(), abc);
        let pem = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
        assert_eq!(Pin::of_pem(pem), Ok(Pin::of_der(b"abc")));
        assert!(Pin::of_pem("no PEM").is_err());
    }
}
