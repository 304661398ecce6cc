//! Requests made from the document: every operation, with what it takes, and with what is nearly that.

use crate::rng::Rng;
use crate::test_request::TestRequest;
use crate::words::{KEYS, NAMES, TEXTS};
use crate::world::SECRET;
use serde_json::{Map, Value, json};

const METHODS: [&str; 7] = ["GET", "PUT", "PATCH", "POST", "DELETE", "HEAD", "OPTIONS"];

/// Bodies that no schema describes.
const ODD: [&[u8]; 14] = [
    b"",
    b"null",
    b"[]",
    b"\"text\"",
    b"{",
    b"{}{}",
    b"\xef\xbb\xbf{}",
    b"{\"name\": \"\xff\xfe\"}",
    b"{\"name\": \"\\ud800\"}",
    b"{\"target\": 1e999}",
    b"{\"extra\": {\"a\": 1, \"a\": 2}, \"extra\": 3}",
    b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--",
    b"\0\0\0\0",
    b"[[[[[[[[{\"op\": [[[[]]]]}]]]]]]]]",
];

const CONTENT_TYPES: [&str; 6] = [
    "text/plain",
    "application/json; charset=utf-16",
    "multipart/form-data; boundary=x",
    "",
    "\u{e4}",
    "a/b/c",
];

/// Texts that break what counts bytes, letters or lines.
const LETTERS: [&str; 8] = [
    "\u{0}",
    "\u{fffd}\u{202e}",
    "a\r\nX: y",
    "\u{1f469}\u{200d}\u{1f680}",
    "%00%ff",
    "\u{7f}",
    "' OR 1=1 --",
    "../../etc/passwd",
];

/// Makes requests from a document.
pub struct Maker<'a> {
    document: &'a Value,
    /// Method and path of each operation.
    operations: Vec<(&'static str, &'a str)>,
    /// What there is, and was.
    pub names: Vec<String>,
    /// Fields of all resources.
    fields: Vec<String>,
}

