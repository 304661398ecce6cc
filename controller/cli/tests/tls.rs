//! Whom `anneal` trusts.

use crate::common;

use common::{Server, router};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use serde_json::json;
use std::sync::Arc;
use tower::ServiceExt;

/// An HTTPS server with a self-signed certificate for another name.
fn serve_tls() -> (Server, String) {
    let key = rcgen::generate_simple_self_signed(vec!["another.example".to_owned()]).unwrap();
    let der = key.cert.der().clone();
    let pin = pinned_tls::Pin::of_der(&der).to_string();
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![der], private)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (router, seen) = router(|_, _| (200, json!({"drivers": [{"name": "ipmi", "hosts": ["c"]}]})));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                // A client that does not like the certificate breaks off here; that is the test.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service =
                    hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                        router.clone().oneshot(request)
                    });
                let _ =
                    Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (Server::of(endpoint, seen, runtime), pin)
}

#[test]
fn exactly_the_pinned_certificate_is_accepted() {
    let (server, pin) = serve_tls();
    let (code, out, err) = server.run(&["driver", "list", "--pin", &pin]);
    assert_eq!((code, out.as_str()), (0, "NAME  CONTROLLERS\nipmi  c\n"), "{err}");
    let other = format!("sha256:{}", "00".repeat(32));
    let (code, _, err) = server.run(&["driver", "list", "--pin", &other]);
    assert_eq!(code, 5);
    assert!(err.contains(&format!("presented certificate {pin}, but {other} is pinned")), "{err}");
    assert_eq!(server.run(&["driver", "list"]).0, 5);
    assert_eq!(server.run(&["driver", "list", "--insecure"]).0, 0);
    assert_eq!(server.lines().len(), 2);
}

/// As in a container: rustls looks for the CAs of the system where these variables point.
#[test]
fn plain_http_needs_no_certificate_authority() {
    let server = common::serve(|_, _| (200, json!({"drivers": [{"name": "ipmi", "hosts": ["c"]}]})));
    let empty = tempfile::tempdir().unwrap();
    let run = |endpoint: &str| {
        std::process::Command::new(env!("CARGO_BIN_EXE_anneal"))
            .args(["driver", "list"])
            .env("ANNEAL_ENDPOINT", endpoint)
            .env("SSL_CERT_DIR", empty.path())
            .env_remove("SSL_CERT_FILE")
            .output()
            .unwrap()
    };
    let output = run(&server.endpoint);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = run(&server.endpoint.replace("http:", "https:"));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("No CA certificates"), "{error}");
}
