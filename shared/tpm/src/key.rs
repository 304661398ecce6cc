//! Public parts of keys (`TPMT_PUBLIC`; TPM 2.0 Library, Part 2, section 12.2.4), and their names (Part 1, section 16).

use crate::algorithm::{AES, CFB, ECC, ECDSA, NIST_P256, NULL, SHA256, attribute};
use crate::bytes::{Malformed, Reader, Writer};
use crate::digest::{Digest, unhex};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes of a coordinate on P-256.
pub(crate) const COORDINATE: usize = 32;
/// Bytes of the longest public part that is looked at.
const LONGEST: usize = 512;

/// `PolicySecret(TPM_RH_ENDORSEMENT)`: the policy of the default template (TCG EK Credential Profile 2.5, B.6.2).
const ENDORSEMENT_POLICY: [u8; 32] = [
    0x83, 0x71, 0x97, 0x67, 0x44, 0x84, 0xb3, 0xf8, 0x1a, 0x90, 0xcc, 0x8d, 0x46, 0xa5, 0xd7, 0x24, 0xfd,
    0x52, 0xd7, 0x6e, 0x06, 0x52, 0x0b, 0x64, 0xf2, 0xa1, 0xda, 0x1b, 0x33, 0x14, 0x69, 0xaa,
];

/// Attributes of the default template.
const ENDORSEMENT: u32 = attribute::FIXED_TPM
    | attribute::FIXED_PARENT
    | attribute::SENSITIVE_DATA_ORIGIN
    | attribute::ADMIN_WITH_POLICY
    | attribute::RESTRICTED
    | attribute::DECRYPT;

/// Attributes of an attestation key. Without `noDA` each power cut counts as a failed try, and after a few the TPM is locked.
const ATTESTATION: u32 = attribute::FIXED_TPM
    | attribute::FIXED_PARENT
    | attribute::SENSITIVE_DATA_ORIGIN
    | attribute::USER_WITH_AUTH
    | attribute::NO_DA
    | attribute::RESTRICTED
    | attribute::SIGN;

/// Why a key is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No `TPMT_PUBLIC`.
    #[error("its public part cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// Neither P-256 nor SHA-256.
    #[error("it is no key on P-256 whose name is a SHA-256 digest")]
    Algorithm,
    /// Another endorsement key than that of the default template.
    #[error("it was not made from the default template of the TCG for endorsement keys on P-256")]
    Template,
    /// It would sign what did not arise in the TPM.
    #[error("it is not restricted: it would sign a quote that was made outside the TPM")]
    NotRestricted,
    /// It signs nothing.
    #[error("it does not sign")]
    DoesNotSign,
    /// It may exist outside the TPM.
    #[error("it may leave its TPM, or was not made in it")]
    NotFixed,
}

/// Name of a key: SHA-256 of its public part, behind the number of that algorithm. As text, also in JSON: 68 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Name([u8; 34]);

impl Name {
    fn of(public: &[u8]) -> Self {
        let mut name = [0; 34];
        name[..2].copy_from_slice(&SHA256.to_be_bytes());
        name[2..].copy_from_slice(&Digest::of(public).0);
        Self(name)
    }

    /// As the TPM writes it.
    pub fn bytes(&self) -> &[u8; 34] {
        &self.0
    }

    /// Name that this key has in quotes, as a primary key of the endorsement hierarchy (Part 1, section 16, "Qualified Name").
    pub(crate) fn qualified(&self) -> Self {
        let mut name = self.0;
        name[2..]
            .copy_from_slice(&Digest::of_all(&[&crate::algorithm::ENDORSEMENT.to_be_bytes(), &self.0]).0);
        Self(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = unhex(text).and_then(|bytes| <[u8; 34]>::try_from(bytes).ok());
        let name = bytes.filter(|bytes| bytes[..2] == SHA256.to_be_bytes()).map(Self);
        name.ok_or_else(|| {
            format!("{text:?} is no name of a key: 000b and 64 hexadecimal digits, lower case")
        })
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// A point on P-256, not compressed (SEC 1, section 2.3.3). That it is on the curve is checked where it is used.
pub(crate) type Point = [u8; 1 + 2 * COORDINATE];

/// What all keys here have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    public: Vec<u8>,
    name: Name,
    point: Point,
}

/// A key on P-256 with everything that its public part says.
struct Parsed<'a> {
    attributes: u32,
    policy: &'a [u8],
    symmetric: Option<(u16, u16, u16)>,
    scheme: Option<(u16, u16)>,
    kdf: u16,
    point: Point,
}

fn parse(public: &[u8]) -> Result<Parsed<'_>, KeyError> {
    if public.len() > LONGEST {
        return Err(Malformed("it is too long").into());
    }
    let mut reader = Reader::new(public);
    if (reader.u16()?, reader.u16()?) != (ECC, SHA256) {
        return Err(KeyError::Algorithm);
    }
    let attributes = reader.u32()?;
    let policy = reader.sized()?;
    let symmetric = match reader.u16()? {
        NULL => None,
        algorithm => Some((algorithm, reader.u16()?, reader.u16()?)),
    };
    let scheme = match reader.u16()? {
        NULL => None,
        algorithm => Some((algorithm, reader.u16()?)),
    };
    if reader.u16()? != NIST_P256 {
        return Err(KeyError::Algorithm);
    }
    let kdf = reader.u16()?;
    let point = point(reader.sized()?, reader.sized()?)?;
    reader.end()?;
    Ok(Parsed { attributes, policy, symmetric, scheme, kdf, point })
}

