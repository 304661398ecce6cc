//! The token of operators where no users are configured. It is made at the first start and kept: what operators have put
//! into their environment stays valid over restarts.

use crate::config::{AuthStrategy, Config};
use crate::identity;
use anyhow::{Context, Result, ensure};
use api::auth::OperatorToken;
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Name of the file in `state_dir`.
const FILE: &str = "operator.token";
/// Characters of the token: 32 random bytes in hexadecimal.
const LENGTH: usize = 64;

/// Whether the database is of a version that served every client on loopback, and this one asks for a token. To be asked
/// before the database is opened.
pub fn is_upgrade(config: &Config) -> bool {
    let asks = config.api.auth_strategy == AuthStrategy::Token && config.database.url.is_empty();
    asks && config.database_file().exists() && !config.state_dir.join(FILE).exists()
}

/// Log what is different after such an upgrade.
pub fn explain() {
    tracing::warn!(
        "no users are configured, and clients on loopback now need the operator token: `anneal` finds it by itself, \
         `eval \"$(anneal env)\"` gives it to other clients, and [api] auth_strategy = \"noauth\" serves every process \
         on this machine as before"
    );
}

/// Load the token, or make it.
pub fn load_or_make(state_dir: &Path) -> Result<OperatorToken> {
    let path = std::path::absolute(state_dir.join(FILE)).context("state_dir")?;
    let name = || format!("operator token {}", path.display());
    let token = match fs::read_to_string(&path) {
        Ok(text) => {
            fs::set_permissions(&path, Permissions::from_mode(0o600)).with_context(name)?;
            text.trim_end().to_owned()
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let token = fresh()?;
            identity::write(&path, format!("{token}\n").as_bytes(), 0o600)?;
            token
        }
        Err(error) => return Err(error).with_context(name),
    };
    let good = token.len() == LENGTH && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(good, "{}: is not {LENGTH} hexadecimal digits; remove the file, and a new one is made", name());
    Ok(OperatorToken::new(token, path))
}

fn fresh() -> Result<String> {
    let mut bytes = [0; LENGTH / 2];
    SystemRandom::new().fill(&mut bytes).ok().context("no random numbers for the operator token")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let made = load_or_make(dir.path()).unwrap();
        assert_eq!(made.path(), path);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.trim_end().len(), LENGTH);
        // A copy that was readable for others is no longer.
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        load_or_make(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // A short token could be guessed; it is not used, and not shown.
        fs::write(&path, "hunter2").unwrap();
        let error = format!("{:#}", load_or_make(dir.path()).err().unwrap());
        assert!(error.contains(FILE) && !error.contains("hunter2"), "{error}");
        fs::remove_file(&path).unwrap();
        load_or_make(dir.path()).unwrap();
        assert_ne!(fs::read_to_string(&path).unwrap(), text, "another file, another token");
    }
}
