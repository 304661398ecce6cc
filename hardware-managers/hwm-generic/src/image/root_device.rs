//! Which disk gets the operating system. Pure.

use super::root_hint::parse;
use block::{Disk, Hint};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;

/// Without hints no smaller disk is taken, as in Ironic.
const SMALLEST: u64 = 4 << 30;

/// The disk that the hints mean; without hints the smallest fixed one of at least 4 GiB. Of several the smallest, then
/// the first by path.
///
/// # Errors
/// Hints that are not understood, or of each disk why it is not meant.
pub(super) fn choose<'a>(disks: &'a [Disk], hints: &Map<String, Value>) -> Result<&'a Disk, String> {
    choose_of(disks, hints, SMALLEST)
}

fn choose_of<'a>(disks: &'a [Disk], hints: &Map<String, Value>, smallest: u64) -> Result<&'a Disk, String> {
    let hints = parse(hints)?;
    let judged = disks.iter().map(|disk| (disk, refusal(disk, hints.as_ref(), smallest)));
    let (fitting, others): (Vec<_>, Vec<_>) = judged.partition(|(_, why)| why.is_none());
    let chosen = fitting
        .into_iter()
        .map(|(disk, _)| disk)
        .min_by(|a, b| a.size.cmp(&b.size).then_with(|| a.path.cmp(&b.path)));
    chosen.ok_or_else(|| {
        let mut why: Vec<String> = others
            .iter()
            .map(|(disk, why)| format!("{}: {}", disk.path.display(), why.as_deref().unwrap_or_default()))
            .collect();
        why.sort();
        match (why.is_empty(), hints.is_none()) {
            (true, _) => "there is no disk to write an image to".to_owned(),
            (_, true) => format!("no disk can take an image: {}", why.join("; ")),
            (_, false) => format!("no disk matches the root device hints: {}", why.join("; ")),
        }
    })
}

/// What identifies a disk, whatever its name is after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskIdentity {
    serial: Option<String>,
    wwn: Option<String>,
}

impl DiskIdentity {
    /// Both where both are known: two disks may have the same serial number.
    fn is_of(&self, disk: &Disk) -> bool {
        let same = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        same(&self.serial, &disk.serial) && same(&self.wwn, &disk.wwn)
    }
}

impl fmt::Display for DiskIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        write!(f, "serial {}, WWN {}", word(&self.serial), word(&self.wwn))
    }
}

/// The disk of the deployment before. Hints, if there are any, must mean it, too.
///
/// # Errors
/// It is missing, several are like it, or it is not what the hints mean: no other is written in its place.
pub(super) fn again<'a>(
    disks: &'a [Disk],
    hints: &Map<String, Value>,
    before: &DiskIdentity,
) -> Result<&'a Disk, String> {
    let hints = parse(hints)?;
    let known = before.serial.is_some() || before.wwn.is_some();
    let alike: Vec<&Disk> = disks.iter().filter(|disk| known && before.is_of(disk)).collect();
    let [disk] = alike.as_slice() else {
        let count = if alike.is_empty() { "missing" } else { "not the only one of its identity" };
        return Err(format!("the disk of the deployment before ({before}) is {count}"));
    };
    let other = hints.as_ref().and_then(|hints| hints.mismatch(disk));
    let problem = match other {
        Some(why) => format!("is not what the root device hints mean: {why}"),
        None if disk.read_only => "is read-only".to_owned(),
        None => return Ok(disk),
    };
    Err(format!("the disk of the deployment before ({before}) {problem}"))
}

/// Why a disk is not meant.
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

    fn disk(path: &str, gib: u64) -> Disk {
        Disk { path: path.into(), size: gib << 30, logical_block: 512, ..Disk::default() }
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

    fn chosen(hints: Value) -> Result<String, String> {
        let hints = hints.as_object().cloned().unwrap_or_default();
        choose(&disks(), &hints).map(|disk| disk.path.display().to_string())
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
            let hints = hints.as_object().cloned().unwrap_or_default();
            again(&disks(), &hints, &before).map(|disk| disk.path.display().to_string())
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
        let problem = super::again(&twins, &Map::new(), &identity(Some("S1"), None)).expect_err("two");
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
        let problem = choose(&all, &Map::new()).expect_err("none");
        for expected in
            ["/dev/sdd: it is removable", "/dev/sdf: it is read-only", "/dev/sdg: it has less than 4 GiB"]
        {
            assert!(problem.contains(expected), "{problem}");
        }
        all.extend([disk("/dev/sdc", 9), disk("/dev/sdb", 9), disk("/dev/sda", 10)]);
        assert_eq!(choose(&all, &Map::new()).expect("one").path.to_str(), Some("/dev/sdb"));
        let hinted = json!({"name": "/dev/sde"}).as_object().cloned().expect("an object");
        assert_eq!(choose(&all, &hinted).expect("hinted").path.to_str(), Some("/dev/sde"));
        assert!(choose(&[], &Map::new()).expect_err("none").contains("no disk"));
    }
}
