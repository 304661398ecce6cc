//! What an instance reads at its first boot, from options: the controller makes a configuration drive of it.

use crate::failure::Failure;
use crate::values::json_object;
use clap::Args;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Names a host may have at most.
const HOSTNAME_MAX: usize = 253;

/// Data of an instance.
#[derive(Debug, Args)]
pub struct FirstBoot {
    /// User data of the instance, for example a cloud-init configuration (#cloud-config) or a script: a text, passed on as it
    /// is.
    #[arg(long, value_name = "FILE")]
    user_data: Option<PathBuf>,
    /// Public SSH keys that may log in to the instance, one on a line; may be repeated.
    #[arg(long, value_name = "FILE")]
    ssh_key: Vec<PathBuf>,
    /// Name of the instance's host.
    #[arg(long, value_name = "NAME", value_parser = hostname)]
    hostname: Option<String>,
    /// Network configuration of the instance, OpenStack's network_data.json: a file, `-` for standard input, or the JSON itself.
    #[arg(long, value_name = "FILE|-|JSON")]
    network_data: Option<String>,
}

impl FirstBoot {
    /// Parts of a configuration drive; nothing where no option is given.
    pub fn parts(&self) -> Result<Option<Value>, Failure> {
        let mut parts = Map::new();
        let mut metadata = Map::new();
        if let Some(name) = &self.hostname {
            metadata.insert("hostname".to_owned(), name.as_str().into());
            metadata.insert("name".to_owned(), name.as_str().into());
        }
        if !self.ssh_key.is_empty() {
            let keys = all_public_keys(&self.ssh_key)?;
            // As OpenStack has it: keys by name.
            let named = keys.into_iter().enumerate().map(|(number, key)| (number.to_string(), key.into()));
            metadata.insert("public_keys".to_owned(), Value::Object(named.collect()));
        }
        if !metadata.is_empty() {
            parts.insert("meta_data".to_owned(), metadata.into());
        }
        if let Some(source) = &self.network_data {
            parts.insert("network_data".to_owned(), json_object("--network-data", source)?);
        }
        if let Some(path) = &self.user_data {
            let text = text("--user-data", path)?;
            if text.is_empty() {
                return Err(named("--user-data", path, "is empty"));
            }
            parts.insert("user_data".to_owned(), text.into());
        }
        Ok(Some(Value::Object(parts)).filter(|parts| parts != &Value::Object(Map::new())))
    }
}

fn named(option: &str, path: &Path, problem: &str) -> Failure {
    Failure::Usage(format!("{option} {}: {problem}", path.display()))
}

fn text(option: &str, path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| named(option, path, &error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| {
        named(option, path, "is not text; bytes can be brought by an ISO image with --config-drive")
    })
}

/// The public keys of these files, one on a line.
pub fn all_public_keys(files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let keys: Vec<_> = files.iter().map(|path| public_keys(path)).collect::<Result<_, _>>()?;
    Ok(keys.concat())
}

/// The keys of a file. Errors do not quote it: it may be the wrong one.
fn public_keys(path: &Path) -> Result<Vec<String>, Failure> {
    let text = text("--ssh-key", path)?;
    if text.contains("PRIVATE KEY") {
        return Err(named(
            "--ssh-key",
            path,
            "is a private key; the public one is in the file that ends in .pub",
        ));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let keys: Vec<String> = lines.map(str::to_owned).collect();
    // The base64 of every public key begins with the length of the name of its kind: three zero bytes.
    let is_key = |key: &String| key.split_whitespace().skip(1).any(|word| word.starts_with("AAAA"));
    match keys.iter().position(|key| !is_key(key)) {
        Some(index) => {
            let problem = format!("key {} is no public key as ssh-keygen writes it", index + 1);
            Err(named("--ssh-key", path, &problem))
        }
        None if keys.is_empty() => Err(named("--ssh-key", path, "has no key")),
        None => Ok(keys),
    }
}

/// A name by RFC 1123.
fn hostname(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        let inner = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        inner && (1..=63).contains(&label.len()) && !label.starts_with('-') && !label.ends_with('-')
    };
    if text.len() <= HOSTNAME_MAX && text.split('.').all(is_label) {
        return Ok(text.to_owned());
    }
    Err("a host name has letters, digits, hyphens and dots".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn keys(content: &str) -> Result<Vec<String>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        public_keys(file.path()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn only_public_keys_are_sent() {
        let (one, two) = ("ssh-ed25519 AAAAC3Nz me@here", "no-pty ssh-rsa AAAAB3Nz");
        assert_eq!(keys(&format!("# mine\n{one}\n\n{two}\n")), Ok(vec![one.to_owned(), two.to_owned()]));
        let private =
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n";
        let refused = keys(private).unwrap_err();
        assert!(refused.contains("is a private key") && !refused.contains("b3Blb"), "{refused}");
        let refused = keys(&format!("{one}\nhunter2 hunter2\n")).unwrap_err();
        assert!(refused.contains("key 2 is no public key") && !refused.contains("hunter2"), "{refused}");
        assert!(keys("\n# none\n").unwrap_err().contains("has no key"));
    }

    #[test]
    fn host_names() {
        for good in ["web-1", "web-1.example.org", "a"] {
            assert_eq!(hostname(good).as_deref(), Ok(good));
        }
        for bad in ["", "a b", "-a", "a-", "a..b", "ü", &"a".repeat(64)] {
            assert!(hostname(bad).is_err(), "{bad}");
        }
    }
}