/// Some TPMs leave out zeros at the beginning of a coordinate.
fn point(x: &[u8], y: &[u8]) -> Result<Point, KeyError> {
    let mut point = [0; 1 + 2 * COORDINATE];
    point[0] = 4;
    for (coordinate, place) in [x, y].into_iter().zip(point[1..].chunks_mut(COORDINATE)) {
        if coordinate.is_empty() {
            return Err(Malformed("a coordinate is missing").into());
        }
        let free = place.len().checked_sub(coordinate.len()).ok_or(Malformed("a coordinate is too long"))?;
        place[free..].copy_from_slice(coordinate);
    }
    Ok(point)
}

/// The public part of an endorsement key, which no two TPMs have in common. It was made from the default template: so it decrypts
/// only credentials, and stays where it is.
///
/// Whether it is in a TPM at all nothing here says: that is for the maker's certificate, or for the operator that enrols it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndorsementKey(Key);

impl EndorsementKey {
    /// Of a `TPMT_PUBLIC`.
    ///
    /// # Errors
    /// It is none, or that of another kind of key.
    pub fn parse(public: &[u8]) -> Result<Self, KeyError> {
        let parsed = parse(public)?;
        let is_default = parsed.attributes == ENDORSEMENT
            && parsed.policy == ENDORSEMENT_POLICY
            && parsed.symmetric == Some((AES, 128, CFB))
            && parsed.scheme.is_none()
            && parsed.kdf == NULL;
        if !is_default {
            return Err(KeyError::Template);
        }
        Ok(Self(Key { public: public.to_vec(), name: Name::of(public), point: parsed.point }))
    }

    /// The default template of TPMs for P-256 (TCG EK Credential Profile 2.5, B.4.5: L-2), as `TPMT_PUBLIC`.
    pub fn template() -> Vec<u8> {
        let parameters =
            Writer::default().u16(AES).u16(128).u16(CFB).u16(NULL).u16(NIST_P256).u16(NULL).done();
        template(ENDORSEMENT, &ENDORSEMENT_POLICY, &parameters, &[0; COORDINATE])
    }

    /// Its public part.
    pub fn public(&self) -> &[u8] {
        &self.0.public
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    /// Whether this certificate (DER) is of this key. Its signature is not looked at.
    pub fn is_certified_by(&self, certificate: &[u8]) -> bool {
        crate::certificate::holds(certificate, &self.0.point)
    }

    pub(crate) fn point(&self) -> &Point {
        &self.0.point
    }
}

/// The public part of an attestation key, which signs only what arises in the TPM that it cannot leave.
///
/// In which TPM that is shows a [credential](crate::make_credential).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttestationKey(Key);

impl AttestationKey {
    /// Of a `TPMT_PUBLIC`.
    ///
    /// # Errors
    /// It is none, or the key might sign something else.
    pub fn parse(public: &[u8]) -> Result<Self, KeyError> {
        let parsed = parse(public)?;
        let has = |attributes: u32| parsed.attributes & attributes == attributes;
        if !has(attribute::RESTRICTED) {
            return Err(KeyError::NotRestricted);
        }
        let algorithms =
            parsed.symmetric.is_none() && parsed.scheme == Some((ECDSA, SHA256)) && parsed.kdf == NULL;
        if !has(attribute::SIGN) || has(attribute::DECRYPT) || !algorithms {
            return Err(KeyError::DoesNotSign);
        }
        if !has(attribute::FIXED_TPM | attribute::FIXED_PARENT | attribute::SENSITIVE_DATA_ORIGIN) {
            return Err(KeyError::NotFixed);
        }
        Ok(Self(Key { public: public.to_vec(), name: Name::of(public), point: parsed.point }))
    }

    /// Template of a key that no other boot has, as `TPMT_PUBLIC`: primary keys of one hierarchy are the same for the same template.
    pub fn template(random: &[u8; 32]) -> Vec<u8> {
        let parameters = Writer::default().u16(NULL).u16(ECDSA).u16(SHA256).u16(NIST_P256).u16(NULL).done();
        template(ATTESTATION, &[], &parameters, random)
    }

    /// Its public part.
    pub fn public(&self) -> &[u8] {
        &self.0.public
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.0.name
    }

    pub(crate) fn point(&self) -> &Point {
        &self.0.point
    }
}

fn template(attributes: u32, policy: &[u8], parameters: &[u8], x: &[u8; COORDINATE]) -> Vec<u8> {
    let head = Writer::default().u16(ECC).u16(SHA256).u32(attributes).sized(policy);
    head.raw(parameters).sized(x).sized(&[0; COORDINATE]).done()
}
