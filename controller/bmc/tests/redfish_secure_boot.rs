//! Keys of Secure Boot against Redfish services as vendors make them.

#[path = "support/call.rs"]
mod call;
#[path = "support/service.rs"]
mod service;

use std::sync::{Arc, Mutex};

use bmc::ErrorKind;
use call::Node;
use model::StepKind;
use serde_json::{Value, json};
use service::{Answer, Service, answer, ok};

const SYSTEM: &str = "/redfish/v1/Systems/1";
const DATABASES: &str = "/redfish/v1/Systems/1/SecureBoot/SecureBootDatabases";
const RESET: &str = "POST /redfish/v1/Systems/1/SecureBoot/Actions/SecureBoot.ResetKeys";
const ENROLL: &str = "management.enroll_secure_boot_keys";

/// A certificate, in PEM.
fn made(name: &str) -> String {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem()
}

fn link(path: &str) -> Value {
    json!({ "@odata.id": path })
}

fn secure_boot() -> Value {
    json!({
        "SecureBootEnable": true,
        "SecureBootDatabases": link(DATABASES),
        "Actions": {"#SecureBoot.ResetKeys": {
            "target": "/redfish/v1/Systems/1/SecureBoot/Actions/SecureBoot.ResetKeys",
            "ResetKeysType@Redfish.AllowableValues": ["ResetAllKeysToDefault", "DeleteAllKeys"],
        }},
    })
}

/// A service that keeps the certificates of PK, KEK and db; it has a database more, and gives `KEK` by its `Id` alone.
fn kept(
    keys: &Arc<Mutex<Vec<(String, String)>>>,
) -> impl Fn(&service::Request, usize) -> Answer + Send + Sync + 'static {
    let keys = keys.clone();
    move |request, _| {
        let mut keys = keys.lock().unwrap();
        let line = request.line.as_str();
        let (method, path) = line.split_once(' ').unwrap();
        let parts: Vec<&str> = path.strip_prefix(DATABASES).unwrap_or("").split('/').skip(1).collect();
        match (method, parts.as_slice()) {
            _ if line == format!("GET {SYSTEM}") => {
                ok(json!({"PowerState": "Off", "SecureBoot": link("/redfish/v1/Systems/1/SecureBoot")}))
            }
            _ if line == format!("GET {SYSTEM}/SecureBoot") => ok(secure_boot()),
            _ if line == RESET => {
                if request.body["ResetKeysType"] == "DeleteAllKeys" {
                    keys.clear();
                }
                answer("204 No Content", "", "")
            }
            ("GET", []) => {
                let members = ["dbx", "PK", "KEK", "db"].map(|name| link(&format!("{DATABASES}/{name}")));
                ok(json!({ "Members": members }))
            }
            ("GET", ["KEK"]) => {
                ok(json!({"Id": "kek", "Certificates": link(&format!("{DATABASES}/KEK/Certificates"))}))
            }
            ("GET", [name]) => {
                let certificates = link(&format!("{DATABASES}/{name}/Certificates"));
                ok(json!({"Id": "1", "DatabaseId": name, "Certificates": certificates}))
            }
            ("GET", [name, "Certificates"]) => {
                let places = keys.iter().enumerate().filter(|(_, (database, _))| database == name);
                let members: Vec<Value> =
                    places.map(|(at, _)| link(&format!("{DATABASES}/{name}/Certificates/{at}"))).collect();
                ok(json!({ "Members": members }))
            }
            ("GET", [_, "Certificates", at]) => {
                let pem = &keys[at.parse::<usize>().unwrap()].1;
                ok(json!({"CertificateType": "PEM", "CertificateString": pem.replace('\n', "\r\n")}))
            }
            ("POST", [name, "Certificates"]) => {
                assert_eq!(request.body["CertificateType"], "PEM");
                let pem = request.body["CertificateString"].as_str().unwrap();
                keys.push(((*name).to_owned(), pem.to_owned()));
                answer("201 Created", "", "{}")
            }
            _ => answer("404 Not Found", "", ""),
        }
    }
}

fn written(service: &Service) -> Vec<String> {
    let all = service.seen().into_iter().map(|request| request.line);
    all.filter(|line| !line.starts_with("GET")).collect()
}

fn posts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("POST {DATABASES}/{name}/Certificates")).collect()
}

#[tokio::test]
async fn the_keys_of_the_directory_are_enrolled_once_the_platform_key_last() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let [pk, kek, one, two] = ["pk", "kek", "one", "two"].map(made);
    file("PK.crt", &pk);
    file("KEK.crt", &kek);
    let with_key = rcgen::KeyPair::generate().unwrap().serialize_pem();
    file("db.crt", &format!("{one}{with_key}{two}"));
    let keys = Arc::new(Mutex::new(Vec::new()));
    let service = Service::start(kept(&keys)).await;
    let mut node = Node::redfish(&service.address, SYSTEM);
    node.settings.secure_boot_keys_directory = directory.path().to_owned();
    let result = node.done(StepKind::Clean, ENROLL, json!({})).await;
    assert_eq!(
        result,
        json!({"added": {"db": 2, "KEK": 1, "PK": 1}, "already_there": {"db": 0, "KEK": 0, "PK": 0},
            "secure_boot_enabled": true})
    );
    assert_eq!(written(&service), posts(&["db", "db", "KEK", "PK"]));
    let body = |pem: &str| pem.replace(['\r', '\n'], "");
    let stored: Vec<(String, String)> =
        keys.lock().unwrap().iter().map(|(name, pem)| (name.clone(), body(pem))).collect();
    let expected = [("db", &one), ("db", &two), ("KEK", &kek), ("PK", &pk)];
    assert_eq!(stored, expected.map(|(name, pem)| (name.to_owned(), body(pem))));
    assert!(service.seen().iter().all(|request| !request.body.to_string().contains("PRIVATE")));

    let again = node.done(StepKind::Clean, ENROLL, json!({})).await;
    assert_eq!(again["already_there"], json!({"db": 2, "KEK": 1, "PK": 1}));
    assert_eq!(written(&service).len(), 4, "nothing is written twice");
}

