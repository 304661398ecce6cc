//! One run of `ipmitool`: bounded in time, the password through a pipe.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::config::{Config, literal};
use super::parse::{Refusal, refusal};
use crate::{BmcError, ErrorKind};

/// The strongest suite of IPMI 2.0 errata 7 (HMAC-SHA256), and the one that every BMC has (HMAC-SHA1).
const CIPHERS: [u64; 2] = [17, 3];
/// Seconds for which ipmitool waits for a first answer, a second longer each time, and how often it sends. So it gives a silent BMC up by
/// itself, also when this process has been killed: after [`PATIENT_FOR`] …
const PATIENT: [&str; 4] = ["-N", "2", "-R", "3"];
const PATIENT_FOR: Duration = Duration::from_secs(18);
/// … or, where a run may not take that long, after 6 s.
const HASTY: [&str; 4] = ["-N", "1", "-R", "2"];

/// Cipher suites found to work, by address and port: not to fail with 17 before each command.
static WORKS: LazyLock<Mutex<HashMap<(String, u64), u64>>> = LazyLock::new(Mutex::default);

fn known_cipher(config: &Config) -> Option<u64> {
    let works = WORKS.lock().unwrap_or_else(PoisonError::into_inner);
    works.get(&(config.address.clone(), config.port)).copied()
}

fn remember_cipher(config: &Config, cipher: u64) {
    let mut works = WORKS.lock().unwrap_or_else(PoisonError::into_inner);
    works.insert((config.address.clone(), config.port), cipher);
}

pub(super) fn error(config: &Config, kind: ErrorKind, action: &str, message: &str) -> BmcError {
    let address = format!("{}:{}", config.address, config.port);
    BmcError::new(kind, &address, action, config.password.redact(message))
}

/// Arguments without the secret: `-f /dev/stdin` makes the tool read the password from its pipe.
fn arguments(config: &Config, host: &str, cipher: u64, command: &[&str]) -> Vec<String> {
    let mut arguments: Vec<String> = ["-v", "-I", "lanplus", "-H", host].map(str::to_owned).into();
    arguments.extend(["-p".to_owned(), config.port.to_string()]);
    if let Some(user) = &config.username {
        arguments.extend(["-U".to_owned(), user.clone()]);
    }
    arguments.extend(["-L".to_owned(), config.privilege.to_owned(), "-C".to_owned(), cipher.to_string()]);
    let is_patient = config.settings.request_timeout() > PATIENT_FOR;
    arguments.extend(if is_patient { PATIENT } else { HASTY }.map(str::to_owned));
    arguments.extend(["-f", "/dev/stdin"].map(str::to_owned));
    arguments.extend(command.iter().map(|word| (*word).to_owned()));
    arguments
}

/// What the tool is given as the BMC's host. Where the site limits networks, a name is resolved here: the tool would
/// take any address of it.
async fn host(config: &Config, action: &str) -> Result<String, BmcError> {
    if config.settings.networks.is_empty() || literal(&config.address).is_some() {
        return Ok(config.address.clone());
    }
    let fault = |why: String| error(config, ErrorKind::Unreachable, action, &why);
    let found = tokio::net::lookup_host((config.address.as_str(), 0)).await;
    let mut found = found.map_err(|error| fault(error.to_string()))?;
    let allowed = found.find(|found| config.settings.connects_to(found.ip()));
    allowed
        .map(|found| found.ip().to_string())
        .ok_or_else(|| fault(format!("{} has no address in the networks of bmc.networks", config.address)))
}

/// Runs one IPMI command; its standard output.
///
/// Without a configured cipher suite 17 is tried and then 3; the first that works is remembered.
pub(super) async fn run(config: &Config, action: &str, command: &[&str]) -> Result<String, BmcError> {
    let ciphers = match config.cipher.or_else(|| known_cipher(config)) {
        Some(cipher) => vec![cipher],
        None => CIPHERS.to_vec(),
    };
    let host = host(config, action).await?;
    for cipher in &ciphers {
        match once(config, &host, action, *cipher, command).await? {
            Ok(output) => {
                remember_cipher(config, *cipher);
                return Ok(output);
            }
            Err(()) => tracing::debug!(bmc = config.address, cipher, "BMC: cipher suite refused"),
        }
    }
    let tried = ciphers.iter().map(u64::to_string).collect::<Vec<_>>().join(" or ");
    let message = format!("it has no cipher suite {tried}; set ipmi_cipher_suite");
    Err(error(config, ErrorKind::Unsupported, action, &message))
}

