//! The JSON Schema files for others, and the text for auditors, say what the code does.

mod common;

use certificate::{Certificate, DiskBefore, Document, Evidence, Refused, Signed};
use common::{boot_entries, certificate, deployment, evidence, key};
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../../docs/certificate.md");

fn schema(text: &str) -> Value {
    let mut schema: Value = serde_json::from_str(text).unwrap();
    schema.as_object_mut().unwrap().remove("$schema");
    schema
}

/// Whether the example is still read once it has been changed.
type Reads<'a> = dyn Fn(&dyn Fn(&mut Value)) -> bool + 'a;

/// Every property of the schema: in an example (`value` has all of them), in the text, and needed exactly where it is
/// required.
fn agrees(place: &str, schema: &Value, value: &Value, reads: &Reads) {
    if let Some(items) = schema.get("items") {
        let at = format!("{place}/0");
        return agrees(&at, items, &value[0], reads);
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    assert_eq!(schema["additionalProperties"], false, "{place}");
    for (name, inner) in properties {
        let at = format!("{place}/{name}");
        assert!(value.get(name).is_some(), "{at} is not in the example");
        assert!(TEXT.contains(&format!("`{name}`")), "{at} is not in docs/certificate.md");
        let required = schema["required"].as_array().unwrap().contains(&json!(name));
        let without =
            reads(&|whole| drop(whole.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(name)));
        assert_eq!(!without, required, "{at} is required, or is not");
        agrees(&at, inner, &value[name], reads);
    }
}

fn check<T: serde::de::DeserializeOwned>(name: &str, text: &str, example: &Value) {
    let schema = schema(text);
    agent_protocol::schema::check(name, &schema, example).unwrap();
    let reads = |change: &dyn Fn(&mut Value)| {
        let mut changed = example.clone();
        change(&mut changed);
        serde_json::from_value::<T>(changed).is_ok()
    };
    agrees("", &schema, example, &reads);
}

#[test]
fn schemas_and_code_agree() {
    let mut whole = certificate(deployment());
    whole.previous = Some("0".repeat(64));
    whole.disk_before = Some(DiskBefore { erased_by: Some("1".repeat(64)) });
    let value = |value: &str| serde_json::from_str::<Value>(value).unwrap();
    let signed = whole.sign(key());
    let file = include_str!("../../../docs/certificate/file.schema.json");
    check::<Signed>("file", file, &value(&signed.write()));
    let payload = include_str!("../../../docs/certificate/certificate.schema.json");
    check::<Certificate>("certificate", payload, &value(&signed.payload));
    let mut sample = evidence();
    sample.disks[0].reason = Some("none".to_owned());
    sample.disks[0].verification.as_mut().unwrap().markers_found = 1;
    sample.disks[0].exempt = Some("boot-medium".to_owned());
    sample.deployed = deployment().deployed;
    sample.boot_entries = boot_entries().boot_entries;
    let payload = include_str!("../../../docs/certificate/evidence.schema.json");
    check::<Evidence>("evidence", payload, &value(&sample.sign(key()).payload));
}

#[test]
fn every_refusal_has_its_name() {
    let text = || String::new();
    for refused in [
        Refused::Unreadable(Document::Certificate, text()),
        Refused::Unreadable(Document::Evidence, text()),
        Refused::WrongKey { what: Document::Certificate, signed_by: text(), key: text() },
        Refused::WrongKey { what: Document::Evidence, signed_by: text(), key: text() },
        Refused::Tampered(Document::Certificate),
        Refused::Tampered(Document::Evidence),
        Refused::UnknownVersion(Document::Certificate, 2),
        Refused::Unverified(text()),
        Refused::UnknownMethod { disk: text(), method: text() },
        Refused::WrongLevel { disk: text(), method: text(), level: text() },
        Refused::WrongExtent { disk: text(), erased: 0, size: 1 },
        Refused::NotReadBack { disk: text(), why: text() },
        Refused::Contradiction { stated: "", found: "" },
        Refused::AnotherNode { found: text(), wanted: text() },
        Refused::AnotherCommand { what: "", found: text(), wanted: text() },
        Refused::AnotherResult(""),
        Refused::AnotherDisk(text()),
        Refused::NotErased { disk: text(), outcome: text() },
        Refused::NotWritten { disk: text(), why: text() },
        Refused::AnotherImage { found: text(), wanted: text() },
        Refused::BrokenChain(text()),
    ] {
        assert!(TEXT.contains(&format!("| `{}` |", refused.name())), "{}", refused.name());
    }
}