#[tokio::test]
async fn another_platform_key_stays_unless_all_keys_are_to_go() {
    let keys = Arc::new(Mutex::new(vec![("PK".to_owned(), made("old")), ("db".to_owned(), made("old"))]));
    let service = Service::start(kept(&keys)).await;
    let node = Node::redfish(&service.address, SYSTEM);
    let args = |deletes: bool| json!({"PK": made("new"), "db": made("new"), "delete_existing": deletes});
    let error = node.refused(StepKind::Clean, ENROLL, args(false)).await;
    assert!(error.to_string().contains("another platform key"), "{error}");
    assert_eq!(written(&service), [""; 0]);
    node.done(StepKind::Clean, ENROLL, args(true)).await;
    let mut expected = vec![RESET.to_owned()];
    expected.extend(posts(&["db", "PK"]));
    assert_eq!(written(&service), expected);
    assert_eq!(keys.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn keys_are_deleted_and_reset() {
    let keys = Arc::new(Mutex::new(vec![("PK".to_owned(), made("old"))]));
    let service = Service::start(kept(&keys)).await;
    let node = Node::redfish(&service.address, SYSTEM);
    node.done(StepKind::Deploy, "management.reset_secure_boot_keys_to_default", json!({})).await;
    assert_eq!(keys.lock().unwrap().len(), 1);
    node.done(StepKind::Clean, "management.clear_secure_boot_keys", json!({})).await;
    let kinds: Vec<Value> = service
        .seen()
        .iter()
        .filter(|request| request.line == RESET)
        .map(|request| request.body["ResetKeysType"].clone())
        .collect();
    assert_eq!(kinds, ["ResetAllKeysToDefault", "DeleteAllKeys"]);
    assert!(keys.lock().unwrap().is_empty());
}

/// Nothing is written to a BMC that lacks a part, and the part is named.
#[tokio::test]
async fn what_a_bmc_lacks_is_named() {
    let system = json!({"PowerState": "Off", "SecureBoot": link("/redfish/v1/Systems/1/SecureBoot")});
    let mut few = secure_boot();
    few["Actions"]["#SecureBoot.ResetKeys"]["ResetKeysType@Redfish.AllowableValues"] = json!(["DeletePK"]);
    let clear = "management.clear_secure_boot_keys";
    for (system, secure_boot, databases, label, says) in [
        (json!({"PowerState": "Off"}), json!({}), vec![], ENROLL, "it offers no secure boot"),
        (
            system.clone(),
            json!({"SecureBootEnable": false}),
            vec![],
            ENROLL,
            "no databases of Secure Boot keys (SecureBootDatabases)",
        ),
        (
            system.clone(),
            secure_boot(),
            vec!["PK", "dbx"],
            ENROLL,
            "it offers no certificates of the database db",
        ),
        (
            system.clone(),
            json!({"SecureBootEnable": false}),
            vec![],
            clear,
            "it offers no reset of Secure Boot keys",
        ),
        (system, few, vec![], clear, "it offers only DeletePK"),
    ] {
        let service = Service::start(move |request, _| {
            let path = request.line.strip_prefix("GET ").unwrap_or("");
            match path.strip_prefix(DATABASES) {
                _ if path == SYSTEM => ok(system.clone()),
                _ if path == format!("{SYSTEM}/SecureBoot") => ok(secure_boot.clone()),
                Some("") => {
                    let members: Vec<Value> =
                        databases.iter().map(|name| link(&format!("{DATABASES}/{name}"))).collect();
                    ok(json!({ "Members": members }))
                }
                Some(name) => ok(json!({"Id": &name[1..]})),
                None => answer("404 Not Found", "", ""),
            }
        })
        .await;
        let node = Node::redfish(&service.address, SYSTEM);
        let args = if label == ENROLL { json!({"db": made("db")}) } else { json!({}) };
        let error = node.refused(StepKind::Clean, label, args).await;
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(error.to_string().contains(says), "{says}: {error}");
        assert_eq!(written(&service), [""; 0]);
    }
}

#[tokio::test]
async fn keys_that_are_none_are_refused_without_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let service = Service::start(|_, _| answer("404 Not Found", "", "")).await;
    let mut node = Node::redfish(&service.address, SYSTEM);
    node.settings.secure_boot_keys_directory = directory.path().to_owned();
    let two = format!("{}{}", made("a"), made("b"));
    for (args, says) in [
        (json!({}), "no keys are given"),
        (json!({"db": "SECRET"}), "argument db: it contains no certificate"),
        (
            json!({"KEK": "-----BEGIN CERTIFICATE-----\nSECRET!\n-----END CERTIFICATE-----"}),
            "argument KEK: certificate 1 is not PEM",
        ),
        (json!({"PK": two}), "argument PK: it contains 2 certificates"),
    ] {
        let error = node.refused(StepKind::Clean, ENROLL, args).await.to_string();
        assert!(error.contains(says) && !error.contains("SECRET"), "{says}: {error}");
    }
    std::fs::write(directory.path().join("db.crt"), "text").unwrap();
    let error = node.refused(StepKind::Clean, ENROLL, json!({})).await.to_string();
    assert!(
        error.contains("db.crt in the directory of bmc.secure_boot_keys_directory: it contains no"),
        "{error}"
    );
    assert!(service.seen().is_empty());
}
