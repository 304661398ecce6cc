//! Root device hints, as Ironic has them, by which an operator names disks.

use crate::probe::Probe;

/// Conditions that a disk must fulfil, all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    conditions: Vec<(Name, String, Condition)>,
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Model,
    Vendor,
    Serial,
    Size,
    Wwn,
    WwnWithExtension,
    WwnVendorExtension,
    Rotational,
    Device,
    Hctl,
    Volume,
}

const NAMES: [(&str, Name); 11] = [
    ("model", Name::Model),
    ("vendor", Name::Vendor),
    ("serial", Name::Serial),
    ("size", Name::Size),
    ("wwn", Name::Wwn),
    ("wwn_with_extension", Name::WwnWithExtension),
    ("wwn_vendor_extension", Name::WwnVendorExtension),
    ("rotational", Name::Rotational),
    ("name", Name::Device),
    ("hctl", Name::Hctl),
    ("volume_name", Name::Volume),
];

/// How a value is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    /// Numbers: `==`, `!=`, `<`, `<=`, `>`, `>=`, and `=` for at least.
    Number(&'static str, i64),
    /// Strings: `s==`, `s!=`, `s<`, `s<=`, `s>`, `s>=`.
    Text(&'static str, String),
    /// `<in>`: contains it.
    In(String),
    /// `<or>`: is one of them.
    Or(Vec<String>),
}

const NUMBERS: [&str; 7] = ["==", "!=", "<=", ">=", "<", ">", "="];
const TEXTS: [&str; 6] = ["s==", "s!=", "s<=", "s>=", "s<", "s>"];

impl Hint {
    /// From names and values; a number or a truth value in its JSON form.
    ///
    /// # Errors
    /// What is not understood: it must not be guessed which disk is meant.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Result<Self, String> {
        let mut conditions = Vec::new();
        for (key, value) in pairs {
            let name = NAMES.iter().find(|(known, _)| *known == key).map(|(_, name)| *name);
            let name = name.ok_or_else(|| format!("{key:?} is no hint that is known"))?;
            let condition = Condition::parse(name, &value)
                .ok_or_else(|| format!("{key}: {value:?} is not understood"))?;
            conditions.push((name, format!("{key} {value}"), condition));
        }
        if conditions.is_empty() {
            Err("a hint without a condition would match every disk".to_owned())
        } else {
            Ok(Hint { conditions })
        }
    }

    /// Whether a disk fulfils all conditions.
    pub fn matches(&self, probe: &Probe) -> bool {
        self.conditions
            .iter()
            .all(|(name, _, condition)| name.values(probe).iter().any(|value| condition.holds(value)))
    }
}

impl std::fmt::Display for Hint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<&str> = self.conditions.iter().map(|(_, words, _)| words.as_str()).collect();
        f.write_str(&words.join(", "))
    }
}

impl Name {
    /// What a disk has of it; several for a volume name.
    fn values(self, probe: &Probe) -> Vec<String> {
        let disk = &probe.disk;
        let one = |value: &Option<String>| value.clone().into_iter().collect();
        match self {
            Name::Model => one(&disk.model),
            Name::Vendor => one(&disk.vendor),
            Name::Serial => one(&disk.serial),
            Name::Size => vec![(disk.size >> 30).to_string()],
            Name::Wwn => one(&disk.wwn),
            Name::WwnWithExtension => one(&disk.wwn_with_extension),
            Name::WwnVendorExtension => one(&disk.wwn_vendor_extension),
            Name::Rotational => vec![disk.rotational.to_string()],
            Name::Device => vec![disk.path.to_string_lossy().into_owned()],
            Name::Hctl => one(&disk.hctl),
            Name::Volume => volumes(probe),
        }
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

impl Condition {
    fn parse(name: Name, value: &str) -> Option<Self> {
        let text = value.trim();
        let begins = |words: &[&'static str]| {
            words
                .iter()
                .find_map(|word| text.strip_prefix(word).map(|rest| (*word, rest.trim().to_lowercase())))
        };
        if let Some(rest) = text.strip_prefix("<or>") {
            return Some(Condition::Or(rest.split("<or>").map(|one| one.trim().to_lowercase()).collect()));
        }
        if let Some(rest) = text.strip_prefix("<in>") {
            return Some(Condition::In(rest.trim().to_lowercase()));
        }
        if let Some((word, rest)) = begins(&TEXTS) {
            return Some(Condition::Text(word, rest));
        }
        if let Some((word, rest)) = begins(&NUMBERS) {
            return Some(Condition::Number(word, rest.parse().ok()?));
        }
        match name {
            Name::Size => Some(Condition::Number("==", text.parse().ok()?)),
            Name::Rotational => {
                let truth = match text.to_lowercase().as_str() {
                    "true" | "1" | "yes" | "on" => "true",
                    "false" | "0" | "no" | "off" => "false",
                    _ => return None,
                };
                Some(Condition::Text("s==", truth.to_owned()))
            }
            _ => Some(Condition::Text("s==", text.to_lowercase())),
        }
    }

    fn holds(&self, value: &str) -> bool {
        let value = value.trim().to_lowercase();
        let order = |word: &str, order: Option<std::cmp::Ordering>| {
            order.is_some_and(|order| match word {
                "==" => order.is_eq(),
                "!=" => order.is_ne(),
                "<" => order.is_lt(),
                "<=" => order.is_le(),
                ">" => order.is_gt(),
                _ => order.is_ge(),
            })
        };
        match self {
            Condition::Number(word, wanted) => {
                order(word, value.parse::<i64>().ok().map(|found| found.cmp(wanted)))
            }
            Condition::Text(word, wanted) => order(&word[1..], Some(value.cmp(wanted))),
            Condition::In(wanted) => value.contains(wanted),
            Condition::Or(all) => all.contains(&value),
        }
    }
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
