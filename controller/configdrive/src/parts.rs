//! The parts of a configuration drive as the API takes them, and the files that are made of them.

use crate::iso::{self, File};
use crate::{LARGEST, packed};
use serde_json::{Map, Value};
use std::fmt;
use uuid::Uuid;

/// Parts that are objects, and the files that they become. (Ironic's name: the second format of vendor data.)
const OBJECTS: [(&str, &str); 3] = [
    ("meta_data", "meta_data.json"),
    ("network_data", "network_data.json"),
    ("vendor_data", "vendor_data2.json"),
];

/// The first format of vendor data, which no user gives: cloud-init reads it before the second one and before user data, which
/// take precedence over it.
const VENDOR_DATA: &str = "vendor_data.json";

const USER_DATA: &str = "user_data";

/// Directories that get all files, below `openstack`: versions of the metadata.
const VERSIONS: [&str; 2] = ["2012-08-10", "latest"];

/// Why no drive can be made of an object. Quotes no value: user data hold passwords.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// There is no such part.
    #[error("Additional properties are not allowed ('{0}' was unexpected)")]
    Unknown(String),
    /// A part is of another type.
    #[error("{0} is of the wrong type")]
    Type(&'static str),
    /// The file system would be larger than agents take.
    #[error("its file system has {0} bytes; at most {LARGEST} are possible")]
    TooLarge(u64),
}

/// The files of a drive.
#[derive(Clone, PartialEq, Eq)]
pub struct Drive {
    files: Vec<(&'static str, Vec<u8>)>,
}

/// The contents are not shown.
impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.files.iter().map(|(name, content)| (name, content.len()));
        f.debug_map().entries(sizes).finish()
    }
}

impl Drive {
    /// The drive of a node's instance. The instance has the node's UUID and name unless its metadata say otherwise.
    ///
    /// # Errors
    /// A part is unknown, of the wrong type, or too large.
    pub fn of(parts: &Map<String, Value>, node: Uuid, name: Option<&str>) -> Result<Self, Malformed> {
        check(parts)?;
        let mut files = Vec::new();
        for (part, file) in OBJECTS {
            let mut fields = parts.get(part).and_then(Value::as_object).cloned().unwrap_or_default();
            if part == "meta_data" {
                fields.entry("uuid").or_insert_with(|| node.to_string().into());
                if let Some(name) = name {
                    fields.entry("name").or_insert_with(|| name.into());
                }
            }
            if !fields.is_empty() {
                files.push((file, Value::Object(fields).to_string().into_bytes()));
            }
        }
        match parts.get(USER_DATA) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => files.push((USER_DATA, text.clone().into_bytes())),
            Some(fields) => files.push((USER_DATA, fields.to_string().into_bytes())),
        }
        Self { files }.checked()
    }

    /// The drive with vendor data of the controller's own.
    ///
    /// # Errors
    /// It becomes too large.
    pub fn with_vendor_data(mut self, data: &Value) -> Result<Self, Malformed> {
        self.files.push((VENDOR_DATA, data.to_string().into_bytes()));
        self.checked()
    }

    fn checked(mut self) -> Result<Self, Malformed> {
        self.files.sort();
        match iso::size(&VERSIONS, &self.listed()) {
            size if size > LARGEST => Err(Malformed::TooLarge(size)),
            _ => Ok(self),
        }
    }

    /// The file system, ISO 9660. Of equal files come equal bytes.
    pub fn iso(&self) -> Vec<u8> {
        iso::image(&VERSIONS, &self.listed())
    }

    /// The file system as agents take it: gzipped, in base64.
    pub fn packed(&self) -> String {
        packed::pack(&self.iso())
    }

    fn listed(&self) -> Vec<File<'_>> {
        self.files.iter().map(|(name, content)| File { name, content }).collect()
    }
}

