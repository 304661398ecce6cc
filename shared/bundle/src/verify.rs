//! Whether a file is a bundle, whole, and by whom. The one judgement of controller, agent and command line.

use crate::fields::FieldError;
use crate::manifest::Manifest;
use crate::trailer::{SIGNATURE, TRAILER, Trailer, TrailerError};
use crate::{PublicKey, hex};
use ring::digest::{Context, SHA256};
use std::io::{self, Read, Seek, SeekFrom};

/// Whose word counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// A bundle has to be signed by one of these keys.
    Keys {
        /// The keys.
        keys: Vec<PublicKey>,
        /// One that is not signed at all is taken too; one signed by another key never is.
        unsigned: bool,
    },
    /// The caller knows the digest of the file from a trusted source and compares it; the signature is not judged.
    Digest,
}

/// A bundle that is what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its manifest.
    pub manifest: Manifest,
    /// The manifest's bytes, as they were signed.
    pub manifest_bytes: Vec<u8>,
    /// SHA-256 of the whole file.
    pub digest: String,
    /// Size of the whole file in bytes.
    pub size: u64,
    /// Id of the trusted key that has signed it. `None`: not signed, or not checked.
    pub signed_by: Option<String>,
}

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Rejected {
    /// No bundle.
    #[error("the file {0}")]
    Trailer(#[from] TrailerError),
    /// Its manifest.
    #[error(transparent)]
    Manifest(#[from] FieldError),
    /// Manifest and file contradict each other.
    #[error("manifest: root_size: {stated} is not the {found} bytes of the root file system")]
    RootSize {
        /// In the manifest.
        stated: u64,
        /// In the file.
        found: u64,
    },
    /// The root was changed.
    #[error("manifest: root_sha256: is not that of the root file system, whose SHA-256 is {0}")]
    Root(String),
    /// Not signed, and that is not allowed.
    #[error("the bundle is not signed, and unsigned ones are not allowed here")]
    Unsigned,
    /// Signed with another key.
    #[error("the bundle is signed by key {0}, which is none of the trusted keys")]
    Stranger(String),
    /// Changed after it was signed.
    #[error("the bundle is not signed by key {0} as it says: its manifest or its signature was changed")]
    Signature(String),
    /// A signature without a name, or a name without a signature.
    #[error("the bundle's signature and its manifest's key_id do not belong together")]
    Halves,
}

/// Judge a file: its form, its manifest, the digest of its root, its signature. Reads all of it.
pub fn verify(file: &mut (impl Read + Seek), trust: &Trust) -> Result<Verified, Rejected> {
    let trailer = Trailer::read(file)?;
    let io = |error: io::Error| Rejected::Trailer(TrailerError::Io(error));
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let (mut whole, mut root) = (Context::new(&SHA256), Context::new(&SHA256));
    hash(&mut file.take(trailer.root), |bytes| {
        whole.update(bytes);
        root.update(bytes);
    })
    .map_err(io)?;
    let mut rest = vec![0; trailer.manifest + SIGNATURE + TRAILER];
    file.read_exact(&mut rest).map_err(io)?;
    whole.update(&rest);
    let signature = rest[trailer.manifest..trailer.manifest + SIGNATURE].to_vec();
    rest.truncate(trailer.manifest);

    let manifest = Manifest::parse(&rest)?;
    if manifest.root_size != trailer.root {
        return Err(Rejected::RootSize { stated: manifest.root_size, found: trailer.root });
    }
    let root = hex(root.finish().as_ref());
    if manifest.root_sha256 != root {
        return Err(Rejected::Root(root));
    }
    let signed_by = signer(&manifest, &rest, &signature, trust)?;
    Ok(Verified {
        manifest,
        manifest_bytes: rest,
        digest: hex(whole.finish().as_ref()),
        size: trailer.size(),
        signed_by,
    })
}

fn signer(
    manifest: &Manifest,
    bytes: &[u8],
    signature: &[u8],
    trust: &Trust,
) -> Result<Option<String>, Rejected> {
    let signed = signature.iter().any(|byte| *byte != 0);
    let id = match (&manifest.key_id, signed) {
        (Some(id), true) => id,
        (None, false) => {
            return match trust {
                Trust::Keys { unsigned: false, .. } => Err(Rejected::Unsigned),
                _ => Ok(None),
            };
        }
        _ => return Err(Rejected::Halves),
    };
    let Trust::Keys { keys, .. } = trust else { return Ok(None) };
    let key = keys.iter().find(|key| key.id() == *id).ok_or_else(|| Rejected::Stranger(id.clone()))?;
    if !key.signed(bytes, signature) {
        return Err(Rejected::Signature(id.clone()));
    }
    Ok(Some(id.clone()))
}

fn hash(reader: &mut impl Read, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
