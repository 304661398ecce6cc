//! Maps of several paths to one disk (`dm-multipath`): which of them a disk is erased through.
//!
//! Through the map it is one disk, whichever of its paths is up. A map that is of no use is taken down like any other
//! volume, and the disk is erased over its first path.

use crate::disk::{Disk, Holder, HolderKind};
use crate::sys;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A map that a disk is erased through.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Map {
    /// Kernel name, `dm-0`.
    pub name: String,
    /// Device node.
    pub path: PathBuf,
    /// Device number, `major:minor`.
    pub dev: (u32, u32),
}

/// The map of the disk, where it is healthy: running, as large as the disk, over paths of this disk alone, at least one
/// of which the kernel uses. A map without any would block reads without limit.
pub(crate) fn find(disk: &Disk) -> Option<Map> {
    let map = candidate(disk)?;
    let control = disk.path.with_file_name("mapper").join("control");
    let status = File::open(control)
        .and_then(|control| target_status(&sys::teardown::table_status(&control, map.dev)?));
    usable(map, status)
}

/// The map, if this status of its target has a path that is up.
fn usable(map: Map, status: io::Result<String>) -> Option<Map> {
    match status {
        Ok(status) if active_paths(&status) > 0 => Some(map),
        Ok(status) => {
            tracing::warn!(map = map.name, status, "the multipath map has no path that is up");
            None
        }
        Err(error) => {
            tracing::warn!(map = map.name, %error, "cannot read the state of the multipath map's paths");
            None
        }
    }
}

/// What sysfs says of it.
fn candidate(disk: &Disk) -> Option<Map> {
    let is_map = |holder: &&Holder| matches!(holder.kind, HolderKind::Multipath(_));
    let paths: BTreeSet<&String> = disk.other_paths.iter().chain([&disk.name]).collect();
    let mut maps = disk.all_holders().into_iter().filter(is_map);
    let map = maps.next()?;
    let fits = !map.suspended
        && map.size == disk.size
        && map.below.iter().all(|below| paths.contains(below))
        && maps.all(|other| other.name == map.name);
    fits.then(|| Map { name: map.name.clone(), path: map.path.clone(), dev: map.dev })
}

/// How many paths a map uses, by the status of its target in the words of the kernel (`multipath_status` of
/// `drivers/md/dm-mpath.c`): numbers of arguments before the arguments, then groups of paths, each path with `A` or `F`.
fn active_paths(status: &str) -> usize {
    paths(&mut status.split_whitespace()).unwrap_or(0)
}

fn paths<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<usize> {
    let mut active = 0;
    let features = number(words)?;
    skip(words, features)?;
    let handler = number(words)?;
    skip(words, handler)?;
    let (groups, _next) = (number(words)?, words.next()?);
    for _ in 0..groups {
        let _state = words.next()?;
        let selector = number(words)?;
        skip(words, selector)?;
        let (paths, arguments) = (number(words)?, number(words)?);
        for _ in 0..paths {
            let (_device, state, _failures) = (words.next()?, words.next()?, words.next()?);
            active += usize::from(state == "A");
            skip(words, arguments)?;
        }
    }
    Some(active)
}

fn number<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<usize> {
    words.next()?.parse().ok()
}

fn skip<'a>(words: &mut impl Iterator<Item = &'a str>, count: usize) -> Option<()> {
    (0..count).try_for_each(|_| words.next().map(drop))
}

