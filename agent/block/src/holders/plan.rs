//! In which order, and whether at all. Pure.

use super::TeardownStep;
use crate::disk::{Disk, Holder, HolderKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A volume with everything about it that is known over any of its disks.
struct Volume<'a> {
    holder: &'a Holder,
    /// Kernel names of what it is built on.
    below: BTreeSet<&'a str>,
}

/// What has to be taken down so that the `wanted` disks can be erased, in this order; and for each disk what keeps that
/// from being done. Nothing that also uses a disk that is not wanted, or not known, is taken down. The volumes of these names
/// stay up, and only what is built on them goes.
pub(crate) fn plan(
    disks: &[&Disk],
    wanted: &[bool],
    stay: &BTreeSet<&str>,
) -> (Vec<TeardownStep>, Vec<Option<String>>) {
    let volumes = volumes(disks);
    let mut index: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, disk) in disks.iter().enumerate() {
        index.insert(&disk.name, at);
        index.extend(disk.other_paths.iter().map(|path| (path.as_str(), at)));
    }
    let bases: BTreeMap<&str, BTreeSet<&str>> =
        volumes.keys().map(|name| (*name, base(name, &volumes))).collect();
    let order = order(&volumes);

    let mut obstacles: Vec<Option<String>> = disks.iter().map(|disk| root(&disk.all_mounts())).collect();
    for (name, volume) in &volumes {
        let found = obstacle(volume.holder).or_else(|| {
            let unknown = bases[name].iter().find(|disk| !index.contains_key(*disk));
            unknown.map(|disk| format!("{} is also on {disk}, which is not to be erased", volume.holder))
        });
        let cyclic = || (!order.contains(name)).then(|| format!("{} is built on itself", volume.holder));
        if let Some(words) = found.or_else(cyclic) {
            for at in bases[name].iter().filter_map(|disk| index.get(disk)) {
                obstacles[*at].get_or_insert_with(|| words.clone());
            }
        }
    }
    // What keeps one disk of a volume keeps them all, and so on through the other volumes of these.
    let kept = |at: usize, obstacles: &[Option<String>]| !wanted[at] || obstacles[at].is_some();
    loop {
        let before = obstacles.clone();
        for (name, volume) in &volumes {
            let members: Vec<usize> =
                bases[name].iter().filter_map(|disk| index.get(disk).copied()).collect();
            let Some(keeper) = members.iter().find(|&&at| kept(at, &obstacles)) else { continue };
            let words =
                format!("{} is also on {}, which is not to be erased", volume.holder, disks[*keeper].name);
            for at in members.iter().filter(|at| *at != keeper) {
                obstacles[*at].get_or_insert_with(|| words.clone());
            }
        }
        if before == obstacles {
            break;
        }
    }

    let goes = |at: usize| !kept(at, &obstacles);
    let going: Vec<&Holder> = order
        .iter()
        .filter(|name| bases[*name].iter().any(|disk| index.get(disk).is_some_and(|&at| goes(at))))
        .filter(|name| !stay.contains(*name))
        .map(|name| volumes[name].holder)
        .collect();
    let disks: Vec<&Disk> =
        disks.iter().enumerate().filter(|(at, _)| goes(*at)).map(|(_, disk)| *disk).collect();
    let steps = uses(&disks).into_iter().chain(going.into_iter().filter_map(stop)).collect();
    // A disk that is not wanted has its own reasons.
    let own = |(obstacle, wanted): (Option<String>, &bool)| obstacle.filter(|_| *wanted);
    (steps, obstacles.into_iter().zip(wanted).map(own).collect())
}

/// Every volume above the disks, once.
fn volumes<'a>(disks: &[&'a Disk]) -> BTreeMap<&'a str, Volume<'a>> {
    let mut volumes: BTreeMap<&str, Volume> = BTreeMap::new();
    let mut add = |parent: &'a str, holder: &'a Holder| {
        let below = holder.below.iter().map(String::as_str);
        let volume = volumes.entry(&holder.name).or_insert_with(|| Volume { holder, below: BTreeSet::new() });
        volume.below.extend(below.chain([parent]));
    };
    for disk in disks {
        for holder in disk.all_holders() {
            add(&disk.name, holder);
            for lower in holder.with_all_above() {
                lower.holders.iter().for_each(|upper| add(&lower.name, upper));
            }
        }
    }
    volumes
}

