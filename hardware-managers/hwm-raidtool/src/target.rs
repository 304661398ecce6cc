//! From a `target_raid_config` in Ironic's words (docs: RAID configuration) to volumes on drives. Pure: everything is
//! decided before the first volume is touched.

use crate::topology::{LEVELS, Topology};
use hwm_sdk::protocol::{LogicalDisk, PhysicalDisk};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

const GIB: u64 = 1 << 30;

/// `target_raid_config`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The volumes.
    pub logical_disks: Vec<Wanted>,
}

/// A volume as it is asked for. What this manager cannot do is refused by name, never left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// `0`, `1`, `5`, `6`, `1+0`, `5+0`, `6+0`.
    pub raid_level: String,
    /// Whole GiB, or `MAX`.
    pub size_gb: Size,
    /// The operating system's.
    #[serde(default)]
    pub is_root_volume: bool,
    /// Its name in the controller; without one it is made up of its place in the list.
    pub volume_name: Option<String>,
    /// `hdd` or `ssd`.
    pub disk_type: Option<String>,
    /// How many drives; without it as few as the level needs.
    pub number_of_physical_disks: Option<usize>,
    /// Which controller.
    pub controller: Option<String>,
    /// Which drives.
    pub physical_disks: Option<Vec<String>>,
}

/// A size.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Size {
    /// Whole GiB.
    Gib(u64),
    /// `MAX`.
    Word(String),
}

/// A volume with its drives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Id of its controller.
    pub controller: String,
    /// Ironic's word.
    pub raid_level: String,
    /// The tool's word: `raid10`.
    pub kind: String,
    /// Ids of its drives.
    pub drives: Vec<String>,
    /// GiB; `None`: all there is.
    pub size_gib: Option<u64>,
    /// The operating system's.
    pub is_root_volume: bool,
}