impl<'a> Maker<'a> {
    pub fn new(document: &'a Value, names: Vec<String>) -> Self {
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for method in METHODS.into_iter().filter(|method| item.get(method.to_lowercase()).is_some()) {
                operations.push((method, path.as_str()));
            }
        }
        let schemas = document["components"]["schemas"].as_object().expect("schemas").values();
        let fields: Vec<_> = schemas
            .filter_map(|schema| schema["properties"].as_object())
            .flat_map(Map::keys)
            .cloned()
            .collect();
        Self { document, operations, names, fields }
    }

    /// A request.
    pub fn sent(&self, rng: &mut Rng) -> TestRequest {
        let (known, path) = *rng.pick(&self.operations);
        let method = if rng.percent(4) { rng.pick(&METHODS) } else { known };
        let operation = &self.document["paths"][path][known.to_lowercase()];
        let mut uri = String::new();
        for segment in path.split('/').skip(1) {
            uri.push('/');
            if segment.starts_with('{') { uri.push_str(&self.name(rng)) } else { uri.push_str(segment) }
        }
        let query = self.query(rng, operation);
        if !query.is_empty() {
            uri = format!("{uri}?{}", query.join("&"));
        }
        let version = match rng.below(20) {
            0 => None,
            1 => Some((*rng.pick(&["latest", "1.0", "1.116", "2.1", "x", ""])).to_owned()),
            2..9 => Some(format!("1.{}", 1 + rng.below(115))),
            _ => Some("1.115".to_owned()),
        };
        let mut headers = Vec::new();
        if rng.percent(90) {
            headers.push(("Content-Type", "application/json".to_owned()));
        } else if rng.percent(70) {
            headers.push(("Content-Type", (*rng.pick(&CONTENT_TYPES)).to_owned()));
        }
        if rng.percent(3) {
            let name = *rng.pick(&[
                "OpenStack-API-Version",
                "Host",
                "Accept",
                "If-Match",
                "X-Auth-Token",
                "Authorization",
            ]);
            headers.push((name, (*rng.pick(TEXTS)).to_owned()));
        }
        TestRequest { method, uri, version, headers, body: self.body(rng, operation) }
    }

    fn name(&self, rng: &mut Rng) -> String {
        match rng.below(12) {
            0 => (*rng.pick(NAMES)).to_owned(),
            1 => encoded(rng.word(&LETTERS)),
            2 => "x".repeat(1 + rng.below(400)),
            _ => rng.pick(&self.names).clone(),
        }
    }

    fn query(&self, rng: &mut Rng, operation: &Value) -> Vec<String> {
        let mut query = Vec::new();
        for argument in operation["parameters"].as_array().into_iter().flatten() {
            let Some(name) = argument["name"].as_str().filter(|_| argument["in"] == "query") else {
                continue;
            };
            if rng.percent(20) {
                let mut value = self.value(rng, &argument["schema"], 0);
                hushless(&mut value);
                let value = match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                query.push(format!("{name}={}", encoded(&value)));
                if rng.percent(3) {
                    query.push(format!("{name}="));
                }
            }
        }
        if rng.percent(4) {
            query.push(format!("{}={}", rng.pick(KEYS), rng.pick(&self.names)));
        }
        query
    }

    fn body(&self, rng: &mut Rng, operation: &Value) -> Vec<u8> {
        if rng.percent(5) {
            return rng.pick(&ODD).to_vec();
        }
        if rng.percent(1) {
            return format!("{{\"extra\": {}1{}}}", "[".repeat(200), "]".repeat(200)).into_bytes();
        }
        let content = &operation["requestBody"]["content"]["application/json"];
        let Some(schema) = content.get("schema") else {
            return if rng.percent(90) { Vec::new() } else { b"{\"x\": 1}".to_vec() };
        };
        let mut value = if schema["$ref"].as_str().is_some_and(|name| name.ends_with("/Patch")) {
            self.patch(rng)
        } else {
            self.value(rng, schema, 0)
        };
        if rng.percent(15) {
            self.spoil(rng, &mut value);
        }
        if operation["operationId"].as_str().is_some_and(|id| OPEN_OPERATIONS.contains(&id)) {
            hushless(&mut value);
        } else {
            free(&mut value);
        }
        let mut bytes = value.to_string().into_bytes();
        if rng.percent(2) {
            bytes.truncate(rng.below(bytes.len() + 1));
        }
        bytes
    }

    /// Operations on fields that there are, and below them.
    fn patch(&self, rng: &mut Rng) -> Value {
        let count = 1 + rng.below(3);
        (0..count)
            .map(|_| {
                let mut path = format!("/{}", rng.pick(&self.fields));
                if rng.percent(25) {
                    path.push_str(rng.word(&[
                        "/k",
                        "/0",
                        "/-",
                        "/redfish_password",
                        "/a~1b",
                        "/",
                        "//",
                        "/~2",
                    ]));
                }
                let value = if path.contains("password") {
                    Value::from(SECRET)
                } else {
                    let field = path.split('/').nth(1).unwrap_or_default();
                    let node = &self.document["components"]["schemas"]["NewNode"]["properties"][field];
                    self.value(rng, node, 0)
                };
                json!({"op": rng.pick(&["add", "replace", "remove"]), "path": path, "value": value})
            })
            .collect()
    }

    /// A value that the schema lets pass, more or less.
    fn value(&self, rng: &mut Rng, schema: &Value, depth: usize) -> Value {
        if let Some(target) = schema["$ref"].as_str() {
            let schema = self.document.pointer(target.trim_start_matches('#')).expect("no loose reference");
            return self.value(rng, schema, depth);
        }
        if rng.percent(4) {
            return self.junk(rng);
        }
        if let Some(words) = schema["enum"].as_array() {
            return rng.pick(words).clone();
        }
        let kind = match &schema["type"] {
            Value::Array(names) => rng.pick(names).as_str(),
            name => name.as_str(),
        };
        match kind {
            Some("null") => Value::Null,
            Some("boolean") => rng.percent(50).into(),
            Some("integer") => rng.pick(&[0, 1, 2, 10, -1, i64::MAX, i64::MIN]).to_owned().into(),
            Some("number") => rng.pick(&[0.0, 1.5, -1.0, 1e308]).to_owned().into(),
            Some("string") if schema["format"] == "uuid" => rng.pick(&self.names).clone().into(),
            Some("string") if rng.percent(30) => rng.pick(&self.names).clone().into(),
            Some("string") => (*rng.pick(TEXTS)).into(),
            Some("array") => {
                let count = rng.below(3);
                (0..count).map(|_| self.value(rng, &schema["items"], depth + 1)).collect()
            }
            Some("object") => self.object(rng, schema, depth),
            _ => self.junk(rng),
        }
    }

    fn object(&self, rng: &mut Rng, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let Some(properties) = schema["properties"].as_object() else {
            fields.insert((*rng.pick(KEYS)).to_owned(), self.junk(rng));
            fields.insert("ipmi_password".into(), SECRET.into());
            return Value::Object(fields);
        };
        let required = schema["required"].as_array();
        let few = 100 / (1 + properties.len() / 3);
        for (name, property) in properties {
            let must = required.is_some_and(|names| names.contains(&Value::from(name.as_str())));
            if rng.percent(if must { 97 } else { few }) {
                let value = match name.as_str() {
                    "driver" if rng.percent(80) => "fake-hardware".into(),
                    "address" if rng.percent(80) => format!("52:54:00:00:00:{:02x}", rng.below(40)).into(),
                    "node_uuid" if rng.percent(60) => self.names[self.names.len() - 1].clone().into(),
                    "agent_token" | "rescue_password" | "configdrive" => SECRET.into(),
                    _ => self.value(rng, property, depth + 1),
                };
                fields.insert(name.clone(), value);
            }
        }
        if rng.percent(4) {
            fields.insert((*rng.pick(KEYS)).to_owned(), self.junk(rng));
        }
        Value::Object(fields)
    }

    fn junk(&self, rng: &mut Rng) -> Value {
        match rng.below(12) {
            0 => Value::Null,
            1 => true.into(),
            2 => (*rng.pick(&[0, -1, i64::MIN])).into(),
            3 => u64::MAX.into(),
            4 => 1e308.into(),
            5 => json!([]),
            6 => json!({}),
            7 => (*rng.pick(&LETTERS)).into(),
            8 => {
                let most = if rng.percent(2) { 100_000 } else { 300 };
                "é".repeat(rng.below(most)).into()
            }
            9 => json!([{"a": [{"b": null}]}]),
            10 => json!({"interface": "deploy", "step": "s", "args": {"password": SECRET}}),
            _ => (*rng.pick(TEXTS)).into(),
        }
    }

    /// One place of the value becomes something else.
    fn spoil(&self, rng: &mut Rng, value: &mut Value) {
        // A secret stays where one is looked for.
        let secret = value.to_string().contains(SECRET);
        let inner = match value {
            Value::Array(items) if !items.is_empty() => {
                let at = rng.below(items.len());
                items.get_mut(at)
            }
            Value::Object(fields) if !fields.is_empty() => {
                let at = rng.below(fields.len());
                fields.values_mut().nth(at)
            }
            _ => None,
        };
        match inner {
            Some(inner) if rng.percent(60) => self.spoil(rng, inner),
            _ if secret => {}
            _ => *value = self.junk(rng),
        }
    }
}

/// Fields that are shown to all callers as they were written, whatever is in them.
const OPEN_FIELDS: [&str; 4] = ["extra", "properties", "network_data", "local_link_connection"];

/// Operations that show what they were given: an inventory, the arguments of a plan.
const OPEN_OPERATIONS: [&str; 2] = ["post_v1_continue_inspection", "post_v1_anneal_nodes_ident_erase_plan"];

/// No secrets in open fields: no document promises that they stay there.
fn free(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(free),
        Value::Object(fields) => {
            let path = fields.get("path").and_then(Value::as_str).unwrap_or_default();
            let open = path.split('/').nth(1).is_some_and(|field| OPEN_FIELDS.contains(&field));
            for (name, value) in fields.iter_mut() {
                if open || OPEN_FIELDS.contains(&name.as_str()) { hushless(value) } else { free(value) }
            }
        }
        _ => {}
    }
}

fn hushless(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(SECRET) => *text = "known".into(),
        Value::Array(items) => items.iter_mut().for_each(hushless),
        Value::Object(fields) => fields.values_mut().for_each(hushless),
        _ => {}
    }
}

/// Percent-encoded, every byte that must be and some that need not.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}