/// `Ok(Err(()))`: the BMC does not have this cipher suite.
async fn once(
    config: &Config,
    host: &str,
    action: &str,
    cipher: u64,
    command: &[&str],
) -> Result<Result<String, ()>, BmcError> {
    let fault = |message: String| error(config, ErrorKind::Config, action, &message);
    let mut child = Command::new("ipmitool")
        .args(arguments(config, host, cipher, command))
        // No PATH tricks are lost, and no variable of ours (IPMI_PASSWORD) changes what the tool does.
        .env_remove("IPMI_PASSWORD")
        .env_remove("IPMITOOL_PASSWORD")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| fault(format!("ipmitool cannot be started (is it installed?): {error}")))?;
    if let Some(mut pipe) = child.stdin.take() {
        let line = zeroize::Zeroizing::new(format!("{}\n", config.password.expose()));
        // A tool that died before reading says why on stderr.
        let _ = pipe.write_all(line.as_bytes()).await;
    }
    let longest = config.settings.request_timeout();
    let output = match tokio::time::timeout(longest, child.wait_with_output()).await {
        Ok(output) => output.map_err(|error| fault(format!("ipmitool: {error}")))?,
        // The child is dropped with the future, and killed.
        Err(_) => {
            let message = format!("ipmitool was killed after {} s", longest.as_secs());
            return Err(error(config, ErrorKind::Timeout, action, &message));
        }
    };
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(Ok(stdout));
    }
    let said = format!("{}\n{stdout}", String::from_utf8_lossy(&output.stderr));
    match refusal(&said) {
        Refusal::Cipher => Ok(Err(())),
        Refusal::Other(kind, why) => {
            let words = said.lines().filter(|line| !is_noise(line)).collect::<Vec<_>>().join("; ");
            Err(error(config, kind, action, &format!("{why} ({})", words.trim())))
        }
    }
}

/// Lines of `-v` that say nothing.
fn is_noise(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || ["Loading IANA", "Running Get VSO", "Discovered IPMB"].iter().any(|n| line.starts_with(n))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::Settings;

    #[tokio::test]
    async fn a_name_is_resolved_within_the_networks_of_the_site() {
        let host_of = async |networks: &[&str], address: &str| {
            let networks = networks.iter().map(|text| text.parse().unwrap()).collect();
            let settings = Arc::new(Settings { networks, ..Settings::default() });
            let info = json!({"ipmi_address": address});
            let config = super::super::config::parse(info.as_object().unwrap(), &settings).unwrap();
            host(&config, "read the power state").await.map_err(|error| (error.kind(), error.to_string()))
        };
        assert_eq!(host_of(&[], "localhost").await.unwrap(), "localhost");
        assert_eq!(host_of(&["127.0.0.0/8"], "localhost").await.unwrap(), "127.0.0.1");
        assert_eq!(host_of(&["192.0.2.0/24"], "192.0.2.7").await.unwrap(), "192.0.2.7");
        // The second is how inet_aton(3) writes 127.0.0.1.
        for name in ["localhost", "2130706433"] {
            let (kind, text) = host_of(&["192.0.2.0/24"], name).await.unwrap_err();
            assert_eq!(kind, ErrorKind::Unreachable, "{text}");
            assert!(
                text.contains(&format!("{name} has no address in the networks of bmc.networks")),
                "{text}"
            );
        }
    }

    #[test]
    fn the_password_is_on_no_command_line() {
        let info = json!({"ipmi_address": "10.0.0.5", "ipmi_username": "admin", "ipmi_password": "hunter2"});
        let config = super::super::config::parse(info.as_object().unwrap(), &Default::default()).unwrap();
        let arguments = arguments(&config, "10.0.0.5", 17, &["chassis", "power", "status"]);
        assert!(arguments.iter().all(|argument| !argument.contains("hunter2")), "{arguments:?}");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
