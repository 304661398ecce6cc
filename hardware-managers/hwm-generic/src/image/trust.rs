//! Whose certificates mirrors may have: what came with the step, or else what the agent was started with.

use image_writer::source::{Pins, Signers, pin};
use image_writer::{ImageUrl, Trust};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which mirrors are trusted where a step does not say whose certificates they may have: a real Ironic never does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MirrorTrust {
    /// None.
    #[default]
    None,
    /// Those with a certificate of these authorities (PEM file).
    CaFile(PathBuf),
    /// All. The operator asked for it.
    Any,
}

/// What came with a step.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    /// Certificates of authorities as PEM.
    pub(super) ca: Option<&'a str>,
    /// Fingerprints by host.
    pub(super) pins: &'a BTreeMap<String, Vec<String>>,
    /// Fingerprint of the host of the image.
    pub(super) pin: Option<&'a str>,
}

/// The trust of the image at `url`, its digests and the configuration drive.
///
/// # Errors
/// The member, and what is wrong with it.
pub(super) fn trust(sent: Sent, url: &ImageUrl, own: &MirrorTrust) -> Result<Trust, String> {
    let mut pins = Pins::of(sent.pins).map_err(|problem| format!("anneal.pins: {problem}"))?;
    if let Some(text) = sent.pin {
        pins.add(url.host(), pin(text).map_err(|problem| format!("anneal.pin: {problem}"))?);
    }
    let signers = match (sent.ca, own) {
        (Some(pem), _) => Signers::Pem(pem.as_bytes().to_vec()),
        // A controller that says something does not mean what the agent was started with.
        (None, _) if !pins.is_empty() => Signers::None,
        (None, MirrorTrust::None) => Signers::None,
        (None, MirrorTrust::Any) => Signers::Any,
        (None, MirrorTrust::CaFile(path)) => {
            let read =
                std::fs::read(path).map_err(|error| format!("the CA file {}: {error}", path.display()));
            Signers::Pem(read?)
        }
    };
    Ok(Trust { pins, signers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_step_replaces_what_the_agent_was_started_with() {
        let (a, b) = (format!("sha256:{}", "aa".repeat(32)), format!("sha256:{}", "bb".repeat(32)));
        let (none, some) = (BTreeMap::new(), BTreeMap::from([("other.example".to_owned(), vec![b])]));
        let url: ImageUrl = "https://Mirror.example/x".parse().expect("a URL");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "own").expect("written");
        let own = MirrorTrust::CaFile(file.path().to_owned());
        let pem = |text: &str| Signers::Pem(text.as_bytes().to_vec());
        let sent = |ca, pins, pin| Sent { ca, pins, pin };
        for (sent, own, signers) in [
            (sent(None, &none, None), &MirrorTrust::None, Signers::None),
            (sent(None, &none, None), &MirrorTrust::Any, Signers::Any),
            (sent(None, &none, None), &own, pem("own")),
            (sent(Some("sent"), &none, None), &own, pem("sent")),
            (sent(Some("sent"), &some, Some(a.as_str())), &MirrorTrust::Any, pem("sent")),
            (sent(None, &some, None), &MirrorTrust::Any, Signers::None),
            (sent(None, &none, Some(a.as_str())), &own, Signers::None),
        ] {
            let found = trust(sent, &url, own).expect("a trust");
            assert_eq!(found.signers, signers, "{sent:?} {own:?}");
            let pinned = ["mirror.example", "other.example"].map(|host| found.pins.get(host).is_some());
            assert_eq!(pinned, [sent.pin.is_some(), !sent.pins.is_empty()], "{sent:?}");
        }
        let gone = MirrorTrust::CaFile("/nonexistent/ca.pem".into());
        let said = trust(sent(None, &none, None), &url, &gone).expect_err("no file");
        assert!(said.contains("the CA file /nonexistent/ca.pem"), "{said}");
    }
}