/// Ironic's schema.
fn check(parts: &Map<String, Value>) -> Result<(), Malformed> {
    for (name, part) in parts {
        if let Some((object, _)) = OBJECTS.iter().find(|(object, _)| object == name) {
            if !part.is_object() {
                return Err(Malformed::Type(object));
            }
        } else if name != USER_DATA {
            return Err(Malformed::Unknown(name.clone()));
        } else if part.is_boolean() || part.is_number() {
            return Err(Malformed::Type(USER_DATA));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drive(parts: Value) -> Result<Drive, Malformed> {
        Drive::of(parts.as_object().unwrap(), Uuid::from_u128(7), Some("rack-1"))
    }

    fn files(parts: Value) -> Vec<(&'static str, String)> {
        let files = drive(parts).unwrap().files;
        files.into_iter().map(|(name, content)| (name, String::from_utf8(content).unwrap())).collect()
    }

    #[test]
    fn the_files_are_those_of_openstacksdk() {
        let uuid = "00000000-0000-0000-0000-000000000007";
        let meta = json!({"uuid": uuid, "name": "rack-1"}).to_string();
        assert_eq!(files(json!({})), [("meta_data.json", meta.clone())]);
        let nothing = json!({"network_data": {}, "vendor_data": {}, "user_data": ""});
        assert_eq!(files(nothing), [("meta_data.json", meta.clone())], "what is empty becomes no file");
        let all = json!({
            "meta_data": {"uuid": "own", "name": "own", "hostname": "h"}, "network_data": {"links": []},
            "vendor_data": {"v": 1}, "user_data": "#cloud-config\n",
        });
        let expected = [
            ("meta_data.json", json!({"uuid": "own", "name": "own", "hostname": "h"}).to_string()),
            ("network_data.json", r#"{"links":[]}"#.to_owned()),
            ("user_data", "#cloud-config\n".to_owned()),
            ("vendor_data2.json", r#"{"v":1}"#.to_owned()),
        ];
        assert_eq!(files(all), expected);
        for (user_data, text) in [(json!({"a": "ü"}), r#"{"a":"ü"}"#), (json!([1]), "[1]"), (json!({}), "{}")]
        {
            assert_eq!(files(json!({"user_data": user_data}))[1], ("user_data", text.to_owned()));
        }
        let nameless = Drive::of(&Map::new(), Uuid::from_u128(7), None).unwrap();
        assert_eq!(nameless.files[0].1, json!({"uuid": uuid}).to_string().into_bytes());
    }

    #[test]
    fn what_ironics_schema_refuses_is_refused_without_its_value() {
        for (parts, expected) in [
            (json!({"meta_data": "hunter2"}), "meta_data is of the wrong type"),
            (json!({"meta_data": null}), "meta_data is of the wrong type"),
            (json!({"network_data": ["hunter2"]}), "network_data is of the wrong type"),
            (json!({"vendor_data": null}), "vendor_data is of the wrong type"),
            (json!({"user_data": 3}), "user_data is of the wrong type"),
            (json!({"user_data": true}), "user_data is of the wrong type"),
            (json!({"other": "hunter2"}), "Additional properties are not allowed ('other' was unexpected)"),
        ] {
            assert_eq!(drive(parts).unwrap_err().to_string(), expected);
        }
        assert!(drive(json!({"user_data": null})).is_ok());
    }

    #[test]
    fn vendor_data_of_the_controller_leave_those_of_the_user_alone() {
        let parts = json!({"vendor_data": {"v": 1}});
        let made = drive(parts).unwrap().with_vendor_data(&json!({"cloud-init": "#cloud-config"})).unwrap();
        let names: Vec<&str> = made.files.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["meta_data.json", "vendor_data.json", "vendor_data2.json"]);
        assert_eq!(made.files[1].1, br##"{"cloud-init":"#cloud-config"}"##);
        assert_eq!(made.files[2].1, br#"{"v":1}"#);
        let full = json!({"user_data": "x".repeat(usize::try_from(LARGEST - (64 << 10)).unwrap())});
        let large = json!("x".repeat(1 << 20));
        assert!(matches!(drive(full).unwrap().with_vendor_data(&large), Err(Malformed::TooLarge(_))));
    }

    #[test]
    fn a_drive_that_no_agent_takes_is_refused() {
        let of = |bytes: u64| drive(json!({"user_data": "x".repeat(usize::try_from(bytes).unwrap())}));
        let fits = of(LARGEST - (64 << 10)).unwrap();
        assert!(fits.iso().len() as u64 <= LARGEST);
        let refused = of(LARGEST).unwrap_err();
        assert!(matches!(refused, Malformed::TooLarge(size) if size > LARGEST), "{refused}");
    }

    #[test]
    fn contents_are_not_shown() {
        let shown = format!("{:?}", drive(json!({"user_data": "hunter2"})).unwrap());
        assert!(shown.contains("user_data") && !shown.contains("hunter2"), "{shown}");
    }
}
