//! The token of a controller without users. Its answer 401 names the file, on the same machine, that holds the token.

use crate::credentials::Credentials;
use crate::failure::Failure;
use reqwest::Url;
use reqwest::header::HeaderMap;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Header of the answer 401.
const FILE_HEADER: &str = "anneal-token-file";
/// Characters of a token.
const LENGTH: usize = 64;
/// State of a socket that listens, in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// The file that a controller on this machine names in its answer.
pub fn file_named_by(headers: &HeaderMap) -> Option<PathBuf> {
    headers.get(FILE_HEADER)?.to_str().ok().map(PathBuf::from)
}

/// The credentials with the token in `file`, for the controller at `endpoint`. The token is sent only to the user that
/// owns the file: another user may listen at the port while the controller does not run.
pub fn credentials(file: &Path, endpoint: &Url) -> Result<Credentials, Failure> {
    let named = |why: String| {
        Failure::Usage(format!(
            "the controller asks for its operator token, which is in {} on its machine: {why}",
            file.display()
        ))
    };
    let (token, owner) = read(file).map_err(&named)?;
    let users = listening_users(endpoint).map_err(|error| named(format!("/proc/net/tcp: {error}")))?;
    if users != BTreeSet::from([owner]) {
        let users: Vec<_> = users.iter().map(u32::to_string).collect();
        let at = endpoint.authority();
        return Err(named(format!(
            "not sent, since the file belongs to user {owner}, and {at} to user {}",
            users.join(", ")
        )));
    }
    Credentials::of(&own_name(), &token)
}

/// The token and the owner of its file.
fn read(file: &Path) -> Result<(String, u32), String> {
    let text = |error: std::io::Error| error.to_string();
    let metadata = std::fs::symlink_metadata(file).map_err(text)?;
    if !metadata.is_file() || metadata.len() > 1024 {
        return Err("is no token file".to_owned());
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(format!("has mode {mode:04o}; others can read or change it"));
    }
    let token = std::fs::read_to_string(file).map_err(text)?.trim_end().to_owned();
    let good = token.len() == LENGTH && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if good { Ok((token, metadata.uid())) } else { Err("is no token file".to_owned()) }
}

/// What the operator is called in the controller's records.
fn own_name() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty() && !name.contains(':')).unwrap_or_else(|| "operator".to_owned())
}

/// The users whose processes listen at `endpoint`, a URL of this machine.
fn listening_users(endpoint: &Url) -> std::io::Result<BTreeSet<u32>> {
    let port = endpoint.port_or_known_default().unwrap_or_default();
    let host = endpoint.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let addresses: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        Err(_) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    };
    let mut users = BTreeSet::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        match std::fs::read_to_string(table) {
            Ok(text) => {
                users.extend(text.lines().skip(1).filter_map(|line| listener(line, &addresses, port)))
            }
            // Without IPv6 in the kernel there is no table of it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(users)
}

/// The user of a line of `/proc/net/tcp` or `tcp6`, if its socket listens at one of these addresses, or at all.
fn listener(line: &str, addresses: &[IpAddr], port: u16) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, user) = (fields.get(1)?, fields.get(3)?, fields.get(7)?);
    let (address, local_port) = local.split_once(':')?;
    let address = address_of(address)?;
    let reaches = address.is_unspecified() || addresses.contains(&address.to_canonical());
    let listens = *state == LISTENING && u16::from_str_radix(local_port, 16).ok()? == port;
    (listens && reaches).then(|| user.parse().ok())?
}

/// An address as the kernel prints it: words of four bytes, each in the byte order of the machine.
fn address_of(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let text = hex.get(8 * at..8 * at + 8)?;
        Some(u32::from_str_radix(text, 16).ok()?.to_ne_bytes())
    };
    match hex.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(words.as_flattened()).for_each(|(byte, word)| *byte = *word);
            Some(IpAddr::from(bytes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_user_that_listens_is_found() {
        let own = std::fs::metadata("/proc/self").unwrap().uid();
        for bind in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(bind) else { continue };
            let port = listener.local_addr().unwrap().port();
            let host = if bind.starts_with("[::1") { "[::1]" } else { "127.0.0.1" };
            for host in [host, "localhost"] {
                let url: Url = format!("http://{host}:{port}").parse().unwrap();
                assert_eq!(listening_users(&url).unwrap(), BTreeSet::from([own]), "{bind} {host}");
            }
            let elsewhere: Url = format!("http://127.0.0.2:{port}").parse().unwrap();
            let reached = listening_users(&elsewhere).unwrap().len();
            assert_eq!(reached, usize::from(!bind.contains('1')), "{bind}");
        }
    }

    #[test]
    fn a_line_is_read() {
        let line =
            "   0: 0100007F:18F1 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1234        0 99 1";
        let here: IpAddr = Ipv4Addr::LOCALHOST.into();
        if cfg!(target_endian = "little") {
            assert_eq!(listener(line, &[here], 6385), Some(1234));
        }
        assert_eq!(listener(line, &[here], 6386), None);
        assert_eq!(listener(&line.replace(" 0A ", " 01 "), &[here], 6385), None, "a connection");
        assert_eq!(listener("  sl  local_address", &[here], 6385), None);
    }

    #[test]
    fn only_a_private_file_with_a_token_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("operator.token");
        std::fs::write(&file, format!("{}\n", "ab".repeat(32))).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(read(&file).unwrap_err().contains("mode 0640"));
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(read(&file).unwrap().0, "ab".repeat(32));
        // An impostor names any file of the operator.
        std::fs::write(&file, "a private key").unwrap();
        assert_eq!(read(&file).unwrap_err(), "is no token file");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link).unwrap_err(), "is no token file");
    }
}