/// Read a `target_raid_config`.
///
/// # Errors
/// What is wrong with it.
pub fn parse(value: &Value) -> Result<Target, String> {
    if value.as_object().is_none_or(serde_json::Map::is_empty) {
        return Err(
            "the node has none; set it with the verb for RAID configuration, or give raid_config".into()
        );
    }
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

/// Choose drives. A volume of the same name and level that is there keeps its own; `afresh` takes none for kept, and
/// all their drives for free, since they are deleted first.
///
/// # Errors
/// The first volume that cannot be made, and why.
pub fn plan(target: &Target, topology: &Topology, afresh: bool) -> Result<Vec<Volume>, String> {
    let mut used = BTreeSet::new();
    let mut volumes: Vec<Volume> = Vec::new();
    for (index, wanted) in target.logical_disks.iter().enumerate() {
        let kept = if afresh { None } else { kept(index, wanted, topology) };
        let volume = kept.map_or_else(|| place(index, wanted, topology, afresh, &used), Ok);
        let volume = volume.map_err(|problem| format!("logical_disks[{index}] {problem}"))?;
        if volumes.iter().any(|other| other.name == volume.name) {
            return Err(format!(
                "logical_disks[{index}] has a volume_name that another one has: {}",
                volume.name
            ));
        }
        used.extend(volume.drives.iter().map(|drive| (volume.controller.clone(), drive.clone())));
        volumes.push(volume);
    }
    Ok(volumes)
}

fn name(index: usize, wanted: &Wanted) -> String {
    wanted.volume_name.clone().unwrap_or_else(|| format!("volume{index}"))
}

/// The volume as it is there already.
fn kept(index: usize, wanted: &Wanted, topology: &Topology) -> Option<Volume> {
    let name = name(index, wanted);
    let (kind, _) = level(&wanted.raid_level).ok()?;
    let is_it = |disk: &&LogicalDisk| topology.name_of(disk) == name && disk.raid_level == wanted.raid_level;
    let disk = topology.raid.logical_disks.iter().find(is_it)?;
    Some(Volume {
        controller: disk.controller.clone(),
        raid_level: disk.raid_level.clone(),
        kind: kind.to_lowercase(),
        drives: disk.physical_disks.clone(),
        size_gib: None,
        is_root_volume: wanted.is_root_volume,
        name,
    })
}

fn place(
    index: usize,
    wanted: &Wanted,
    topology: &Topology,
    afresh: bool,
    used: &BTreeSet<(String, String)>,
) -> Result<Volume, String> {
    let (kind, needed) = level(&wanted.raid_level)?;
    let size_gib = match &wanted.size_gb {
        Size::Gib(0) => return Err("has size_gb 0".into()),
        Size::Gib(size) => Some(*size),
        Size::Word(word) if word == "MAX" => None,
        Size::Word(_) => return Err("has a size_gb that is neither a number nor MAX".into()),
    };
    let count =
        wanted.physical_disks.as_ref().map(Vec::len).or(wanted.number_of_physical_disks).unwrap_or(needed);
    if count < needed {
        return Err(format!(
            "is RAID {}, which needs at least {needed} drives, not {count}",
            wanted.raid_level
        ));
    }
    if wanted.raid_level.ends_with("+0") && !count.is_multiple_of(2) {
        return Err(format!(
            "is RAID {}, which needs an even number of drives, not {count}",
            wanted.raid_level
        ));
    }
    let ready = |drive: &&PhysicalDisk| {
        let free = drive.state == "ready" || (afresh && drive.state == "online");
        let meant = wanted.physical_disks.as_ref().is_none_or(|ids| ids.contains(&drive.id));
        let fits = wanted.disk_type.is_none() || wanted.disk_type == drive.media;
        free && meant && fits && !used.contains(&(drive.controller.clone(), drive.id.clone()))
    };
    let mut most = 0;
    for controller in &topology.raid.controllers {
        if wanted.controller.as_ref().is_some_and(|id| *id != controller.id) {
            continue;
        }
        let drives = topology.raid.physical_disks.iter().filter(|drive| drive.controller == controller.id);
        let drives: Vec<&PhysicalDisk> = drives.filter(ready).take(count).collect();
        most = most.max(drives.len());
        if drives.len() < count {
            continue;
        }
        let smallest = drives.iter().map(|drive| drive.size_bytes).min().unwrap_or_default();
        let room = data_drives(&wanted.raid_level, count) * (smallest / GIB);
        if size_gib.is_some_and(|size| size > room) {
            return Err(format!("needs more than the {room} GiB that {count} drives give"));
        }
        return Ok(Volume {
            name: name(index, wanted),
            controller: controller.id.clone(),
            raid_level: wanted.raid_level.clone(),
            kind: kind.to_lowercase(),
            drives: drives.iter().map(|drive| drive.id.clone()).collect(),
            size_gib,
            is_root_volume: wanted.is_root_volume,
        });
    }
    let kind = wanted.disk_type.as_ref().map(|kind| format!("{kind} ")).unwrap_or_default();
    Err(format!("needs {count} {kind}drives that are ready on one controller, there are {most}"))
}

/// The tool's word, and how many drives the level needs.
fn level(name: &str) -> Result<(&'static str, usize), String> {
    const LEAST: [usize; 7] = [1, 2, 3, 4, 4, 6, 8];
    let mut known = LEVELS.iter().zip(LEAST);
    let found = known.find(|((_, ironic), _)| *ironic == name).map(|((kind, _), least)| (*kind, least));
    found.ok_or_else(|| format!("has a raid_level that is not known here: {name}"))
}

/// Drives' worth of data; nested levels have two groups.
fn data_drives(level: &str, count: usize) -> u64 {
    let data = match level {
        "0" => count,
        "1" => 1,
        "5" => count - 1,
        "6" => count - 2,
        "1+0" => count / 2,
        "5+0" => count - 2,
        _ => count - 4,
    };
    data as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hwm_sdk::protocol::{Raid, RaidController};
    use serde_json::json;

    fn topology() -> Topology {
        let controller = |id: &str| RaidController { id: id.into(), ..RaidController::default() };
        let drive = |(id, controller, gib, state, media): (&str, &str, u64, &str, &str)| PhysicalDisk {
            id: id.into(),
            controller: controller.into(),
            size_bytes: gib * GIB,
            state: state.into(),
            media: Some(media.into()),
            ..PhysicalDisk::default()
        };
        let drives = [
            ("a", "0", 100, "ready", "ssd"),
            ("b", "0", 80, "online", "ssd"),
            ("c", "0", 200, "failed", "hdd"),
            ("a", "1", 500, "ready", "hdd"),
            ("b", "1", 600, "ready", "hdd"),
            ("c", "1", 600, "ready", "hdd"),
            ("d", "1", 600, "ready", "ssd"),
        ];
        let raid = Raid {
            controllers: vec![controller("0"), controller("1")],
            physical_disks: drives.map(drive).to_vec(),
            logical_disks: Vec::new(),
        };
        Topology { raid, ..Topology::default() }
    }

    fn placed(disks: Value, afresh: bool) -> Result<Vec<String>, String> {
        let target = parse(&json!({ "logical_disks": disks }))?;
        let text = |volume: Volume| {
            format!(
                "{} {} c{} {} {:?}",
                volume.name,
                volume.kind,
                volume.controller,
                volume.drives.join(","),
                volume.size_gib
            )
        };
        Ok(plan(&target, &topology(), afresh)?.into_iter().map(text).collect())
    }

    #[test]
    fn volumes_get_drives_that_are_free_on_one_controller() {
        let disks = json!([
            {"raid_level": "5", "size_gb": 1000, "disk_type": "hdd", "volume_name": "data"},
            {"raid_level": "0", "size_gb": "MAX", "is_root_volume": true},
        ]);
        assert_eq!(
            placed(disks, false).unwrap(),
            ["data raid5 c1 a,b,c Some(1000)", "volume1 raid0 c0 a None"]
        );
        let mirror = json!([{"raid_level": "1", "size_gb": "MAX", "controller": "0"}]);
        assert_eq!(
            placed(mirror.clone(), false).unwrap_err(),
            "logical_disks[0] needs 2 drives that are ready on one controller, there are 1"
        );
        assert_eq!(placed(mirror, true).unwrap(), ["volume0 raid1 c0 a,b None"]);
        let named = json!([{"raid_level": "1+0", "size_gb": 1, "physical_disks": ["d", "b", "a", "c"]}]);
        assert_eq!(placed(named, false).unwrap(), ["volume0 raid10 c1 a,b,c,d Some(1)"]);
    }

    #[test]
    fn what_cannot_be_made_is_refused_by_name() {
        for (disk, expected) in [
            (json!({"raid_level": "7", "size_gb": 1}), "raid_level that is not known here: 7"),
            (
                json!({"raid_level": "5", "size_gb": 1, "number_of_physical_disks": 2}),
                "needs at least 3 drives, not 2",
            ),
            (
                json!({"raid_level": "1+0", "size_gb": 1, "number_of_physical_disks": 5}),
                "even number of drives, not 5",
            ),
            (
                json!({"raid_level": "5", "size_gb": 1001, "controller": "1"}),
                "more than the 1000 GiB that 3 drives give",
            ),
            (json!({"raid_level": "0", "size_gb": 0}), "size_gb 0"),
            (json!({"raid_level": "0", "size_gb": "all"}), "neither a number nor MAX"),
            (json!({"raid_level": "0", "size_gb": 1, "controller": "9"}), "there are 0"),
            (
                json!({"raid_level": "0", "size_gb": 1, "share_physical_disks": true}),
                "unknown field `share_physical_disks`",
            ),
        ] {
            let error = placed(json!([disk]), false).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        let twice = json!([{"raid_level": "0", "size_gb": 1, "volume_name": "a"}, {"raid_level": "0", "size_gb": 1, "volume_name": "a"}]);
        assert!(placed(twice, false).unwrap_err().contains("volume_name that another one has"));
        assert!(parse(&json!({})).unwrap_err().contains("has none") && parse(&json!(null)).is_err());
    }
}