/// The status of the one target of a map, from the answer to `DM_TABLE_STATUS`.
fn target_status(answer: &[u8]) -> io::Result<String> {
    let number = |at: usize| -> Option<usize> {
        usize::try_from(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?)).ok()
    };
    let text = || {
        let (start, one) = (number(16)?, number(20)? == 1);
        // `struct dm_target_spec`: start, length, status, next, type of 16 bytes; then its status.
        let target = answer.get(start..).filter(|_| one)?;
        let (kind, rest) = (target.get(24..40)?, target.get(40..)?);
        let status = rest.split(|&byte| byte == 0).next()?;
        kind.starts_with(b"multipath\0").then(|| String::from_utf8_lossy(status).into_owned())
    };
    text().ok_or_else(|| io::Error::other("it is no map of one multipath target"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Two groups, one path each, selector `service-time` with two arguments for each path.
    const STATUS: &str = "2 0 0 0 2 1 A 0 1 2 8:16 A 0 0 1 E 0 1 2 8:32 A 1 0 1 ";

    #[test]
    fn paths_that_are_up_are_counted_as_the_kernel_reports_them() {
        assert_eq!(active_paths(STATUS), 2);
        assert_eq!(active_paths(&STATUS.replace("8:16 A", "8:16 F")), 1);
        assert_eq!(active_paths(&STATUS.replace(" A 0 0 1", " F 0 0 1").replace("8:32 A", "8:32 F")), 0);
        assert_eq!(active_paths("2 0 1 1 alua 1 1 A 0 2 0 8:0 F 3 8:16 A 0"), 1, "a hardware handler");
        assert_eq!(active_paths("2 0 1 1 alua 1 A 0 2 0 8:0 F 3 8:16 A 0"), 0, "too short");
        assert_eq!(
            active_paths("2 0 1 0 1 1 A 0 2 0 8:0 F 3 8:16 A 0"),
            1,
            "a path selector without arguments"
        );
        assert_eq!(active_paths(""), 0);
    }

    /// `struct dm_ioctl` with its data at 312, `struct dm_target_spec`, and its status.
    #[test]
    fn the_status_is_that_of_one_multipath_target() {
        let status = |targets: u32, kind: &[u8]| {
            let mut answer = vec![0; 400];
            answer[16..20].copy_from_slice(&312_u32.to_ne_bytes());
            answer[20..24].copy_from_slice(&targets.to_ne_bytes());
            answer[312 + 24..][..kind.len()].copy_from_slice(kind);
            answer[312 + 40..][..5].copy_from_slice(b"2 0 0");
            target_status(&answer).ok()
        };
        assert_eq!(status(1, b"multipath").as_deref(), Some("2 0 0"));
        let others = [
            status(2, b"multipath"),
            status(0, b"multipath"),
            status(1, b"linear"),
            status(1, b"multipath2"),
        ];
        assert_eq!(others, [const { None }; 4]);
    }

    #[test]
    fn a_map_without_a_path_that_is_up_or_whose_paths_are_unknown_is_not_used() {
        let map = || Map { name: "dm-0".into(), ..Map::default() };
        assert_eq!(usable(map(), Ok(STATUS.to_owned())), Some(map()));
        let down = STATUS.replace(" A 0 0 1", " F 0 0 1").replace("8:32 A", "8:32 F");
        for status in [Ok(down), Ok(String::new()), Err(io::ErrorKind::NotFound.into())] {
            assert_eq!(usable(map(), status), None);
        }
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_parsers_panic(status in "[0-9AFE: ]{0,80}", answer: Vec<u8>) {
            active_paths(&status);
            let _ = target_status(&answer);
        }
    }

    #[test]
    fn a_map_is_used_only_when_it_is_of_this_disk_alone_and_runs() {
        let map = |below: &[&str]| Holder {
            name: "dm-0".into(),
            kind: HolderKind::Multipath("mpatha".into()),
            path: "/dev/dm-0".into(),
            dev: (253, 0),
            size: 1 << 20,
            below: below.iter().map(|&name| name.to_owned()).collect(),
            ..Holder::default()
        };
        let disk = |holders: Vec<Holder>| Disk {
            name: "sda".into(),
            other_paths: vec!["sdb".into()],
            size: 1 << 20,
            holders,
            ..Disk::default()
        };
        let whole = map(&["sda", "sdb"]);
        let found = candidate(&disk(vec![whole.clone(), whole.clone()])).unwrap();
        assert_eq!((found.name.as_str(), found.dev), ("dm-0", (253, 0)));
        let suspended = Holder { suspended: true, ..whole.clone() };
        let smaller = Holder { size: 1 << 19, ..whole.clone() };
        let second = Holder { name: "dm-1".into(), ..whole.clone() };
        let other = Holder { kind: HolderKind::Lvm("vg-a".into()), ..whole.clone() };
        for holders in [
            vec![],
            vec![suspended],
            vec![smaller],
            vec![map(&["sda", "sdc"])],
            vec![whole, second],
            vec![other],
        ] {
            assert_eq!(candidate(&disk(holders.clone())), None, "{holders:?}");
        }
    }
}
