//! The server proves who it is before anything is sent: TLS with its name and an authority, or nothing.

use postgres_server::{Durability, PASSWORD, Server};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use store::prelude::*;
use store_postgres::{DatabaseKey, OpenError, PostgresStore, Settings};

/// An authority, a certificate of it for this name, and its key, in PEM.
fn certificate(name: &str) -> [String; 3] {
    let authority = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&authority).unwrap().pem();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let own = own.signed_by(&key, &Issuer::new(params, authority)).unwrap().pem();
    [root, own, key.serialize_pem()]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_believed_by_its_certificate_alone() {
    let [root, own, key] = certificate("localhost");
    let files = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = files.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    fs::set_permissions(files.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let (own, key) = (put("server.crt", &own), put("server.key", &key));
    // PostgreSQL reads its key only as its owner.
    for path in [&own, &key] {
        if let Ok(Some(user)) = nix::unistd::User::from_name("postgres")
            && nix::unistd::geteuid().is_root()
        {
            std::os::unix::fs::chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        }
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = Server::with(
        Durability::None,
        &[
            "listen_addresses=127.0.0.1",
            &format!("port={port}"),
            "ssl=on",
            &format!("ssl_cert_file={}", own.display()),
            &format!("ssl_key_file={}", key.display()),
        ],
    );
    let root = put("root.crt", &root);
    let other = put("other.crt", &certificate("localhost")[0]);
    let open = async |host: &str, parameters: &str| {
        let url = format!("postgres://postgres@{host}:{port}/postgres?{parameters}");
        let settings = Settings { password: Some(PASSWORD.to_owned()), ..Settings::at(&url) };
        PostgresStore::open(&settings, &DatabaseKey::from_text(&"07".repeat(32)).unwrap()).await
    };
    let verify = |root: &std::path::Path| format!("sslmode=verify-full&sslrootcert={}", root.display());
    let store = open("localhost", &verify(&root)).await.unwrap();
    assert!(store.nodes().await.unwrap().is_empty());
    let used = "SELECT count(*) > 1 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND client_port > 0";
    assert_eq!(server.sql("postgres", used), "t", "the pool and what listens use TLS");
    drop(store);

    for (host, parameters) in [("localhost", verify(&other)), ("127.0.0.1", verify(&root))] {
        let refused = open(host, &parameters).await.err().unwrap();
        assert!(matches!(refused, OpenError::Failed { .. }), "{host} {parameters}: {refused:?}");
        assert!(!format!("{refused:?}").contains(PASSWORD));
    }
    open("localhost", "sslmode=disable").await.unwrap();
    let missing = open("localhost", "sslrootcert=/nowhere.pem").await.err().unwrap();
    assert!(matches!(missing, OpenError::Authorities { .. }), "{missing:?}");
    let wrong = Settings {
        password: Some("hunter2".to_owned()),
        ..Settings::at(&format!("postgres://postgres@localhost:{port}/postgres"))
    };
    let wrong = PostgresStore::open(&wrong, &DatabaseKey::generate().unwrap()).await.err().unwrap();
    let text = format!("{wrong:?}");
    assert!(text.contains("password authentication failed") && !text.contains("hunter2"), "{text}");
}
