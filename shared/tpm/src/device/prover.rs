//! What an agent asks of the TPM to prove its boot.

use super::error::TpmError;
use super::session::{Authorization, Command, Response, Tpm};
use super::transport::Transport;
use crate::algorithm::{ENDORSEMENT, NULL, SHA256};
use crate::bytes::{Malformed, Reader, Writer};
use crate::certificate;
use crate::digest::Digest;
use crate::key::{AttestationKey, EndorsementKey};
use crate::pcr::{Pcrs, selected, selection};
use std::collections::BTreeMap;

/// `TPM_RH_NULL`.
const NO_HANDLE: u32 = 0x4000_0007;
/// `TPM_SE_POLICY`.
const POLICY: u8 = 1;
/// Where the maker stores the certificate of the endorsement key on P-256 (TCG EK Credential Profile 2.5, section 2.2.1.4).
const CERTIFICATE: u32 = 0x01c0_000a;
/// Bytes that every TPM on a PC returns at once.
const PIECE: u16 = 512;

/// A TPM with the two keys of a proof, which are gone when this is dropped.
pub struct Prover<T: Transport> {
    tpm: Tpm<T>,
    endorsement: (u32, EndorsementKey),
    attestation: (u32, AttestationKey),
}

/// A quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quoted {
    /// `TPMS_ATTEST`.
    pub quote: Vec<u8>,
    /// `TPMT_SIGNATURE`.
    pub signature: Vec<u8>,
    /// The values.
    pub pcrs: Pcrs,
}

impl<T: Transport> Prover<T> {
    /// Make both keys: the endorsement key, which is always the same, and an attestation key that no other `random` gives.
    ///
    /// # Errors
    /// See [`TpmError`].
    pub fn new(mut tpm: Tpm<T>, random: &[u8; 32]) -> Result<Self, TpmError> {
        let (handle, public) = tpm.create_primary(&EndorsementKey::template())?;
        let endorsement = EndorsementKey::parse(&public).map_err(|error| TpmError::Key("endorsement", error));
        let endorsement = (handle, endorsement?);
        let (handle, public) = match tpm.create_primary(&AttestationKey::template(random)) {
            Ok(made) => made,
            Err(error) => {
                tpm.flush(endorsement.0);
                return Err(error);
            }
        };
        let attestation = AttestationKey::parse(&public).map_err(|error| TpmError::Key("attestation", error));
        Ok(Self { tpm, endorsement, attestation: (handle, attestation?) })
    }

    /// The endorsement key.
    pub fn endorsement_key(&self) -> &EndorsementKey {
        &self.endorsement.1
    }

    /// The attestation key.
    pub fn attestation_key(&self) -> &AttestationKey {
        &self.attestation.1
    }

    /// The maker's certificate of the endorsement key, DER; `None` where the TPM stores none, or that of another key.
    pub fn certificate(&mut self) -> Option<Vec<u8>> {
        let stored = self.tpm.read_index(CERTIFICATE).ok()?;
        let certificate = certificate::without_padding(&stored)?;
        self.endorsement_key().is_certified_by(certificate).then(|| certificate.to_vec())
    }

    /// The secret of a credential for these two keys.
    ///
    /// # Errors
    /// See [`TpmError`]: a credential for another TPM or another attestation key is refused by the TPM.
    pub fn activate(&mut self, credential: &[u8], secret: &[u8]) -> Result<Vec<u8>, TpmError> {
        let session = self.tpm.endorsement_policy()?;
        let activated = self.tpm.run(&Command {
            name: "TPM2_ActivateCredential",
            code: 0x147,
            handles: &[self.attestation.0, self.endorsement.0],
            authorizations: &[Authorization::Empty, Authorization::Policy(session)],
            parameters: Writer::default().sized(credential).sized(secret).done(),
            makes_handle: false,
        });
        if activated.is_err() {
            self.tpm.flush(session);
        }
        let activated = activated?;
        Ok(Reader::new(&activated.parameters).sized()?.to_vec())
    }

    /// Quote these PCRs of the SHA-256 bank, with `extra_data`.
    ///
    /// # Errors
    /// See [`TpmError`].
    pub fn quote(&mut self, pcrs: &[u8], extra_data: &Digest) -> Result<Quoted, TpmError> {
        let values = self.tpm.pcrs(pcrs)?;
        let quoted = self.tpm.run(&Command {
            name: "TPM2_Quote",
            code: 0x158,
            handles: &[self.attestation.0],
            authorizations: &[Authorization::Empty],
            parameters: Writer::default().sized(&extra_data.0).u16(NULL).raw(&selection(pcrs)).done(),
            makes_handle: false,
        })?;
        let mut reader = Reader::new(&quoted.parameters);
        let quote = reader.sized()?.to_vec();
        Ok(Quoted { quote, signature: reader.all().to_vec(), pcrs: values })
    }
}

