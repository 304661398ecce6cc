//! The controller's TLS certificate: the operator's, or one that is made at the first start and kept.

use crate::config::Config;
use crate::state_dir;
use anyhow::{Context, Result, ensure};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Certificate and key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// SHA-256 of the DER of the leaf certificate, in hexadecimal. Agents pin it.
    pub fn fingerprint(&self) -> String {
        let leaf = self.chain.first().map(|leaf| leaf.as_ref()).unwrap_or_default();
        Sha256::digest(leaf).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The fingerprint in the form of `--pin`.
    pub fn pin(&self) -> String {
        format!("sha256:{}", self.fingerprint())
    }

    /// The configuration of a TLS server with this certificate.
    pub fn server(&self) -> Result<Arc<ServerConfig>> {
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())?;
        Ok(Arc::new(config))
    }
}

/// Load the configured identity, or the one made earlier, or make it.
pub fn load_or_make(config: &Config) -> Result<Identity> {
    if let (Some(certificate), Some(key)) = (&config.api.tls_certificate, &config.api.tls_key) {
        return load(certificate, key);
    }
    let dir = config.state_dir.join("tls");
    let (certificate, key) = (dir.join("controller.crt"), dir.join("controller.key"));
    // The key is written last: after a crash in between, both are made again.
    if !key.exists() {
        make(config, &dir, &certificate, &key)?;
    }
    load(&certificate, &key)
}

fn load(certificate: &Path, key: &Path) -> Result<Identity> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .with_context(|| format!("certificate {}", certificate.display()))?;
    ensure!(!chain.is_empty(), "certificate {} holds none", certificate.display());
    let key = PrivateKeyDer::from_pem_file(key).with_context(|| format!("key {}", key.display()))?;
    Ok(Identity { chain, key })
}

fn make(config: &Config, dir: &Path, certificate: &Path, key: &Path) -> Result<()> {
    state_dir::make(dir).with_context(|| format!("directory {}", dir.display()))?;
    let mut names: Vec<String> = config.api.listen.iter().map(|listen| listen.ip().to_string()).collect();
    names.extend(config.boot.addresses().map(|address| address.to_string()));
    names.push(config.name());
    names.sort();
    names.dedup();
    let mut params = rcgen::CertificateParams::new(names).context("names of the certificate")?;
    params.distinguished_name.push(rcgen::DnType::CommonName, "anneal-controller");
    // Agents check only the fingerprint; other clients also check the dates.
    params.not_before = time::OffsetDateTime::now_utc() - time::Duration::days(1);
    params.not_after = time::OffsetDateTime::now_utc() + time::Duration::days(3650);
    let pair = rcgen::KeyPair::generate().context("key of the controller")?;
    let made = params.self_signed(&pair).context("certificate of the controller")?;
    write(certificate, made.pem().as_bytes(), 0o644)?;
    write(key, pair.serialize_pem().as_bytes(), 0o600)
}

/// Write a file whole or not at all; it is on the disk when this returns.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let name = || format!("file {}", path.display());
    let temporary = PathBuf::from(format!("{}.new", path.display()));
    let _ = fs::remove_file(&temporary);
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary).with_context(name)?;
    file.write_all(bytes).and_then(|()| file.sync_all()).with_context(name)?;
    fs::rename(&temporary, path).with_context(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_identity_is_made_once_and_its_key_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { state_dir: dir.path().into(), ..Config::default() };
        let first = load_or_make(&config).unwrap();
        let second = load_or_make(&config).unwrap();
        assert_eq!(first.pin(), second.pin());
        assert_eq!(first.pin().len(), "sha256:".len() + 64);
        let key = dir.path().join("tls/controller.key");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        second.server().unwrap();
    }
}
