//! Root device hints, as Ironic has them, by which an operator names disks: those to keep, and the one that gets an image.

use crate::condition::{Condition, ValueKind};
use crate::disk::Disk;
use serde_json::{Map, Value};

/// Conditions that a disk must fulfil, all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    conditions: Vec<(Key, String, Condition)>,
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Model,
    Vendor,
    Serial,
    Size,
    Wwn,
    WwnWithExtension,
    WwnVendorExtension,
    Rotational,
    Name,
    Hctl,
    Transport,
    VolumeName,
}

const KEYS: [(&str, Key); 12] = [
    ("model", Key::Model),
    ("vendor", Key::Vendor),
    ("serial", Key::Serial),
    ("size", Key::Size),
    ("wwn", Key::Wwn),
    ("wwn_with_extension", Key::WwnWithExtension),
    ("wwn_vendor_extension", Key::WwnVendorExtension),
    ("rotational", Key::Rotational),
    ("name", Key::Name),
    ("hctl", Key::Hctl),
    ("tran", Key::Transport),
    ("volume_name", Key::VolumeName),
];

impl Hint {
    /// From names and values; a number or a truth value in its JSON form.
    ///
    /// # Errors
    /// What is not understood: it must not be guessed which disk is meant.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Result<Self, String> {
        let mut conditions = Vec::new();
        for (name, value) in pairs {
            let key = KEYS.iter().find(|(known, _)| *known == name).map(|(_, key)| *key);
            let key = key.ok_or_else(|| format!("the hint {name:?} is not known"))?;
            let condition = Condition::parse(key.kind(), &value)
                .ok_or_else(|| format!("the hint {name} {value:?} is not understood"))?;
            conditions.push((key, format!("{name} {}", value.trim()), condition));
        }
        if conditions.is_empty() {
            Err("a hint without a condition would match every disk".to_owned())
        } else {
            Ok(Hint { conditions })
        }
    }

    /// From a `root_device` object; `None` when it has no conditions.
    ///
    /// # Errors
    /// What is not understood, or does not name one disk of a node: it is not guessed which disk is meant.
    pub fn of_root_device(hints: &Map<String, Value>) -> Result<Option<Self>, String> {
        if hints.is_empty() {
            return Ok(None);
        }
        let pairs: Result<Vec<(&str, String)>, String> =
            hints.iter().map(|(name, value)| pair(name, value)).collect();
        Self::parse(pairs?).map(Some)
    }

    /// Whether a disk fulfils all conditions. `volumes` are the names of the md arrays that it is a member of.
    pub fn matches(&self, disk: &Disk, volumes: &[String]) -> bool {
        self.conditions.iter().all(|(key, _, condition)| condition.is_met_by(&key.values(disk, volumes)))
    }

    /// Why `disk` is not meant: the first condition that it does not fulfil. It counts as a member of no md array.
    pub fn mismatch(&self, disk: &Disk) -> Option<String> {
        self.conditions.iter().find_map(|(key, words, condition)| {
            let values = key.values(disk, &[]);
            let has = values.first().map_or("none".to_owned(), |value| format!("{value:?}"));
            (!condition.is_met_by(&values)).then(|| format!("{words} (it has {has})"))
        })
    }
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<&str> = self.conditions.iter().map(|(_, words, _)| words.as_str()).collect();
        f.write_str(&words.join(", "))
    }
}

impl Key {
    fn kind(self) -> ValueKind {
        match self {
            Key::Size => ValueKind::Size,
            Key::Rotational => ValueKind::Truth,
            _ => ValueKind::Text,
        }
    }

    /// What a disk has of it, in lower case; several where it is in several volumes.
    fn values(self, disk: &Disk, volumes: &[String]) -> Vec<String> {
        let value = match self {
            Key::Model => disk.model.clone(),
            Key::Vendor => disk.vendor.clone(),
            Key::Serial => disk.serial.clone(),
            Key::Size => Some((disk.size >> 30).to_string()),
            Key::Wwn => disk.wwn.clone(),
            Key::WwnWithExtension => disk.wwn_with_extension.clone(),
            Key::WwnVendorExtension => disk.wwn_vendor_extension.clone(),
            Key::Rotational => Some(disk.rotational.to_string()),
            Key::Name => Some(disk.name.clone()),
            Key::Hctl => disk.hctl.clone(),
            Key::Transport => disk.transport.clone(),
            Key::VolumeName => return volumes.iter().map(|name| name.trim().to_lowercase()).collect(),
        };
        value.map(|value| value.trim().to_lowercase()).into_iter().collect()
    }
}

fn pair<'a>(name: &'a str, value: &Value) -> Result<(&'a str, String), String> {
    match (name, value) {
        ("by_path", _) => Err(
            "the hint \"by_path\" is not supported: the ramdisk has no such names; use hctl, serial or wwn"
                .to_owned(),
        ),
        ("volume_name", _) => Err("the hint \"volume_name\" is only for disks to keep".to_owned()),
        (_, Value::String(text)) => Ok((name, text.trim().to_owned())),
        (_, Value::Number(_) | Value::Bool(_)) => Ok((name, value.to_string())),
        _ => Err(format!("the hint {name:?} is neither text nor a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Disk {
        Disk {
            name: "/dev/sda".into(),
            size: 100 << 30,
            serial: Some("S1".into()),
            model: Some("ACME Fast 9000".into()),
            ..Disk::default()
        }
    }

    #[test]
    fn hints_match_as_in_ironic() {
        for (name, value, expected) in [
            ("serial", "s1", true),
            ("serial", "s!= S1", false),
            ("size", "100", true),
            ("size", ">= 60", true),
            ("size", "< 60", false),
            ("size", "= 60", true),
            ("model", "<in> fast", true),
            ("model", "acme", false),
            ("name", "<or> /dev/sdb <or> /dev/sda", true),
            ("rotational", "false", true),
            ("wwn", "0x5", false),
            ("wwn", "s!= 0x5", true),
            ("model", "<all-in> 9000 acme", true),
            ("size", "<or> 50 <or> 100", true),
            ("volume_name", "s!= large", false),
            ("volume_name", "s!= small", true),
            ("volume_name", "large", true),
            ("volume_name", "small", false),
        ] {
            let hint = Hint::parse([(name, value.to_owned())]).unwrap();
            assert_eq!(hint.matches(&disk(), &["large".to_owned()]), expected, "{hint}");
        }
        let both = Hint::parse([("serial", "S1".to_owned()), ("size", "7".to_owned())]).unwrap();
        assert!(!both.matches(&disk(), &[]), "all conditions must hold");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(Hint::parse([("colour", "red".to_owned())]).unwrap_err().contains("colour"));
        assert!(Hint::parse([("size", "big".to_owned())]).unwrap_err().contains("size"));
        assert!(Hint::parse([("rotational", "perhaps".to_owned())]).is_err());
        assert!(Hint::parse([]).unwrap_err().contains("every disk"));
    }
}
