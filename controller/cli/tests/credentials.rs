//! `anneal` with a user and a password, against the real API that asks for them.

use crate::drivers;

use api::auth::Users;
use api::{App, Auth};
use std::process::Command;
use std::sync::Arc;
use store::memory::MemoryStore;

/// The user `op` with the password `right`, by `htpasswd -B -C 4`.
const USERS: &str = "op:$2y$04$hR7tFoEcqcnhCnVTfTDMIOSLFSQkRHgSUGc72lgitp4dqlN8EHPQy\n";

fn controller() -> (tokio::runtime::Runtime, String) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let endpoint = runtime.block_on(async {
        let (store, drivers) = (Arc::new(MemoryStore::new()), Arc::new(drivers::KeptDrivers::new()));
        let app = App::alone("anneal", store, drivers);
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path().keep().unwrap();
        std::fs::write(&file, USERS).unwrap();
        let router = api::guarded_router(app, Auth::Basic(Arc::new(Users::open(file, None).unwrap())));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        endpoint
    });
    (runtime, endpoint)
}

#[test]
fn who_asks_stands_in_the_environment_and_in_no_message() {
    let (_runtime, endpoint) = controller();
    let list = |endpoint: &str, environment: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anneal"));
        command.args(["driver", "list"]).env_clear().env("ANNEAL_ENDPOINT", endpoint);
        let output = command.envs(environment.iter().copied()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!said.contains("right") && !said.contains("wrong"), "{said}");
        (output.status.code().unwrap(), said)
    };
    let own = [("ANNEAL_USERNAME", "op"), ("ANNEAL_PASSWORD", "right")];
    let openstack = [("OS_AUTH_TYPE", "http_basic"), ("OS_USERNAME", "op"), ("OS_PASSWORD", "right")];
    assert_eq!(list(&endpoint, &own), (0, String::new()));
    assert_eq!(list(&endpoint, &openstack), (0, String::new()));

    let (code, said) = list(&endpoint, &[]);
    assert_eq!((code, said.contains("Authorization required (HTTP 401)")), (1, true), "{said}");
    let (code, said) = list(&endpoint, &[("ANNEAL_USERNAME", "op"), ("ANNEAL_PASSWORD", "wrong")]);
    assert_eq!((code, said.contains("Incorrect username or password (HTTP 401)")), (1, true), "{said}");
    let (code, said) = list(&endpoint, &own[..1]);
    assert_eq!((code, said.contains("ANNEAL_PASSWORD is not set")), (2, true), "{said}");
    // A password leaves the machine only through TLS, and is in no URL.
    let (code, said) = list("http://192.0.2.1:6385", &own);
    assert_eq!((code, said.contains("plain HTTP")), (2, true), "{said}");
    let (code, said) = list(&endpoint.replace("//", "//op:right@"), &[]);
    assert_eq!((code, said.contains("ANNEAL_PASSWORD")), (2, true), "{said}");
}