impl<T: Transport> Drop for Prover<T> {
    fn drop(&mut self) {
        self.tpm.flush(self.attestation.0);
        self.tpm.flush(self.endorsement.0);
    }
}

impl<T: Transport> Tpm<T> {
    /// Handle and public part of a primary key of the endorsement hierarchy.
    fn create_primary(&mut self, template: &[u8]) -> Result<(u32, Vec<u8>), TpmError> {
        let sensitive = Writer::default().sized(&[]).sized(&[]).done();
        let made = self.run(&Command {
            name: "TPM2_CreatePrimary",
            code: 0x131,
            handles: &[ENDORSEMENT],
            authorizations: &[Authorization::Empty],
            parameters: Writer::default().sized(&sensitive).sized(template).sized(&[]).u32(0).done(),
            makes_handle: true,
        })?;
        let public = Reader::new(&made.parameters).sized()?.to_vec();
        Ok((made.handle, public))
    }

    /// A session that satisfies the policy of the endorsement key.
    fn endorsement_policy(&mut self) -> Result<u32, TpmError> {
        // No secret depends on the nonce: neither the session nor its commands are encrypted or authenticated by a MAC.
        let nonce = [0; 16];
        let session = self.run(&Command {
            name: "TPM2_StartAuthSession",
            code: 0x176,
            handles: &[NO_HANDLE, NO_HANDLE],
            authorizations: &[],
            parameters: Writer::default()
                .sized(&nonce)
                .sized(&[])
                .raw(&[POLICY])
                .u16(NULL)
                .u16(SHA256)
                .done(),
            makes_handle: true,
        })?;
        let proved = self.run(&Command {
            name: "TPM2_PolicySecret",
            code: 0x151,
            handles: &[ENDORSEMENT, session.handle],
            authorizations: &[Authorization::Empty],
            parameters: Writer::default().sized(&[]).sized(&[]).sized(&[]).u32(0).done(),
            makes_handle: false,
        });
        if let Err(error) = proved {
            self.flush(session.handle);
            return Err(error);
        }
        Ok(session.handle)
    }

    /// The values of PCRs. A TPM may return fewer at once than it is asked for.
    fn pcrs(&mut self, pcrs: &[u8]) -> Result<Pcrs, TpmError> {
        let mut values = BTreeMap::new();
        let mut left = pcrs.to_vec();
        while !left.is_empty() {
            let Response { parameters, .. } = self.run(&Command {
                name: "TPM2_PCR_Read",
                code: 0x17e,
                handles: &[],
                authorizations: &[],
                parameters: selection(&left),
                makes_handle: false,
            })?;
            let mut reader = Reader::new(&parameters);
            let _counter = reader.u32()?;
            let read = selected(&mut reader)?;
            let count = reader.u32()?;
            if read.is_empty() || count as usize != read.len() {
                return Err(Malformed("it has no SHA-256 bank with these PCRs").into());
            }
            for pcr in read {
                let value =
                    Digest::from_slice(reader.sized()?).ok_or(Malformed("a PCR has another length"))?;
                values.insert(pcr, value);
                left.retain(|left| *left != pcr);
            }
        }
        Ok(Pcrs(values))
    }

    /// All of an index of the TPM's memory that needs no password.
    fn read_index(&mut self, index: u32) -> Result<Vec<u8>, TpmError> {
        let public = self.run(&Command {
            name: "TPM2_NV_ReadPublic",
            code: 0x169,
            handles: &[index],
            authorizations: &[],
            parameters: Vec::new(),
            makes_handle: false,
        })?;
        let mut reader = Reader::new(&public.parameters);
        let mut reader = Reader::new(reader.sized()?);
        let (_index, _algorithm, _attributes, _policy) =
            (reader.u32()?, reader.u16()?, reader.u32()?, reader.sized()?);
        let size = reader.u16()?;
        let mut content = Vec::new();
        while let Some(left) = u16::try_from(content.len()).ok().and_then(|read| size.checked_sub(read)) {
            if left == 0 {
                break;
            }
            let offset = size - left;
            let piece = self.run(&Command {
                name: "TPM2_NV_Read",
                code: 0x14e,
                handles: &[index, index],
                authorizations: &[Authorization::Empty],
                parameters: Writer::default().u16(left.min(PIECE)).u16(offset).done(),
                makes_handle: false,
            })?;
            let mut reader = Reader::new(&piece.parameters);
            let piece = reader.sized()?;
            if piece.is_empty() {
                return Err(Malformed("it returns nothing of an index").into());
            }
            content.extend(piece);
        }
        Ok(content)
    }

    /// Take a key or a session out of the TPM. What cannot be taken out ends with the connection.
    fn flush(&mut self, handle: u32) {
        let _ = self.run(&Command {
            name: "TPM2_FlushContext",
            code: 0x165,
            handles: &[],
            authorizations: &[],
            parameters: Writer::default().u32(handle).done(),
            makes_handle: false,
        });
    }
}
