//! Whose certificates mirrors may have.

use crate::hosts::Host;
use pinned_tls::Pin;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Whose certificates mirrors may have. By default no certificate is accepted; there are no public authorities in the ramdisk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// Hosts that are known by their certificates, whatever else is trusted.
    pub pins: Pins,
    /// The authorities that sign the certificates of all other hosts.
    pub signers: Signers,
}

/// The authorities that sign the certificates of mirrors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Signers {
    /// No certificate is accepted.
    #[default]
    None,
    /// These certificates (PEM), for the name in the URL.
    Pem(Vec<u8>),
    /// Every certificate is accepted. The operator asked for it; the checksum still says which image it is.
    Any,
}

/// Fingerprints of certificates by host. Such a host must have one of its certificates; names, dates and issuers do not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins(BTreeMap<String, Vec<Pin>>);

impl Pins {
    /// From hosts (names or addresses, without port) and their fingerprints, `sha256:` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// A host that is neither a name nor an address, or what is no fingerprint of it.
    pub fn of(hosts: &BTreeMap<String, Vec<String>>) -> Result<Self, String> {
        let mut pins = Self::default();
        for (host, fingerprints) in hosts {
            let name = matches!(Host::parse(host), Ok(Host::Name(name)) if !name.starts_with('.'));
            if !name && host.parse::<IpAddr>().is_err() {
                return Err(format!("{host:?} is neither a name nor an address"));
            }
            if fingerprints.is_empty() {
                return Err(format!("{host}: no fingerprint"));
            }
            for fingerprint in fingerprints {
                pins.add(host, pin(fingerprint).map_err(|why| format!("{host}: {why}"))?);
            }
        }
        Ok(pins)
    }

    /// One more certificate of a host.
    pub fn add(&mut self, host: &str, pin: Pin) {
        self.0.entry(normal(host)).or_default().push(pin);
    }

    /// Those of a host, where it is known by its certificates.
    pub fn get(&self, host: &str) -> Option<&[Pin]> {
        self.0.get(&normal(host)).map(Vec::as_slice)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One spelling of a host.
fn normal(host: &str) -> String {
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => host.trim_end_matches('.').to_ascii_lowercase(),
    }
}

/// The fingerprint of a certificate.
///
/// # Errors
/// When it is none.
pub fn pin(text: &str) -> Result<Pin, String> {
    text.parse()
        .map_err(|_| "it is no fingerprint of a certificate, sha256: and 64 hexadecimal digits".to_owned())
}

/// The authorities in a PEM text.
///
/// # Errors
/// There is none that can be used.
pub fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    roots.add_parsable_certificates(certificates.map_err(|error| format!("no PEM: {error}"))?);
    if roots.is_empty() {
        return Err("it has no certificate".to_owned());
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &[String])]) -> BTreeMap<String, Vec<String>> {
        pairs.iter().map(|(host, pins)| ((*host).to_owned(), pins.to_vec())).collect()
    }

    #[test]
    fn pins_are_those_of_one_host_in_any_spelling() {
        let (a, b) = (format!("sha256:{}", "aa".repeat(32)), format!("sha256:{}", "bb".repeat(32)));
        let pins = map(&[("Mirror.Example.", &[a.clone(), b]), ("2001:DB8::1", std::slice::from_ref(&a))]);
        let pins = Pins::of(&pins).expect("pins");
        let count = |host: &str| pins.get(host).map(<[Pin]>::len);
        assert_eq!([count("mirror.example"), count("MIRROR.example.")], [Some(2); 2]);
        assert_eq!([count("2001:db8:0::1"), count("2001:db8::2")], [Some(1), None]);
        assert_eq!([count("other.example"), count("x.mirror.example")], [None; 2]);
        for (host, pin, why) in [
            (".example", a.as_str(), "neither a name nor an address"),
            ("192.0.2.0/24", &a, "neither a name nor an address"),
            ("a:443", &a, "neither a name nor an address"),
            ("a", "sha256:12", "a: it is no fingerprint"),
        ] {
            let said = Pins::of(&map(&[(host, &[pin.to_owned()])])).expect_err(host);
            assert!(said.contains(why), "{said}");
        }
        assert!(Pins::of(&map(&[("a", &[])])).expect_err("none").contains("no fingerprint"));
    }

    #[test]
    fn a_file_without_a_certificate_is_refused() {
        for bad in [&b""[..], b"no PEM", b"-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n"] {
            assert!(authorities(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }
}
