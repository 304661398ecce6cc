//! What is added to `rescue.finalize_rescue`: keys that may log in, and the host key that the node shows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Member `anneal` of the command's parameters. Not sent where there is nothing to say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescueKeys {
    /// Public keys that may log in besides the password, each as in OpenSSH's `authorized_keys`, without options.
    pub authorized_keys: Vec<String>,
}

/// Member `anneal` of the command's result. Not sent where the login says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescueHost {
    /// Kind and fingerprint of the host key: `ed25519 SHA256:…`.
    pub host_key: String,
}

/// At most this many keys.
const KEYS_MAX: usize = 64;
/// An RSA key of 16384 bits has 2.8 KB.
const KEY_MAX: usize = 4096;

/// The keys of a JSON list of strings.
///
/// # Errors
/// What is wrong with it, without a key in the text.
pub fn authorized_keys(value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or("is no list of public keys")?;
    if list.len() > KEYS_MAX {
        return Err(format!("has more than {KEYS_MAX} keys"));
    }
    let keys = list.iter().enumerate().map(|(index, key)| match key.as_str().map(str::trim) {
        Some(key) if is_key(key) => Ok(key.to_owned()),
        _ => Err(format!(
            "[{index}] is no public key as in authorized_keys (\"ssh-ed25519 AAAA… comment\"), without options"
        )),
    });
    keys.collect()
}

/// `type base64 comment`. No line break can begin another entry, and no option another command.
fn is_key(key: &str) -> bool {
    let mut words = key.split(' ');
    let (kind, body) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    key.len() <= KEY_MAX
        && !key.chars().any(char::is_control)
        && ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-", "sk-ssh-ed25519@", "sk-ecdsa-sha2-"]
            .iter()
            .any(|known| kind.starts_with(known))
        && body.starts_with("AAAA")
        && body.bytes().all(base64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJv7 me@desk";

    #[test]
    fn keys_are_lines_of_authorized_keys_without_options() {
        assert_eq!(authorized_keys(&json!([format!("{KEY}\n")])), Ok(vec![KEY.to_owned()]));
        assert_eq!(authorized_keys(&json!([])), Ok(Vec::new()));
        let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU";
        for wrong in [
            json!(KEY),
            json!({"key": KEY}),
            json!([KEY, 7]),
            json!([KEY, format!("{KEY}\nssh-ed25519 AAAA")]),
            json!([KEY, format!("command=\"x\" {KEY}")]),
            json!([KEY, "command=x AAAAB3Nz"]),
            json!([KEY, private]),
            json!([KEY, "ssh-ed25519 BBBB"]),
            json!([KEY, "ssh-ed25519"]),
            json!([KEY, format!("{KEY}{}", "x".repeat(KEY_MAX))]),
            json!(vec![KEY; KEYS_MAX + 1]),
        ] {
            let error = authorized_keys(&wrong).expect_err(&wrong.to_string());
            assert!(!error.contains("NzaC1") && !error.contains("b3BlbnNza"), "{error}");
            if wrong.as_array().is_some_and(|list| list.len() == 2) {
                assert!(error.starts_with("[1] "), "{error}");
            }
        }
    }
}
