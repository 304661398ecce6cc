//! What a vendor does without a controller: keys, building, judging.

use crate::failure::Failure;
use crate::output::{Format, bytes, fields, show};
use bundle::build::SigningKey;
use bundle::{PublicKey, Trust, Verified};
use pinned_tls::chain;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Something is wrong with a file that was named.
fn wrong(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}

/// `anneal bundle keygen`
pub fn keygen(format: Format, path: &Path) -> Result<(), Failure> {
    let (key, text) = SigningKey::generate().map_err(|error| wrong(path, error))?;
    let public = PathBuf::from(format!("{}.pub", path.display()));
    let write = |path: &Path, mode: u32, text: &str| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write(path, 0o600, &text).map_err(|error| wrong(path, error))?;
    write(&public, 0o644, &format!("{}\n", key.public())).map_err(|error| wrong(&public, error))?;
    let key_pair =
        json!({"private_key": path, "public_key": key.public().to_string(), "key_id": key.public().id()});
    show(format, &key_pair, crate::output::detail)
}

/// `anneal bundle build`
pub fn build(
    format: Format,
    root: &Path,
    manifest: &Path,
    out: &Path,
    key: Option<&Path>,
) -> Result<(), Failure> {
    let source = fs::read(manifest).map_err(|error| wrong(manifest, error))?;
    let key = key.map(signing_key).transpose()?;
    // Written next to the target and renamed, so that a file of this name is always complete.
    let part = PathBuf::from(format!("{}.part", out.display()));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open(&part);
    let mut file = file.map_err(|error| wrong(&part, error))?;
    let built = bundle::build::build(root, &source, key.as_ref(), &mut file);
    let built = built.map_err(|error| Failure::Usage(chain(&error)));
    let kept = built.and_then(|verified| {
        fs::rename(&part, out).map_err(|error| wrong(out, error))?;
        Ok(verified)
    });
    if kept.is_err() {
        // The error reported below is why there is no bundle.
        let _ = fs::remove_file(&part);
    }
    report(format, &kept?)
}

fn signing_key(path: &Path) -> Result<SigningKey, Failure> {
    let text = fs::read_to_string(path).map_err(|error| wrong(path, error))?;
    SigningKey::from_pem(&text).map_err(|error| wrong(path, error))
}

/// `anneal bundle verify`
pub fn verify(format: Format, path: &Path, trust: &[PathBuf]) -> Result<(), Failure> {
    let mut keys = Vec::new();
    for list in trust {
        let text = fs::read_to_string(list).map_err(|error| wrong(list, error))?;
        keys.extend(PublicKey::list(&text).map_err(|error| wrong(list, error))?);
    }
    let trust = if trust.is_empty() { Trust::Digest } else { Trust::Keys { keys, unsigned: false } };
    report(format, &judge(path, &trust)?)
}

/// The judgement of the file at `path`.
pub fn judge(path: &Path, trust: &Trust) -> Result<Verified, Failure> {
    let mut file = File::open(path).map_err(|error| wrong(path, error))?;
    bundle::verify(&mut file, trust).map_err(|error| wrong(path, error))
}

fn report(format: Format, verified: &Verified) -> Result<(), Failure> {
    let manifest = &verified.manifest;
    let summary = json!({
        "name": manifest.name,
        "version": manifest.version,
        "vendor": manifest.vendor,
        "digest": verified.digest,
        "size": verified.size,
        "key_id": manifest.key_id,
        "signed_by": verified.signed_by,
        "manifest": manifest,
    });
    show(format, &summary, |_| {
        let signature = match (&verified.signed_by, &manifest.key_id) {
            (Some(key), _) => format!("by key {key}, which is trusted"),
            (None, Some(key)) => format!("by key {key}, not compared with any"),
            (None, None) => "none".to_owned(),
        };
        let row = |name: &str, value: String| (name.to_owned(), value);
        fields(&[
            row("name", manifest.name.clone()),
            row("version", manifest.version.clone()),
            row("vendor", manifest.vendor.clone()),
            row("entry", manifest.entry.join(" ")),
            row("grants", granted(&json!(manifest.grants))),
            row("size", bytes(verified.size)),
            row("digest", verified.digest.clone()),
            row("signature", signature),
        ])
    })
}

/// What a manager asks for, in a line.
pub fn granted(grants: &Value) -> String {
    let claim = |claim: &Value| {
        let patterns = claim["match"].as_object().into_iter().flatten();
        let patterns: Vec<_> =
            patterns.map(|(key, value)| format!("{key}={}", crate::output::cell(value))).collect();
        format!("{}({})", crate::output::cell(&claim["kind"]), patterns.join(","))
    };
    let mut words: Vec<_> = grants["devices"].as_array().into_iter().flatten().map(claim).collect();
    if grants["network"] == true {
        words.push("network".to_owned());
    }
    for (key, unit) in
        [("memory_mib", " MiB memory"), ("scratch_mib", " MiB scratch"), ("pids", " processes")]
    {
        words.push(format!("{}{unit}", crate::output::cell(&grants[key])));
    }
    words.join(", ")
}
