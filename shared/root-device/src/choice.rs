//! Which disk gets the operating system.

use crate::disk::Disk;
use crate::hint::Hint;
use crate::identity::DiskIdentity;
use serde_json::{Map, Value};

/// What the choice follows besides the hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Without hints no smaller disk is taken, in bytes.
    pub smallest: u64,
    /// Whether several disks that fit are an error.
    pub strict: bool,
}

impl Default for Rules {
    /// Ironic's 4 GiB, and the smallest of several.
    fn default() -> Self {
        Self { smallest: 4 << 30, strict: false }
    }
}

/// A choice among a list of disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Place of the chosen disk in the list.
    pub disk: usize,
    /// Places of the others that fit as well, in the order in which they would have been chosen.
    pub others: Vec<usize>,
}

/// The disk that the hints mean; without hints the smallest fixed one of at least [`Rules::smallest`]. Of several the
/// smallest, then the first by name.
///
/// # Errors
/// Hints that are not understood; of each disk why it does not fit; several that fit, where the rules are strict.
pub fn choose(disks: &[Disk], hints: &Map<String, Value>, rules: Rules) -> Result<Choice, String> {
    let hints = Hint::of_root_device(hints)?;
    let judged =
        disks.iter().enumerate().map(|(at, disk)| (at, refusal(disk, hints.as_ref(), rules.smallest)));
    let (fitting, unfit): (Vec<_>, Vec<_>) = judged.partition(|(_, why)| why.is_none());
    let mut fitting: Vec<usize> = fitting.into_iter().map(|(at, _)| at).collect();
    fitting.sort_by_key(|at| (disks[*at].size, &disks[*at].name));
    let Some((disk, others)) = fitting.split_first() else {
        let mut why: Vec<String> = unfit
            .iter()
            .map(|(at, why)| format!("{}: {}", disks[*at].name, why.as_deref().unwrap_or_default()))
            .collect();
        why.sort();
        return Err(match (why.is_empty(), hints.is_none()) {
            (true, _) => "there is no disk to write an image to".to_owned(),
            (_, true) => format!("no disk can take an image: {}", why.join("; ")),
            (_, false) => format!("no disk matches the root device hints: {}", why.join("; ")),
        });
    };
    if rules.strict && !others.is_empty() {
        let named: Vec<String> = fitting.iter().map(|at| disks[*at].describe()).collect();
        let met = if hints.is_some() { "match the root device hints" } else { "can take the image" };
        return Err(format!(
            "{} disks {met}, and root_device_strict allows one only: {}",
            named.len(),
            named.join(", ")
        ));
    }
    Ok(Choice { disk: *disk, others: others.to_vec() })
}

/// The place of a disk that is known already; `called` says in errors which it is. Hints, if there are any, must mean it, too.
///
/// # Errors
/// It is missing, several are like it, or it is not what the hints mean: no other is written in its place.
pub fn again(
    disks: &[Disk],
    hints: &Map<String, Value>,
    known: &DiskIdentity,
    called: &str,
) -> Result<usize, String> {
    let hints = Hint::of_root_device(hints)?;
    let mut alike = disks.iter().enumerate().filter(|(_, disk)| known.is_of(disk));
    let (Some((at, disk)), None) = (alike.next(), alike.next()) else {
        let none = !disks.iter().any(|disk| known.is_of(disk));
        let count = if none { "missing" } else { "not the only one of its identity" };
        return Err(format!("{called} ({known}) is {count}"));
    };
    let other = hints.as_ref().and_then(|hints| hints.mismatch(disk));
    let problem = match other {
        Some(why) => format!("is not what the root device hints mean: {why}"),
        None if disk.read_only => "is read-only".to_owned(),
        None => return Ok(at),
    };
    Err(format!("{called} ({known}) {problem}"))
}

