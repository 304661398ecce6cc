//! Building a bundle from a directory and a manifest, and making the keys that sign them.

use crate::fields::{FieldError, error};
use crate::manifest::{MANIFEST_MAX, Manifest};
use crate::trailer::{SIGNATURE, Trailer};
use crate::tree::{self, TreeError};
use crate::verify::{Rejected, Trust, Verified, verify};
use crate::{hex, image};
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value};
use signing::PublicKey;
pub use signing::{SigningKey, SigningKeyError};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

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
