//! Mirrors with certificates.

use crate::disks::{MIB, image, old, request_for, sha256};
use block::fake::FakeDisk;
use image_writer::source::{Pins, Signers};
use image_writer::{Trust, write};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

/// Serves `file` over TLS to `clients` connections; its URL, and its certificate as PEM.
fn serve(file: Vec<u8>, clients: usize) -> (String, String) {
    let own = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}/image", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming().take(clients).map_while(Result::ok) {
            let connection = ServerConnection::new(config.clone()).expect("a connection");
            let mut stream = StreamOwned::new(connection, stream);
            let lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
            if lines.take_while(|line| !line.is_empty()).count() == 0 {
                continue;
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", file.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&file));
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (url, own.cert.pem())
}

#[test]
fn a_mirror_must_have_the_certificate_that_came_with_the_request() {
    let raw = image(6 * MIB);
    let pinned = |pem: &str| {
        let mut pins = Pins::default();
        pins.add("127.0.0.1", pinned_tls::Pin::of_pem(pem).expect("a certificate"));
        Trust { pins, ..Trust::default() }
    };
    let (url, pem) = serve(raw.clone(), 4);
    let (_, other) = serve(Vec::new(), 1);
    for (trust, trusted) in [
        (pinned(&pem), true),
        (pinned(&other), false),
        (Trust { signers: Signers::Pem(other.into_bytes()), ..Trust::default() }, false),
        (Trust::default(), false),
    ] {
        let mut request = request_for(&url, &sha256(&raw));
        request.source.trust = trust.clone();
        let disk = FakeDisk::new(old(12 * MIB), 512, vec![]);
        match write(&request, &disk, &()) {
            Ok(_) => assert!(trusted, "{trust:?}"),
            Err(error) => {
                assert!(!trusted && error.to_string().contains("certificate"), "{trust:?}: {error}");
                assert_eq!(disk.written(), 0);
            }
        }
    }
}
