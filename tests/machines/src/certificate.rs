//! Certificates of a site, judged by `anneal` without its controller.

use anyhow::{Context, Result, ensure};
use lab::binaries::binary;
use lab::controller::Controller;
use serde_json::Value;
use std::path::Path;
use tokio::process::Command;

use crate::stage::NODE;

/// The file of a certificate and the key of its controller.
///
/// # Errors
/// When the controller does not have them.
pub async fn fetched(controller: &Controller, id: &str) -> Result<(Value, String)> {
    let file = controller.get(&format!("/v1/anneal/certificates/{id}")).await?;
    let key = controller.get("/v1/anneal/certificate_key").await?;
    Ok((file, key["key"].as_str().context("no key")?.to_owned()))
}

/// `anneal certificate verify` of a file with this text in `directory`: its exit code, and what it complains of.
///
/// # Errors
/// When the file cannot be written or the program does not start.
pub async fn verify(directory: &Path, text: &str, words: &[&str]) -> Result<(i32, String)> {
    std::fs::write(directory.join("certificate"), text)?;
    let mut command = Command::new(binary("anneal")?);
    command.current_dir(directory).args(["certificate", "verify", "certificate"]).args(words);
    let out = command.output().await?;
    Ok((out.status.code().unwrap_or(-1), String::from_utf8_lossy(&out.stderr).into_owned()))
}

/// That the certificate of a deployment is accepted for this disk and image alone, and as it was signed.
///
/// # Errors
/// When it is not.
pub async fn ensure_deployed(
    controller: &Controller,
    directory: &Path,
    id: &str,
    (serial, digest): (&str, &str),
) -> Result<()> {
    let (file, key) = fetched(controller, id).await?;
    let (file, other) = (file.to_string(), "0".repeat(64));
    let judged = async |text: &str, serial: &str, digest: &str| {
        verify(directory, text, &["--key", &key, "--serial", serial, "--image", digest]).await
    };
    let good = judged(&file, serial, digest).await?;
    ensure!(good == (0, String::new()), "the certificate is refused: {good:?}");
    let changed = file.replacen(serial, "SWAPPED", 1);
    for (text, serial, digest, why) in [
        (&file, "OTHER", digest, "another-disk"),
        (&file, serial, other.as_str(), "another-image"),
        (&changed, serial, digest, "tampered"),
    ] {
        let (code, said) = judged(text, serial, digest).await?;
        ensure!(code == 2 && said.contains(why), "{why}: {code}: {said}");
    }
    let (code, said) = verify(directory, &file, &["--key", &key, "--serial", serial]).await?;
    ensure!(code == 2 && said.contains("not-erased"), "a deployment is no erase: {code}: {said}");
    Ok(())
}

/// What the newest certificate of the node says of the boot.
///
/// # Errors
/// When there is none, or it cannot be read.
pub async fn boot_proof(controller: &Controller) -> Result<Value> {
    let listed = controller.get(&format!("/v1/anneal/certificates?node={NODE}")).await?;
    let all = listed["certificates"].as_array().context("no certificates")?;
    let newest = all.iter().max_by_key(|one| one["number"].as_u64()).context("no certificate")?;
    let id = newest["id"].as_str().context("a certificate without id")?;
    let (file, _) = fetched(controller, id).await?;
    let payload = file["payload"].as_str().context("a file without payload")?;
    let payload: Value =
        serde_json::from_str(payload).with_context(|| Path::new(id).display().to_string())?;
    Ok(payload["boot_proof"].clone())
}
