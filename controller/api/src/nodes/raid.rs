//! `PUT /v1/nodes/{ident}/states/raid`: the RAID configuration that the next step of the RAID interface makes; and
//! what may be said of a logical disk.

use super::rules;
use crate::body::python;
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::write;
use axum::extract::Path;
use serde_json::{Map, Value};

const LEVELS: [&str; 9] = ["JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"];

/// Properties of a logical disk with what they mean, in Ironic's names.
pub const DISK: [(&str, &str); 10] = [
    ("raid_level", "RAID level: JBOD, 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0. Required."),
    ("size_gb", "Size in GiB, a whole number; 'MAX' for all the space that is left. Required."),
    ("volume_name", "Name of the volume; made up when it is left out. Optional."),
    ("is_root_volume", "Whether this is the root volume; at most one disk is. Optional, by default False."),
    (
        "share_physical_disks",
        "Whether other logical disks may use the same physical disks. Optional, by default False.",
    ),
    ("disk_type", "Kind of the physical disks: 'hdd' or 'ssd'. Optional, by default any."),
    ("interface_type", "Interface of the physical disks: 'sata', 'scsi' or 'sas'. Optional, by default any."),
    (
        "number_of_physical_disks",
        "How many physical disks to use. Optional, by default as few as the level needs.",
    ),
    ("controller", "RAID controller to use. Optional, by default one that fits."),
    ("physical_disks", "Physical disks to use, with their controller. Optional, by default some that fit."),
];

/// `PUT …/states/raid`. An empty configuration takes an earlier one away.
pub async fn set(Path(ident): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let Value::Object(target) = call.json()? else {
        let given = python(&call.json()?);
        return Err(ApiError::invalid(format!(
            "Expected types <class 'dict'> for target_raid_config: {given}"
        )));
    };
    let node = call.node(&ident).await?;
    call.version.needs(12)?;
    if !target.is_empty() {
        // A RAID interface is not every driver's: Ironic says 404 here.
        rules::implemented(&call.app, &node, "raid").map_err(|error| ApiError::client(404, error.message))?;
        check(&target).map_err(|why| ApiError::invalid(format!("RAID config validation error: {why}")))?;
    }
    write::change_unlocked(&call, &ident, |node| {
        let mut node = node.clone();
        if target.is_empty() {
            node.other.remove("target_raid_config");
        } else {
            node.other.insert("target_raid_config".into(), target.clone().into());
        }
        Ok((node, Vec::new()))
    })
    .await?;
    Ok(empty(204, None))
}

/// Whether a configuration is one; `Err` says why not.
fn check(config: &Map<String, Value>) -> Result<(), String> {
    let Some(disks) = config.get("logical_disks") else {
        return Err("'logical_disks' is a required property".into());
    };
    if let Some(stranger) = config.keys().find(|name| *name != "logical_disks") {
        return Err(format!("Additional properties are not allowed ('{stranger}' was unexpected)"));
    }
    let disks = disks.as_array().ok_or_else(|| format!("{} is not of type 'array'", python(disks)))?;
    if disks.is_empty() {
        return Err("[] should be non-empty".into());
    }
    for disk in disks {
        let fields = disk.as_object().ok_or_else(|| format!("{} is not of type 'object'", python(disk)))?;
        check_disk(fields)?;
    }
    let roots = disks.iter().filter(|disk| disk.get("is_root_volume") == Some(&Value::Bool(true))).count();
    if roots > 1 {
        return Err(format!(
            "Raid config cannot have more than one root volume. {roots} root volumes were specified"
        ));
    }
    Ok(())
}

fn check_disk(disk: &Map<String, Value>) -> Result<(), String> {
    for name in ["raid_level", "size_gb"] {
        if !disk.contains_key(name) {
            return Err(format!("'{name}' is a required property"));
        }
    }
    for (name, value) in disk {
        let word = |words: &[&str]| value.as_str().is_some_and(|text| words.contains(&text));
        let all = |is: fn(&Value) -> bool, least: usize| {
            value.as_array().is_some_and(|items| items.len() >= least && items.iter().all(is))
        };
        let sound = match name.as_str() {
            "raid_level" => word(&LEVELS),
            "size_gb" => value.as_u64().is_some() || word(&["MAX"]),
            "volume_name" | "controller" => value.is_string(),
            "is_root_volume" | "share_physical_disks" => value.is_boolean(),
            "disk_type" => word(&["hdd", "ssd"]),
            "interface_type" => word(&["sata", "scsi", "sas"]),
            "number_of_physical_disks" => value.as_u64().is_some_and(|number| number > 0),
            "physical_disks" => all(Value::is_string, 0) || all(Value::is_object, 2),
            _ => return Err(format!("Additional properties are not allowed ('{name}' was unexpected)")),
        };
        if !sound {
            return Err(format!("{} is not a valid {name}", python(value)));
        }
    }
    if disk.contains_key("physical_disks") && !disk.contains_key("controller") {
        return Err("'controller' is a dependency of 'physical_disks'".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn configurations() {
        let check = |config: Value| check(config.as_object().expect("an object"));
        let disk = |more: Value| {
            let mut disk = json!({"raid_level": "1", "size_gb": 100});
            disk.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!({"logical_disks": [disk]})
        };
        for sound in [
            disk(json!({})),
            disk(
                json!({"size_gb": "MAX", "is_root_volume": true, "disk_type": "ssd", "interface_type": "sas"}),
            ),
            disk(json!({"controller": "c", "physical_disks": ["a"], "number_of_physical_disks": 2})),
            disk(json!({"controller": "software", "physical_disks": [{"size": "> 100"}, {"size": "> 100"}]})),
        ] {
            assert_eq!(check(sound.clone()), Ok(()), "{sound}");
        }
        let root = json!({"raid_level": "1", "size_gb": 1, "is_root_volume": true});
        for (bad, says) in [
            (json!({"disks": []}), "'logical_disks' is a required property"),
            (json!({"logical_disks": [], "x": 1}), "'x' was unexpected"),
            (json!({"logical_disks": []}), "should be non-empty"),
            (json!({"logical_disks": [3]}), "not of type 'object'"),
            (json!({"logical_disks": [{"raid_level": "1"}]}), "'size_gb' is a required"),
            (json!({"logical_disks": [root, root]}), "2 root volumes"),
            (disk(json!({"raid_level": "7"})), "'7' is not a valid raid_level"),
            (disk(json!({"size_gb": -1})), "size_gb"),
            (disk(json!({"number_of_physical_disks": 0})), "number_of"),
            (disk(json!({"physical_disks": ["a"]})), "'controller' is a dependency"),
            (disk(json!({"physical_disks": [{}], "controller": "c"})), "physical_disks"),
            (disk(json!({"colour": "red"})), "'colour' was unexpected"),
        ] {
            let why = check(bad.clone()).unwrap_err();
            assert!(why.contains(says), "{bad}: {why}");
        }
    }

    #[test]
    fn every_property_that_is_described_is_known() {
        for (name, _) in DISK {
            let mut disk = Map::from_iter([("raid_level".into(), "1".into()), ("size_gb".into(), 1.into())]);
            disk.insert(name.into(), json!({"odd": 1}));
            assert!(!check_disk(&disk).unwrap_err().contains("unexpected"), "{name}");
        }
    }
}
