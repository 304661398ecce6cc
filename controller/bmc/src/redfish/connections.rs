//! One HTTP client for all BMCs that are judged alike. Each reads the system's certificate authorities and keeps them: with a client
//! for each of ten thousand BMCs a controller took a gibibyte more.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::causes::reason;
use super::config::{Endpoint, Verify};
use super::resolver::Resolver;
use super::tls;
use crate::Settings;

pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// An idle connection is closed after this.
const POOL_IDLE: Duration = Duration::from_secs(10);

static MADE: LazyLock<Mutex<HashMap<Judgement, reqwest::Client>>> = LazyLock::new(Mutex::default);

/// All that a client depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Judgement {
    rule: Rule,
    /// The file of certificates, as it was.
    file: Option<Stamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Rule {
    settings: Arc<Settings>,
    verify: Verify,
    is_plain_http: bool,
    plain_password: bool,
}

/// What shows that a file was changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl Judgement {
    fn of(endpoint: &Endpoint) -> Self {
        let rule = Rule {
            settings: endpoint.settings.clone(),
            verify: endpoint.verify.clone(),
            is_plain_http: endpoint.base.scheme() == "http",
            plain_password: endpoint.sends_password_plainly(),
        };
        let file = match &endpoint.verify {
            Verify::File(path) => stamp(path),
            Verify::System | Verify::Nothing => None,
        };
        Self { rule, file }
    }
}

/// Of a file that cannot be looked at: none. Reading it then says why.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp { modified: found.modified().ok(), length: found.len() })
}

/// The client for a BMC. Reads the file that judges its certificate, so it blocks. `Err` is why there is no client.
pub(super) fn to(endpoint: &Endpoint) -> Result<reqwest::Client, String> {
    let judgement = Judgement::of(endpoint);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = made.get(&judgement) {
        return Ok(client.clone());
    }
    let client = make(&judgement.rule)?;
    // Nothing is judged any more by a file that was replaced.
    made.retain(|other, _| other.rule != judgement.rule);
    made.insert(judgement, client.clone());
    Ok(client)
}

fn make(rule: &Rule) -> Result<reqwest::Client, String> {
    let builder = || {
        let settings = Settings::clone(&rule.settings);
        reqwest::Client::builder()
            .connect_timeout(CONNECT)
            // BMCs of ten years ago take seconds for a system resource.
            .timeout(rule.settings.request_timeout())
            .pool_idle_timeout(POOL_IDLE)
            // Redirects are followed by our client: reqwest would carry our token to another host.
            .redirect(reqwest::redirect::Policy::none())
            // A BMC is on the management network, whatever proxy the environment names.
            .no_proxy()
            .dns_resolver(Resolver { settings, plain_password: rule.plain_password })
    };
    let built = match tls::judge_by(builder(), &rule.verify)?.build() {
        // Without certificate authorities on this machine a BMC can still be used over plain HTTP.
        Err(_) if rule.is_plain_http => builder().tls_certs_only([]).build(),
        built => built,
    };
    built.map_err(|error| reason(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redfish::config;
    use serde_json::json;

    fn endpoint(address: &str, settings: &Arc<Settings>, ca: &str) -> Endpoint {
        let info = json!({"redfish_address": address, "redfish_username": "u", "redfish_password": "p",
            "redfish_verify_ca": ca});
        config::parse(info.as_object().unwrap(), settings).unwrap().endpoint
    }

    /// As many clients as are made for `settings`.
    fn made_for(settings: &Arc<Settings>) -> usize {
        MADE.lock().unwrap().keys().filter(|judgement| judgement.rule.settings == *settings).count()
    }

    #[test]
    fn bmcs_that_are_judged_alike_share_one_client() {
        // As no other test has them.
        let settings = Arc::new(Settings { ca_directory: "/nowhere/alike".into(), ..Settings::default() });
        for number in 1..200 {
            to(&endpoint(&format!("https://192.0.2.{number}"), &settings, "true")).unwrap();
        }
        assert_eq!(made_for(&settings), 1);
        to(&endpoint("https://192.0.2.1", &settings, "false")).unwrap();
        assert_eq!(made_for(&settings), 2, "another judgement");
    }

    #[test]
    fn a_file_that_was_replaced_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let settings =
            Arc::new(Settings { ca_directory: directory.path().to_owned(), ..Settings::default() });
        let bmc = || endpoint("https://192.0.2.1", &settings, "ca.pem");
        let path = directory.path().join("ca.pem");
        let certificate = |name: &str| {
            let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
            std::fs::write(&path, made.cert.pem()).unwrap();
        };
        let why = to(&bmc()).unwrap_err();
        assert!(why.contains("there is no such file"), "{why}");
        certificate("first");
        to(&bmc()).unwrap();
        assert_eq!(made_for(&settings), 1);
        std::fs::write(&path, "no certificate at all").unwrap();
        let why = to(&bmc()).unwrap_err();
        assert!(why.contains("it contains no certificate"), "{why}");
        certificate("a name of another length");
        to(&bmc()).unwrap();
        assert_eq!(made_for(&settings), 1, "that of the old file is gone");
    }
}