/// What a volume is in the end built on: disks, and whatever is known by its name only.
fn base<'a>(name: &'a str, volumes: &BTreeMap<&'a str, Volume<'a>>) -> BTreeSet<&'a str> {
    let (mut found, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![name]);
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            continue;
        }
        match volumes.get(name) {
            Some(volume) => open.extend(&volume.below),
            None => {
                found.insert(name);
            }
        }
    }
    found
}

/// Each volume before those that it is built on.
fn order<'a>(volumes: &BTreeMap<&'a str, Volume<'a>>) -> Vec<&'a str> {
    let (mut order, mut left): (Vec<&str>, BTreeSet<&str>) = (Vec::new(), volumes.keys().copied().collect());
    while let Some(&top) =
        left.iter().find(|name| !left.iter().any(|other| volumes[other].below.contains(**name)))
    {
        left.remove(top);
        order.push(top);
    }
    order
}

/// What makes a volume one that cannot be taken down.
fn obstacle(holder: &Holder) -> Option<String> {
    if holder.suspended {
        return Some(format!("{holder} is suspended, so that nothing is known of what it holds"));
    }
    if holder.kind == HolderKind::Other {
        return Some(format!("{holder} is of a kind that this agent cannot stop"));
    }
    None
}

/// What a running system cannot do without.
fn root(mounts: &[(String, PathBuf)]) -> Option<String> {
    let (what, _) = mounts.iter().find(|(_, at)| at == Path::new("/"))?;
    Some(format!("{what} is the root file system"))
}

/// Swap and mounts, on the disks and on all that is built on them: swap first, deep mounts before those they are in.
fn uses(disks: &[&Disk]) -> Vec<TeardownStep> {
    let swaps: BTreeSet<String> = disks.iter().flat_map(|disk| disk.all_swap()).collect();
    let mut mounts = Vec::new();
    for mount in disks.iter().flat_map(|disk| disk.all_mounts()) {
        if !mounts.contains(&mount) {
            mounts.push(mount);
        }
    }
    mounts.sort_by_key(|(_, at)| std::cmp::Reverse(at.components().count()));
    let swaps = swaps.into_iter().map(|what| TeardownStep::SwapOff { what });
    swaps.chain(mounts.into_iter().map(|(what, at)| TeardownStep::Unmount { what, at })).collect()
}

