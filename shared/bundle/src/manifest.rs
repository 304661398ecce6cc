//! The manifest: who the manager is, what it runs, what it asks for. Everything in it is checked when it is read.

use crate::fields::{FieldError, Fields, error};
use crate::grants::Grants;
use crate::{FORMAT, is_digest};
use hwm_sdk::protocol::{bad_manager_name, bad_version, is_reserved_manager};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest manifest, in bytes.
pub const MANIFEST_MAX: usize = 64 << 10;
/// A root file system is a multiple of this many bytes: a page, and any sector that a loop device may have.
pub const ROOT_ALIGN: u64 = 4096;
/// Largest root file system, in bytes. Far above every tool a vendor ships; the controller sets a tighter one.
pub const ROOT_MAX: u64 = 4 << 30;

const VENDOR_MAX: usize = 128;
const ENTRY_WORDS: usize = 64;
const ENTRY_WORD: usize = 4096;
const PROTOCOLS_MAX: usize = 16;

/// A manifest that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`FORMAT`].
    pub format: u64,
    /// The manager's name, as the protocol wants it. Its steps are known by it.
    pub name: String,
    /// Its version, as the protocol wants it.
    pub version: String,
    /// Whose it is; at most 128 bytes.
    pub vendor: String,
    /// The program, by its absolute path in the root file system, and its arguments.
    pub entry: Vec<String>,
    /// Versions of the protocol it speaks.
    pub protocol_versions: Vec<u32>,
    /// What it asks to be granted.
    pub grants: Grants,
    /// SHA-256 of the root file system.
    pub root_sha256: String,
    /// Its size in bytes.
    pub root_size: u64,
    /// Which key has signed (see [`crate::PublicKey::id`]); none: not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
}

impl Manifest {
    /// Read and check it. Fields that mean nothing here are left alone: they belong to a newer version.
    pub fn parse(bytes: &[u8]) -> Result<Self, FieldError> {
        if bytes.len() > MANIFEST_MAX {
            return Err(error("(whole)", format!("is longer than {MANIFEST_MAX} bytes")));
        }
        let value = serde_json::from_slice(bytes)
            .map_err(|problem| error("(whole)", format!("is not JSON: {problem}")))?;
        Self::read(value).map(|(manifest, _)| manifest)
    }

    /// As [`Self::parse`], with the names that mean nothing.
    pub(crate) fn read(value: Value) -> Result<(Self, [Fields; 2]), FieldError> {
        let mut fields = Fields::of("", value)?;
        let format: u64 = fields.required("format")?;
        if format != FORMAT {
            return Err(error("format", format!("{format} is not known; {FORMAT} is")));
        }
        let grants: Option<Value> = fields.optional("grants")?;
        let (grants, grant_fields) =
            Grants::read(grants.unwrap_or_else(|| Value::Object(Default::default())))?;
        let manifest = Self {
            format,
            name: name(fields.required("name")?)?,
            version: version(fields.required("version")?)?,
            vendor: vendor(fields.required("vendor")?)?,
            entry: entry(fields.required("entry")?)?,
            protocol_versions: protocols(fields.required("protocol_versions")?)?,
            grants,
            root_sha256: root_sha256(fields.required("root_sha256")?)?,
            root_size: root_size(fields.required("root_size")?)?,
            key_id: fields.optional("key_id")?.map(key_id).transpose()?,
        };
        Ok((manifest, [fields, grant_fields]))
    }
}

fn name(text: String) -> Result<String, FieldError> {
    if let Some(problem) = bad_manager_name(&text) {
        return Err(error("name", problem));
    }
    if is_reserved_manager(&text) {
        return Err(error("name", format!("{text:?} is reserved for managers of Anneal itself")));
    }
    Ok(text)
}

fn version(text: String) -> Result<String, FieldError> {
    bad_version(&text).map_or(Ok(text), |problem| Err(error("version", problem)))
}

fn vendor(text: String) -> Result<String, FieldError> {
    if (1..=VENDOR_MAX).contains(&text.len()) && !text.chars().any(char::is_control) {
        return Ok(text);
    }
    Err(error("vendor", format!("is not 1 to {VENDOR_MAX} printable bytes")))
}

fn entry(words: Vec<String>) -> Result<Vec<String>, FieldError> {
    let bad = |problem: String| Err(error("entry", problem));
    if !(1..=ENTRY_WORDS).contains(&words.len()) {
        return bad(format!("is not a program and at most {} arguments", ENTRY_WORDS - 1));
    }
    if words.iter().any(|word| word.len() > ENTRY_WORD || word.contains('\0')) {
        return bad(format!("has a word above {ENTRY_WORD} bytes, or with a zero byte in it"));
    }
    let plain = |path: &str| {
        path.len() > 1
            && path.starts_with('/')
            && path.split('/').skip(1).all(|part| !["", ".", ".."].contains(&part))
    };
    if !plain(&words[0]) {
        return bad(format!("{:?} is not an absolute path without `.`, `..` and doubled slashes", words[0]));
    }
    Ok(words)
}

fn protocols(versions: Vec<u32>) -> Result<Vec<u32>, FieldError> {
    if (1..=PROTOCOLS_MAX).contains(&versions.len()) && !versions.contains(&0) {
        return Ok(versions);
    }
    Err(error("protocol_versions", format!("is not a list of 1 to {PROTOCOLS_MAX} versions from 1 on")))
}

fn root_sha256(text: String) -> Result<String, FieldError> {
    if is_digest(&text) {
        Ok(text)
    } else {
        Err(error("root_sha256", "is not 64 hexadecimal digits, lower case"))
    }
}

fn root_size(size: u64) -> Result<u64, FieldError> {
    if (ROOT_ALIGN..=ROOT_MAX).contains(&size) && size.is_multiple_of(ROOT_ALIGN) {
        return Ok(size);
    }
    Err(error("root_size", format!("{size} is not a multiple of {ROOT_ALIGN} of at most {ROOT_MAX}")))
}

fn key_id(text: String) -> Result<String, FieldError> {
    if signing::is_id(&text) {
        return Ok(text);
    }
    Err(error("key_id", "is not 16 hexadecimal digits, lower case"))
}
