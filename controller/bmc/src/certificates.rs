//! Certificates in PEM (RFC 7468), as texts that can be compared and sent to a BMC.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";
/// Characters of a line.
const LINE: usize = 64;

/// One certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// Its DER in base64, without line ends.
    base64: String,
}

impl Certificate {
    /// In PEM, and nothing else.
    pub(crate) fn pem(&self) -> String {
        let mut lines = vec![BEGIN];
        let mut rest = self.base64.as_str();
        while !rest.is_empty() {
            let (line, behind) = rest.split_at(rest.len().min(LINE));
            lines.push(line);
            rest = behind;
        }
        lines.push(END);
        format!("{}\n", lines.join("\n"))
    }
}

/// The certificates in a text, of which everything else is left out. `Err` is what is wrong with one; it quotes nothing of the text.
pub(crate) fn certificates(text: &str) -> Result<Vec<Certificate>, String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once(BEGIN) {
        let number = found.len() + 1;
        let (body, behind) =
            behind.split_once(END).ok_or_else(|| format!("certificate {number} has no end"))?;
        let base64: String = body.split_whitespace().collect();
        let certificate = Certificate { base64 };
        if !certificate.base64.is_ascii()
            || CertificateDer::from_pem_slice(certificate.pem().as_bytes()).is_err()
        {
            return Err(format!("certificate {number} is not PEM"));
        }
        found.push(certificate);
        rest = behind;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_found_and_nothing_else_is() {
        let of = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let (one, two) = (of("one"), of("two"));
        let text =
            format!("a remark\n{}{}\n{}", one.cert.pem(), one.signing_key.serialize_pem(), two.cert.pem());
        let found = certificates(&text).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].pem().replace('\n', ""), one.cert.pem().replace(['\r', '\n'], ""));
        assert_eq!(certificates(&found[1].pem().replace('\n', "\r\n")).unwrap(), found[1..]);
        assert!(found[0].pem().lines().all(|line| line.len() <= LINE));
        assert_eq!(certificates("nothing").unwrap(), []);
        for (bad, why) in [
            (format!("{BEGIN}\nAAAA"), "certificate 1 has no end"),
            (format!("{}{BEGIN}\n!\u{e4}!\n{END}", one.cert.pem()), "certificate 2 is not PEM"),
            (format!("{BEGIN}\n!!\n{END}"), "certificate 1 is not PEM"),
        ] {
            assert_eq!(certificates(&bad), Err(why.to_owned()));
        }
    }
}
