//! A certificate authority made by the test.

use pinned_tls::Pin;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use time::{Duration, OffsetDateTime};

pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// What a mirror shows.
pub struct Certificate {
    pub server: Arc<ServerConfig>,
    pub pin: Pin,
}

impl Authority {
    /// All of them have one name.
    pub fn new() -> Self {
        Self::called("authority")
    }

    pub fn called(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// For a name or an address, valid today.
    pub fn signs(&self, name: &str) -> Certificate {
        self.signs_for_days(name, -1, 1)
    }

    /// Valid from so many days after today until so many.
    pub fn signs_for_days(&self, name: &str, from: i64, until: i64) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let now = OffsetDateTime::now_utc();
        (params.not_before, params.not_after) = (now + Duration::days(from), now + Duration::days(until));
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        shown(certificate.der().clone(), &key)
    }
}

/// As `openssl req -x509` makes them: an authority's own certificate, for this name.
pub fn self_signed(name: &str) -> (Certificate, String) {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).expect("a certificate");
    (shown(certificate.der().clone(), &key), certificate.pem())
}

fn shown(certificate: CertificateDer<'static>, key: &KeyPair) -> Certificate {
    let pin = Pin::of_der(&certificate);
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a configuration");
    Certificate { server: Arc::new(server), pin }
}