/// Why a disk does not fit.
fn refusal(disk: &Disk, hints: Option<&Hint>, smallest: u64) -> Option<String> {
    if disk.read_only {
        return Some("it is read-only".to_owned());
    }
    if let Some(hints) = hints {
        return hints.mismatch(disk);
    }
    if disk.removable || disk.transport.as_deref() == Some("usb") {
        return Some("it is removable; only a hint can mean it".to_owned());
    }
    (disk.size < smallest).then(|| format!("it has less than {} GiB", smallest >> 30))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn disk(name: &str, gib: u64) -> Disk {
        Disk { name: name.into(), size: gib << 30, ..Disk::default() }
    }

    fn disks() -> Vec<Disk> {
        let text = |text: &str| Some(text.to_owned());
        vec![
            Disk {
                model: text("ACME Fast 9000"),
                vendor: text("ATA"),
                serial: text("S1"),
                wwn: text("0x5000c500a1b2c3d4"),
                hctl: text("0:0:0:0"),
                transport: text("sata"),
                // 894.25 GiB, as disks of "960 GB" have.
                size: (894 << 30) + (1 << 28),
                ..disk("/dev/sda", 0)
            },
            Disk { serial: text("S2"), rotational: true, transport: text("sas"), ..disk("/dev/sdb", 100) },
            Disk { model: text("acme slow"), transport: text("nvme"), ..disk("/dev/nvme0n1", 100) },
        ]
    }

    fn object(hints: Value) -> Map<String, Value> {
        hints.as_object().cloned().unwrap_or_default()
    }

    fn chosen(hints: Value) -> Result<String, String> {
        let disks = disks();
        choose(&disks, &object(hints), Rules::default()).map(|choice| disks[choice.disk].name.clone())
    }

    #[test]
    fn every_key_and_operator_finds_its_disk() {
        for (hints, expected) in [
            (json!({"serial": "s1"}), "/dev/sda"),
            (json!({"serial": "s== S1"}), "/dev/sda"),
            (json!({"serial": "s!= S1"}), "/dev/nvme0n1"),
            (json!({"serial": "s!= S1", "rotational": true}), "/dev/sdb"),
            (json!({"serial": "s> S1"}), "/dev/sdb"),
            (json!({"serial": "s>= S1", "size": "> 100"}), "/dev/sda"),
            (json!({"serial": "s< S2"}), "/dev/sda"),
            (json!({"serial": "s<= S1"}), "/dev/sda"),
            (json!({"serial": "= S1"}), "/dev/sda"),
            (json!({"serial": "<or> S7 <or> S1"}), "/dev/sda"),
            (json!({"model": "<in> fast"}), "/dev/sda"),
            (json!({"model": "<all-in> fast acme"}), "/dev/sda"),
            (json!({"model": "acme slow"}), "/dev/nvme0n1"),
            (json!({"vendor": "ata"}), "/dev/sda"),
            (json!({"size": 894}), "/dev/sda"),
            (json!({"size": "894"}), "/dev/sda"),
            (json!({"size": ">= 890"}), "/dev/sda"),
            (json!({"size": "= 101"}), "/dev/sda"),
            (json!({"size": "<or> 7 <or> 894"}), "/dev/sda"),
            (json!({"size": "!= 100"}), "/dev/sda"),
            (json!({"size": "< 101", "rotational": "false"}), "/dev/nvme0n1"),
            (json!({"size": "<= 100", "rotational": "true"}), "/dev/sdb"),
            (json!({"wwn": "0x5000C500A1B2C3D4"}), "/dev/sda"),
            (json!({"hctl": "0:0:0:0"}), "/dev/sda"),
            (json!({"name": "/dev/sdb"}), "/dev/sdb"),
            (json!({"tran": "nvme"}), "/dev/nvme0n1"),
            (json!({}), "/dev/nvme0n1"),
        ] {
            assert_eq!(chosen(hints.clone()).as_deref(), Ok(expected), "{hints}");
        }
    }

    #[test]
    fn a_rebuild_writes_the_disk_of_the_deployment_before_or_none() {
        let identity = |serial: Option<&str>, wwn: Option<&str>| DiskIdentity {
            serial: serial.map(str::to_owned),
            wwn: wwn.map(str::to_owned),
        };
        let again = |hints: Value, before: DiskIdentity| {
            let disks = disks();
            again(&disks, &object(hints), &before, "the disk").map(|at| disks[at].name.clone())
        };
        let wwn = Some("0x5000c500a1b2c3d4");
        // Without hints the smallest disk would be another.
        for hints in [json!({}), json!({"size": ">= 100"})] {
            assert_eq!(again(hints, identity(Some("S1"), wwn)).as_deref(), Ok("/dev/sda"));
        }
        assert_eq!(again(json!({}), identity(None, wwn)).as_deref(), Ok("/dev/sda"));
        for (hints, before, expected) in [
            (json!({}), identity(Some("S9"), None), "(serial S9, WWN none) is missing"),
            (json!({}), identity(Some("S1"), Some("0x5000c500ffffffff")), "is missing"),
            (json!({}), identity(None, None), "is missing"),
            (json!({"serial": "S2"}), identity(Some("S1"), None), "hints mean: serial S2 (it has \"s1\")"),
            (json!({"colour": "red"}), identity(Some("S1"), None), "colour"),
        ] {
            let problem = again(hints, before).expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        }
        let twins = [disk("/dev/sda", 9), disk("/dev/sdb", 9)]
            .map(|disk| Disk { serial: Some("S1".to_owned()), ..disk });
        let problem = super::again(&twins, &Map::new(), &identity(Some("S1"), None), "it").expect_err("two");
        assert!(problem.contains("not the only one"), "{problem}");
    }

    #[test]
    fn without_a_match_each_disk_says_why() {
        let problem = chosen(json!({"serial": "S9", "size": ">= 1"})).expect_err("none");
        assert_eq!(
            problem,
            "no disk matches the root device hints: /dev/nvme0n1: serial S9 (it has none); /dev/sda: serial S9 (it \
             has \"s1\"); /dev/sdb: serial S9 (it has \"s2\")"
        );
        assert!(chosen(json!({"model": "<in> none"})).is_err(), "a disk without a model is not called none");
    }

    #[test]
    fn what_is_not_understood_chooses_nothing() {
        for (hints, expected) in [
            (json!({"colour": "red"}), "colour"),
            (json!({"by_path": "pci-0"}), "by_path"),
            (json!({"volume_name": "root"}), "volume_name"),
            (json!({"size": "big"}), "size"),
            (json!({"size": "-1"}), "size"),
            (json!({"size": [1]}), "size"),
            (json!({"rotational": "perhaps"}), "rotational"),
            (json!({"model": "<in> "}), "model"),
            (json!({"serial": null}), "serial"),
        ] {
            let problem = chosen(hints).expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn without_hints_only_a_fixed_disk_that_is_large_enough_is_taken() {
        let usb = Disk { transport: Some("usb".into()), ..disk("/dev/sdd", 5) };
        let stick = Disk { removable: true, ..disk("/dev/sde", 5) };
        let locked = Disk { read_only: true, ..disk("/dev/sdf", 5) };
        let mut all = vec![usb, stick, locked, disk("/dev/sdg", 3)];
        let choice = |all: &[Disk], hints: Value| choose(all, &object(hints), Rules::default());
        let problem = choice(&all, json!({})).expect_err("none");
        for expected in
            ["/dev/sdd: it is removable", "/dev/sdf: it is read-only", "/dev/sdg: it has less than 4 GiB"]
        {
            assert!(problem.contains(expected), "{problem}");
        }
        all.extend([disk("/dev/sdc", 9), disk("/dev/sdb", 9), disk("/dev/sda", 10)]);
        // Places 4, 5, 6: sdc, sdb, sda.
        assert_eq!(choice(&all, json!({})), Ok(Choice { disk: 5, others: vec![4, 6] }));
        assert_eq!(choice(&all, json!({"name": "/dev/sde"})), Ok(Choice { disk: 1, others: vec![] }));
        assert!(choice(&[], json!({})).expect_err("none").contains("no disk"));
    }

    #[test]
    fn the_least_size_is_a_rule() {
        let all = [disk("/dev/sda", 3), disk("/dev/sdb", 8)];
        let smallest = |gib: u64| choose(&all, &Map::new(), Rules { smallest: gib << 30, strict: false });
        assert_eq!(smallest(2).map(|choice| choice.disk), Ok(0));
        assert_eq!(smallest(4).map(|choice| choice.disk), Ok(1));
        assert!(smallest(9).expect_err("none").contains("less than 9 GiB"));
    }

    #[test]
    fn strict_rules_refuse_to_choose_among_several() {
        let strict = Rules { strict: true, ..Rules::default() };
        let problem = choose(&disks(), &object(json!({"size": "100"})), strict).expect_err("two");
        assert_eq!(
            problem,
            "2 disks match the root device hints, and root_device_strict allows one only: /dev/nvme0n1 (no serial), \
             /dev/sdb (serial S2)"
        );
        let problem = choose(&disks(), &Map::new(), strict).expect_err("three");
        assert!(problem.starts_with("3 disks can take the image"), "{problem}");
        let one = choose(&disks(), &object(json!({"serial": "S2"})), strict);
        assert_eq!(one, Ok(Choice { disk: 1, others: vec![] }));
    }
}
