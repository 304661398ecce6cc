//! Root device hints, as Ironic has them, by which an operator names disks: those to keep, and the one that gets an image.

mod condition;

use crate::disk::Disk;
use crate::probe::Probe;
use condition::{Condition, ValueKind};

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

    /// Whether a disk fulfils all conditions.
    pub fn matches(&self, probe: &Probe) -> bool {
        let volumes = volumes(probe);
        self.conditions
            .iter()
            .all(|(key, _, condition)| condition.is_met_by(&key.values(&probe.disk, &volumes)))
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
            Key::Name => Some(disk.path.to_string_lossy().into_owned()),
            Key::Hctl => disk.hctl.clone(),
            Key::Transport => disk.transport.clone(),
            Key::VolumeName => return volumes.iter().map(|name| name.trim().to_lowercase()).collect(),
        };
        value.map(|value| value.trim().to_lowercase()).into_iter().collect()
    }
}

/// Names of the md arrays that the disk is a member of, also by a volume of which it is a part: the label is
/// `HOST:NAME`, or the name alone.
fn volumes(probe: &Probe) -> Vec<String> {
    let all = probe.signatures.iter().chain(probe.above.iter().flat_map(|layer| &layer.signatures));
    let members = all.filter(|signature| signature.name == "linux_raid_member");
    let labels = members.filter_map(|signature| signature.label.as_deref());
    labels.map(|label| label.split_once(':').map_or(label, |(_, name)| name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::signature::{Signature, SignatureKind};

    fn probe() -> Probe {
        let member = Signature {
            kind: SignatureKind::Member,
            name: "linux_raid_member".into(),
            label: Some("host:large".into()),
            uuid: None,
            offset: None,
            length: 0,
            range: (0, 1),
        };
        let disk = Disk {
            path: "/dev/sda".into(),
            size: 100 << 30,
            serial: Some("S1".into()),
            model: Some("ACME Fast 9000".into()),
            ..Disk::default()
        };
        Probe { disk, signatures: vec![member], ..Probe::default() }
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
            assert_eq!(hint.matches(&probe()), expected, "{hint}");
        }
        let both = Hint::parse([("serial", "S1".to_owned()), ("size", "7".to_owned())]).unwrap();
        assert!(!both.matches(&probe()), "all conditions must hold");
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert!(Hint::parse([("colour", "red".to_owned())]).unwrap_err().contains("colour"));
        assert!(Hint::parse([("size", "big".to_owned())]).unwrap_err().contains("size"));
        assert!(Hint::parse([("rotational", "perhaps".to_owned())]).is_err());
        assert!(Hint::parse([]).unwrap_err().contains("every disk"));
    }
}
