//! Whole handshakes of both protocol versions, in memory.

use pinned_tls::{Accept, Pin, client_config};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConnection, ServerConfig, ServerConnection, SupportedProtocolVersion};
use std::sync::Arc;

struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Identity {
    /// A certificate for a name that no client asks for.
    fn new() -> Self {
        Self::valid(1975, 4096)
    }

    /// The same, valid from the beginning of one year to that of another.
    fn valid(from: i32, until: i32) -> Self {
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let mut params = CertificateParams::new(vec!["another.example".to_owned()]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(until, 1, 1));
        Self { certificate: params.self_signed(&key).unwrap().der().clone(), key }
    }

    fn pin(&self) -> Pin {
        Pin::of_der(&self.certificate)
    }
}

/// A server that shows `shown` and signs with `key`, whether they belong together or not.
fn server(shown: &Identity, key: &Identity, version: &'static SupportedProtocolVersion) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let private = PrivateKeyDer::try_from(key.key.serialize_der()).unwrap();
    let signer = provider.key_provider.load_private_key(private).unwrap();
    let certified = rustls::sign::CertifiedKey::new(vec![shown.certificate.clone()], signer);
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(certified)))
}

/// Runs the handshake; what the client found wrong.
fn handshake(server: ServerConfig, accept: Accept) -> Result<(), String> {
    let client = Arc::new(client_config("the agent", accept).unwrap());
    let mut client = ClientConnection::new(client, ServerName::try_from("192.0.2.1").unwrap()).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    while client.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().unwrap();
        }
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

#[test]
fn only_the_pinned_certificate_is_accepted() {
    let (ours, other) = (Identity::new(), Identity::new());
    for version in rustls::ALL_VERSIONS {
        let shows = |identity: &Identity| server(identity, identity, version);
        assert_eq!(handshake(shows(&ours), Accept::Only(ours.pin())), Ok(()));
        let (shown, pinned) = (other.pin(), ours.pin());
        assert_eq!(
            handshake(shows(&other), Accept::Only(pinned)),
            Err(format!("unexpected error: the agent presented certificate {shown}, but {pinned} is pinned"))
        );
        let refused = handshake(shows(&ours), Accept::None).unwrap_err();
        assert!(refused.ends_with("but none is pinned"), "{refused}");
        assert_eq!(handshake(shows(&other), Accept::Any), Ok(()));
        let either = |pins: &[Pin]| Accept::OneOf(pins.to_vec());
        assert_eq!(handshake(shows(&ours), either(&[other.pin(), ours.pin()])), Ok(()));
        for none in [either(&[Pin::of_der(b"abc"), Pin::of_der(b"abd")]), either(&[])] {
            let refused = handshake(shows(&ours), none).unwrap_err();
            assert!(refused.contains("which is none of the"), "{refused}");
        }
    }
}

/// The clock of a machine that was off for long may be wrong by years, either way.
#[test]
fn a_pinned_certificate_is_accepted_whatever_the_clock_says() {
    let (expired, not_yet_valid) = (Identity::valid(1975, 2000), Identity::valid(3000, 4096));
    for version in rustls::ALL_VERSIONS {
        for (ours, other) in [(&expired, &not_yet_valid), (&not_yet_valid, &expired)] {
            let shows = || server(ours, ours, version);
            assert_eq!(handshake(shows(), Accept::Only(ours.pin())), Ok(()));
            assert_eq!(handshake(shows(), Accept::OneOf(vec![other.pin(), ours.pin()])), Ok(()));
            let (shown, pinned) = (ours.pin(), other.pin());
            assert_eq!(
                handshake(shows(), Accept::Only(pinned)),
                Err(format!(
                    "unexpected error: the agent presented certificate {shown}, but {pinned} is pinned"
                ))
            );
        }
    }
}

/// Certificates are no secrets: any server that has seen one can show it.
#[test]
fn a_copied_certificate_without_its_key_is_refused() {
    let (ours, thief) = (Identity::new(), Identity::new());
    for version in rustls::ALL_VERSIONS {
        for accept in [Accept::Only(ours.pin()), Accept::Any] {
            let refused = handshake(server(&ours, &thief, version), accept).unwrap_err();
            assert!(refused.contains("BadSignature"), "{refused}");
        }
    }
}
