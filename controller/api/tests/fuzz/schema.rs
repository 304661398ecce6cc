//! Requests made from the document: every operation, with what it takes, and with what is nearly that.

use crate::dice::Dice;
use crate::house::HUSH;
use crate::shot::Shot;
use crate::words::{FIELDS, KEYS, NAMES, TEXTS};
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
        let mut fields: Vec<_> = schemas
            .filter_map(|schema| schema["properties"].as_object())
            .flat_map(Map::keys)
            .cloned()
            .collect();
        fields.extend(FIELDS.iter().map(|name| (*name).to_owned()));
        Self { document, operations, names, fields }
    }

    /// A request.
    pub fn shot(&self, dice: &mut Dice) -> Shot {
        let (known, path) = *dice.pick(&self.operations);
        let method = if dice.percent(4) { dice.pick(&METHODS) } else { known };
        let operation = &self.document["paths"][path][known.to_lowercase()];
        let mut uri = String::new();
        for segment in path.split('/').skip(1) {
            uri.push('/');
            if segment.starts_with('{') { uri.push_str(&self.name(dice)) } else { uri.push_str(segment) }
        }
        let query = self.query(dice, operation);
        if !query.is_empty() {
            uri = format!("{uri}?{}", query.join("&"));
        }
        let version = match dice.below(20) {
            0 => None,
            1 => Some((*dice.pick(&["latest", "1.0", "1.116", "2.1", "x", ""])).to_owned()),
            2..9 => Some(format!("1.{}", 1 + dice.below(115))),
            _ => Some("1.115".to_owned()),
        };
        let mut headers = Vec::new();
        if dice.percent(90) {
            headers.push(("Content-Type", "application/json".to_owned()));
        } else if dice.percent(70) {
            headers.push(("Content-Type", (*dice.pick(&CONTENT_TYPES)).to_owned()));
        }
        if dice.percent(3) {
            let name = *dice.pick(&[
                "OpenStack-API-Version",
                "Host",
                "Accept",
                "If-Match",
                "X-Auth-Token",
                "Authorization",
            ]);
            headers.push((name, (*dice.pick(TEXTS)).to_owned()));
        }
        Shot { method, uri, version, headers, body: self.body(dice, operation) }
    }

    fn name(&self, dice: &mut Dice) -> String {
        match dice.below(12) {
            0 => (*dice.pick(NAMES)).to_owned(),
            1 => encoded(dice.word(&LETTERS)),
            2 => "x".repeat(1 + dice.below(400)),
            _ => dice.pick(&self.names).clone(),
        }
    }

    fn query(&self, dice: &mut Dice, operation: &Value) -> Vec<String> {
        let mut query = Vec::new();
        for argument in operation["parameters"].as_array().into_iter().flatten() {
            let Some(name) = argument["name"].as_str().filter(|_| argument["in"] == "query") else {
                continue;
            };
            if dice.percent(20) {
                let mut value = self.value(dice, &argument["schema"], 0);
                hushless(&mut value);
                let value = match value {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                query.push(format!("{name}={}", encoded(&value)));
                if dice.percent(3) {
                    query.push(format!("{name}="));
                }
            }
        }
        if dice.percent(4) {
            query.push(format!("{}={}", dice.pick(KEYS), dice.pick(&self.names)));
        }
        query
    }

    fn body(&self, dice: &mut Dice, operation: &Value) -> Vec<u8> {
        if dice.percent(5) {
            return dice.pick(&ODD).to_vec();
        }
        if dice.percent(1) {
            return format!("{{\"extra\": {}1{}}}", "[".repeat(200), "]".repeat(200)).into_bytes();
        }
        let content = &operation["requestBody"]["content"]["application/json"];
        let Some(schema) = content.get("schema") else {
            return if dice.percent(90) { Vec::new() } else { b"{\"x\": 1}".to_vec() };
        };
        let mut value = if schema["$ref"].as_str().is_some_and(|name| name.ends_with("/Patch")) {
            self.patch(dice)
        } else {
            self.value(dice, schema, 0)
        };
        if dice.percent(15) {
            self.spoil(dice, &mut value);
        }
        if operation["operationId"].as_str().is_some_and(|id| OPEN_OPERATIONS.contains(&id)) {
            hushless(&mut value);
        } else {
            free(&mut value);
        }
        let mut bytes = value.to_string().into_bytes();
        if dice.percent(2) {
            bytes.truncate(dice.below(bytes.len() + 1));
        }
        bytes
    }

    /// Operations on fields that there are, and below them.
    fn patch(&self, dice: &mut Dice) -> Value {
        let count = 1 + dice.below(3);
        (0..count)
            .map(|_| {
                let mut path = format!("/{}", dice.pick(&self.fields));
                if dice.percent(25) {
                    path.push_str(dice.word(&[
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
                    Value::from(HUSH)
                } else {
                    let field = path.split('/').nth(1).unwrap_or_default();
                    let node = &self.document["components"]["schemas"]["NewNode"]["properties"][field];
                    self.value(dice, node, 0)
                };
                json!({"op": dice.pick(&["add", "replace", "remove"]), "path": path, "value": value})
            })
            .collect()
    }

    /// A value that the schema lets pass, more or less.
    fn value(&self, dice: &mut Dice, schema: &Value, depth: usize) -> Value {
        if let Some(target) = schema["$ref"].as_str() {
            let schema = self.document.pointer(target.trim_start_matches('#')).expect("no loose reference");
            return self.value(dice, schema, depth);
        }
        if dice.percent(4) {
            return self.junk(dice);
        }
        if let Some(words) = schema["enum"].as_array() {
            return dice.pick(words).clone();
        }
        let kind = match &schema["type"] {
            Value::Array(names) => dice.pick(names).as_str(),
            name => name.as_str(),
        };
        match kind {
            Some("null") => Value::Null,
            Some("boolean") => dice.percent(50).into(),
            Some("integer") => dice.pick(&[0, 1, 2, 10, -1, i64::MAX, i64::MIN]).to_owned().into(),
            Some("number") => dice.pick(&[0.0, 1.5, -1.0, 1e308]).to_owned().into(),
            Some("string") if schema["format"] == "uuid" => dice.pick(&self.names).clone().into(),
            Some("string") if dice.percent(30) => dice.pick(&self.names).clone().into(),
            Some("string") => (*dice.pick(TEXTS)).into(),
            Some("array") => {
                let count = dice.below(3);
                (0..count).map(|_| self.value(dice, &schema["items"], depth + 1)).collect()
            }
            Some("object") => self.object(dice, schema, depth),
            _ => self.junk(dice),
        }
    }

    fn object(&self, dice: &mut Dice, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let Some(properties) = schema["properties"].as_object() else {
            fields.insert((*dice.pick(KEYS)).to_owned(), self.junk(dice));
            fields.insert("ipmi_password".into(), HUSH.into());
            return Value::Object(fields);
        };
        let required = schema["required"].as_array();
        let few = 100 / (1 + properties.len() / 3);
        for (name, property) in properties {
            let must = required.is_some_and(|names| names.contains(&Value::from(name.as_str())));
            if dice.percent(if must { 97 } else { few }) {
                let value = match name.as_str() {
                    "driver" if dice.percent(80) => "fake-hardware".into(),
                    "address" if dice.percent(80) => format!("52:54:00:00:00:{:02x}", dice.below(40)).into(),
                    "node_uuid" if dice.percent(60) => self.names[self.names.len() - 1].clone().into(),
                    "agent_token" | "rescue_password" | "configdrive" => HUSH.into(),
                    _ => self.value(dice, property, depth + 1),
                };
                fields.insert(name.clone(), value);
            }
        }
        if dice.percent(4) {
            fields.insert((*dice.pick(KEYS)).to_owned(), self.junk(dice));
        }
        Value::Object(fields)
    }

    fn junk(&self, dice: &mut Dice) -> Value {
        match dice.below(12) {
            0 => Value::Null,
            1 => true.into(),
            2 => (*dice.pick(&[0, -1, i64::MIN])).into(),
            3 => u64::MAX.into(),
            4 => 1e308.into(),
            5 => json!([]),
            6 => json!({}),
            7 => (*dice.pick(&LETTERS)).into(),
            8 => {
                let most = if dice.percent(2) { 100_000 } else { 300 };
                "é".repeat(dice.below(most)).into()
            }
            9 => json!([{"a": [{"b": null}]}]),
            10 => json!({"interface": "deploy", "step": "s", "args": {"password": HUSH}}),
            _ => (*dice.pick(TEXTS)).into(),
        }
    }

    /// One place of the value becomes something else.
    fn spoil(&self, dice: &mut Dice, value: &mut Value) {
        // A secret stays where one is looked for.
        let secret = value.to_string().contains(HUSH);
        let inner = match value {
            Value::Array(items) if !items.is_empty() => {
                let at = dice.below(items.len());
                items.get_mut(at)
            }
            Value::Object(fields) if !fields.is_empty() => {
                let at = dice.below(fields.len());
                fields.values_mut().nth(at)
            }
            _ => None,
        };
        match inner {
            Some(inner) if dice.percent(60) => self.spoil(dice, inner),
            _ if secret => {}
            _ => *value = self.junk(dice),
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
        Value::String(text) if text.contains(HUSH) => *text = "known".into(),
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
