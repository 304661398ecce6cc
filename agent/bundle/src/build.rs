//! Building a bundle from a directory and a manifest, and making the keys that sign them.

use crate::fields::{FieldError, error};
use crate::keys::PublicKey;
use crate::manifest::{MANIFEST_MAX, Manifest};
use crate::trailer::{SIGNATURE, Trailer};
use crate::tree::{self, TreeError};
use crate::verify::{Rejected, Trust, Verified, verify};
use crate::{hex, image};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{Context, SHA256};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// What the builder writes into the manifest itself.
const COMPUTED: [&str; 3] = ["root_sha256", "root_size", "key_id"];

/// Why no bundle was built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The manifest.
    #[error(transparent)]
    Manifest(#[from] FieldError),
    /// The directory.
    #[error("root file system: {0}")]
    Tree(#[from] TreeError),
    /// squashfs.
    #[error("root file system: {0}")]
    Image(String),
    /// Writing.
    #[error("the bundle cannot be written: {0}")]
    Io(#[from] io::Error),
    /// What was written is not accepted: a defect of this program.
    #[error("the bundle that was built is refused: {0}")]
    Refused(#[from] Rejected),
}

/// A key that signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
}

/// Why there is no key. Never says what stands in a file.
#[derive(Debug, thiserror::Error)]
pub enum SigningKeyError {
    /// The system gave no random numbers, or refused to make a key of them.
    #[error("no key could be made")]
    Make,
    /// Not what [`SigningKey::generate`] or `openssl genpkey -algorithm ed25519` writes.
    #[error("is not an Ed25519 private key in PEM form (PKCS #8)")]
    Form,
}

impl SigningKey {
    /// A new one, and the text to keep it as (PKCS #8 in PEM form).
    pub fn generate() -> Result<(Self, String), SigningKeyError> {
        let document =
            Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| SigningKeyError::Make)?;
        let key = Self::from_der(document.as_ref())?;
        Ok((key, format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", STANDARD.encode(document))))
    }

    /// From the text of a key file.
    pub fn from_pem(text: &str) -> Result<Self, SigningKeyError> {
        let body = text.split_once(PEM_BEGIN).and_then(|(_, rest)| rest.split_once(PEM_END));
        let (body, _) = body.ok_or(SigningKeyError::Form)?;
        let body: String = body.split_whitespace().collect();
        Self::from_der(&STANDARD.decode(body).map_err(|_| SigningKeyError::Form)?)
    }

    fn from_der(der: &[u8]) -> Result<Self, SigningKeyError> {
        // OpenSSL leaves the public half out.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(|_| SigningKeyError::Form)?;
        Ok(Self { pair })
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey::new(bytes)
    }

    fn sign(&self, message: &[u8]) -> [u8; SIGNATURE] {
        let mut bytes = [0; SIGNATURE];
        bytes.copy_from_slice(self.pair.sign(message).as_ref());
        bytes
    }
}

/// Write the bundle of the directory `root` and the manifest `source` (JSON) to the empty file `out`, signed where
/// there is a key. The same inputs give the same bytes.
pub fn build(
    root: &Path,
    source: &[u8],
    key: Option<&SigningKey>,
    out: &mut File,
) -> Result<Verified, BuildError> {
    let mut fields = source_fields(source)?;
    let tree = tree::walk(root)?;
    // Judged before anything is packed, with what will stand there.
    let root_size = Value::from(crate::manifest::ROOT_ALIGN);
    fields.insert("root_size".to_owned(), root_size);
    fields.insert("root_sha256".to_owned(), "0".repeat(64).into());
    if let Some(key) = key {
        fields.insert("key_id".to_owned(), key.public().id().into());
    }
    let mut manifest = strict(fields)?;
    tree::check_program(&tree, &manifest.entry[0]).map_err(|problem| error("entry", problem))?;

    let size = image::write(root, &tree, out).map_err(|problem| BuildError::Image(problem.to_string()))?;
    manifest.root_size = size;
    manifest.root_sha256 = sha256(out)?;
    let bytes = serde_json::to_vec(&manifest).map_err(|problem| error("(whole)", problem.to_string()))?;
    if bytes.len() > MANIFEST_MAX {
        return Err(error("(whole)", format!("is longer than {MANIFEST_MAX} bytes")).into());
    }
    out.write_all(&bytes)?;
    out.write_all(&key.map_or([0; SIGNATURE], |key| key.sign(&bytes)))?;
    out.write_all(&Trailer { manifest: bytes.len(), root: size }.encode())?;
    out.sync_all()?;
    let keys: Vec<PublicKey> = key.iter().map(|key| key.public()).collect();
    let unsigned = key.is_none();
    Ok(verify(out, &Trust::Keys { keys, unsigned })?)
}

/// The source manifest, without the fields that are not the vendor's to write.
fn source_fields(source: &[u8]) -> Result<Map<String, Value>, FieldError> {
    let value: Value = serde_json::from_slice(source)
        .map_err(|problem| error("(whole)", format!("is not JSON: {problem}")))?;
    let Value::Object(fields) = value else { return Err(error("(whole)", "is not an object")) };
    match COMPUTED.iter().find(|name| fields.contains_key(**name)) {
        Some(name) => Err(error(*name, "is written by the builder: leave it out")),
        None => Ok(fields),
    }
}

/// A misspelt field would be a grant that is missing on the node: here it is an error.
fn strict(fields: Map<String, Value>) -> Result<Manifest, FieldError> {
    let (manifest, left) = Manifest::read(Value::Object(fields))?;
    match left.iter().flat_map(|fields| fields.left()).next() {
        Some(unknown) => Err(error(unknown, "is not known")),
        None => Ok(manifest),
    }
}

/// Of the whole file, which is at its end afterwards.
fn sha256(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let (mut context, mut buffer) = (Context::new(&SHA256), vec![0; 128 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(context.finish().as_ref())),
            count => context.update(&buffer[..count]),
        }
    }
}
