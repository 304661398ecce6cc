//! Certificates of endorsement keys: only which key one is for. Whether its maker is to be believed an operator decides.

/// Tags of DER (X.690, section 8).
const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const VERSION: u8 = 0xa0;

/// Whether the public key of a certificate (DER; RFC 5280, section 4.1) is this point of P-256, not compressed.
pub(crate) fn holds(certificate: &[u8], point: &[u8; 65]) -> bool {
    subject_public_key(certificate).is_some_and(|key| key == point)
}

/// A certificate as it is stored, without what fills its place.
pub(crate) fn without_padding(stored: &[u8]) -> Option<&[u8]> {
    let (_, _, rest) = element(stored)?;
    stored.get(..stored.len() - rest.len())
}

/// `subjectPublicKey` without the count of unused bits.
fn subject_public_key(certificate: &[u8]) -> Option<&[u8]> {
    let (tag, certificate, _) = element(certificate)?;
    let (inner, to_be_signed, _) = element(certificate)?;
    if (tag, inner) != (SEQUENCE, SEQUENCE) {
        return None;
    }
    let mut rest = to_be_signed;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // Serial number, algorithm of the signature, issuer, validity, subject.
    for _ in 0..5 {
        rest = element(rest)?.2;
    }
    let (tag, info, _) = element(rest)?;
    let (_, _, key) = element(info)?;
    let (inner, key, _) = element(key)?;
    if (tag, inner) != (SEQUENCE, BIT_STRING) {
        return None;
    }
    key.split_first().filter(|(unused, _)| **unused == 0).map(|(_, key)| key)
}

/// Tag and content of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(digits, _)| digits.len() <= 3)?;
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}
