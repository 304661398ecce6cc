//! Whose certificates mirrors may have: for the controller's own fetches, and as it is sent to agents.

use crate::settings::Settings;
use image_source::{Pins, Signers, Trust, authorities};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The authorities of the machine, where the settings name no others. No agent gets them.
const SYSTEM: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Largest file of authorities: it goes to an agent with each deployment.
const CA_BYTES: u64 = 1 << 20;

/// What is sent to agents that fetch an image by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentTrust {
    /// Certificates of authorities as PEM.
    pub ca: Option<String>,
    /// Fingerprints by host.
    pub pins: BTreeMap<String, Vec<String>>,
}

impl AgentTrust {
    /// Whether an agent could accept a certificate of `host`.
    pub(crate) fn covers(&self, host: &str) -> bool {
        self.ca.is_some() || Pins::of(&self.pins).is_ok_and(|pins| pins.get(host).is_some())
    }
}

/// The controller's trust, and that of agents.
///
/// # Errors
/// The setting, and why it cannot be used.
pub(crate) fn read(settings: &Settings) -> Result<(Trust, AgentTrust), String> {
    let pins = Pins::of(&settings.pins).map_err(|why| format!("images.pins: {why}"))?;
    let mut sent = AgentTrust { ca: None, pins: settings.pins.clone() };
    if settings.ca_file.as_os_str().is_empty() {
        let signers = match std::fs::read(SYSTEM) {
            Ok(pem) => Signers::Pem(pem),
            Err(error) => {
                tracing::info!(%error, file = SYSTEM, "no authorities: https only from mirrors in images.pins");
                Signers::None
            }
        };
        return Ok((Trust { pins, signers }, sent));
    }
    let of_file = |why: String| format!("images.ca_file {}: {why}", settings.ca_file.display());
    let pem = contents(&settings.ca_file).map_err(|error| of_file(error.to_string()))?;
    authorities(pem.as_bytes()).map_err(of_file)?;
    sent.ca = Some(pem.clone());
    Ok((Trust { pins, signers: Signers::Pem(pem.into_bytes()) }, sent))
}

fn contents(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(CA_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > CA_BYTES {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_get_what_is_set_and_never_the_authorities_of_the_system() {
        let pins = BTreeMap::from([("a".to_owned(), vec![format!("sha256:{}", "aa".repeat(32))])]);
        let (trust, sent) = read(&Settings { pins: pins.clone(), ..Settings::default() }).unwrap();
        assert_eq!((&sent.ca, &sent.pins), (&None, &pins));
        assert!(sent.covers("A") && !sent.covers("b"));
        assert!(trust.pins.get("a").is_some());
        assert_eq!(read(&Settings::default()).unwrap().1, AgentTrust::default());
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        let said = |file: &Path| read(&Settings { ca_file: file.into(), ..Settings::default() }).unwrap_err();
        assert!(said(&file).starts_with(&format!("images.ca_file {}: ", file.display())), "{}", said(&file));
        std::fs::write(&file, "no certificate").unwrap();
        assert!(said(&file).contains("it has no certificate"), "{}", said(&file));
        std::fs::write(&file, "x".repeat((1 << 20) + 1)).unwrap();
        assert!(said(&file).contains("more than 1 MiB"), "{}", said(&file));
        let pins = BTreeMap::from([("a".to_owned(), vec!["md5:00".to_owned()])]);
        let said = read(&Settings { pins, ..Settings::default() }).unwrap_err();
        assert!(said.starts_with("images.pins: a: it is no fingerprint"), "{said}");
    }
}