/// How a volume is stopped. A partition goes with its volume.
fn stop(holder: &Holder) -> Option<TeardownStep> {
    let what = holder.name.clone();
    match &holder.kind {
        HolderKind::Md(level) => Some(TeardownStep::StopArray { what, level: level.clone() }),
        HolderKind::Lvm(name) | HolderKind::Multipath(name) | HolderKind::DeviceMapper(name) => {
            Some(TeardownStep::Remove { what, name: name.clone(), dev: holder.dev })
        }
        HolderKind::Bcache => Some(TeardownStep::StopBcache { what }),
        HolderKind::Partition | HolderKind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Volume `v{at}` as a tree, built on what `below` says, itself a list for each volume.
    fn volume(at: usize, below: &[BTreeSet<usize>], kinds: &[u8]) -> Holder {
        let name = |number: &usize| match number {
            0..4 => format!("d{number}"),
            4 => "elsewhere".to_owned(),
            _ => format!("v{}", number - 5),
        };
        let holders = (at + 1..below.len()).filter(|upper| below[*upper].contains(&(at + 5)));
        Holder {
            name: format!("v{at}"),
            kind: match kinds[at] {
                0 => HolderKind::Other,
                1 => HolderKind::Lvm(format!("vg-{at}")),
                _ => HolderKind::Md("raid1".into()),
            },
            mounts: if kinds[at] == 3 { vec![PathBuf::from(format!("/m/{at}"))] } else { Vec::new() },
            swap: kinds[at] == 4,
            below: below[at].iter().map(name).collect(),
            holders: holders.map(|upper| volume(upper, below, kinds)).collect(),
            ..Holder::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn all_or_nothing_of_a_disk_goes_topmost_first_and_nothing_of_others(
            wanted in prop::collection::vec(prop::bool::weighted(0.8), 4),
            // What each of up to six volumes is built on: 0 to 3 disks, 4 one that is not listed, 5 and on volumes.
            below in prop::collection::vec(prop::collection::btree_set(0usize..11, 1..4), 0..6),
            kinds in prop::collection::vec(prop_oneof![1 => 0u8..1, 9 => 1u8..5], 6),
            root in prop::option::weighted(0.2, 0usize..4),
        ) {
            let below: Vec<BTreeSet<usize>> = below.into_iter().enumerate().map(|(at, set)| {
                // Nothing is built on what comes later, and on no volume alone that has no disk.
                set.into_iter().filter(|&b| b < at + 5).chain([at % 4].into_iter().filter(|_| at < 2)).collect()
            }).collect();
            let disks: Vec<Disk> = (0..4).map(|disk| Disk {
                name: format!("d{disk}"),
                holders: (0..below.len()).filter(|at| below[*at].contains(&disk))
                    .map(|at| volume(at, &below, &kinds)).collect(),
                mounts: if root == Some(disk) { vec!["/".into()] } else { Vec::new() },
                ..Disk::default()
            }).collect();
            let list: Vec<&Disk> = disks.iter().collect();
            let (steps, obstacles) = plan(&list, &wanted, &BTreeSet::new());
            let place = |name: &str| steps.iter().position(|step| match step {
                TeardownStep::StopArray { what, .. } | TeardownStep::Remove { what, .. } => what == name,
                _ => false,
            });
            for (at, disk) in disks.iter().enumerate() {
                let free = wanted[at] && obstacles[at].is_none();
                prop_assert!(!free || root != Some(at));
                prop_assert!(wanted[at] || obstacles[at].is_none());
                for volume in disk.holders.iter().flat_map(Holder::with_all_above) {
                    // Everything above a disk that is to be erased goes, and nothing above one that is kept.
                    prop_assert_eq!(place(&volume.name).is_some(), free, "{} on {}", volume, disk.name);
                    prop_assert!(!free || (volume.kind != HolderKind::Other
                        && !volume.below.contains(&"elsewhere".to_owned())));
                    for upper in &volume.holders {
                        prop_assert!(place(&upper.name) <= place(&volume.name));
                        prop_assert!(!free || place(&upper.name) != place(&volume.name));
                    }
                    let used = |step: &TeardownStep| match step {
                        TeardownStep::SwapOff { what } => volume.swap && *what == volume.name,
                        TeardownStep::Unmount { what, .. } => *what == volume.name,
                        _ => false,
                    };
                    let uses = steps.iter().filter(|step| used(step)).count();
                    prop_assert_eq!(uses, usize::from(free) * (usize::from(volume.swap) + volume.mounts.len()));
                    prop_assert!(steps.iter().position(used) < place(&volume.name).or(Some(usize::MAX)));
                }
            }
            let stops = steps.iter().filter(|step| matches!(step, TeardownStep::StopArray { .. } | TeardownStep::Remove { .. }));
            let names: BTreeSet<String> = steps.iter().map(ToString::to_string).collect();
            prop_assert_eq!(names.len(), steps.len(), "each once");
            prop_assert!(stops.count() <= below.len());
        }
    }

    #[test]
    fn deep_mounts_go_first_and_paths_of_one_disk_are_one_disk() {
        let map = Holder {
            name: "dm-0".into(),
            kind: HolderKind::Multipath("mpatha".into()),
            below: vec!["sda".into(), "sdb".into()],
            mounts: vec!["/a".into(), "/a/b".into()],
            ..Holder::default()
        };
        let disk = Disk {
            name: "sda".into(),
            other_paths: vec!["sdb".into()],
            holders: vec![map.clone(), map],
            ..Disk::default()
        };
        let planned = |stay: &[&str]| {
            let (steps, obstacles) = plan(&[&disk], &[true], &stay.iter().copied().collect());
            (steps.iter().map(ToString::to_string).collect::<Vec<String>>(), obstacles)
        };
        let (words, obstacles) = planned(&[]);
        let expected = ["mount of dm-0 at /a/b", "mount of dm-0 at /a", "device-mapper device mpatha (dm-0)"];
        assert_eq!((words, obstacles), (expected.map(str::to_owned).to_vec(), vec![None]));
        let used = expected[..2].iter().map(|&words| words.to_owned()).collect();
        assert_eq!(planned(&["dm-0"]), (used, vec![None]), "what is on a map goes, and the map stays");
    }
}
