//! `PUT /v1/nodes/{ident}/states/raid`: the RAID configuration that the next step of the RAID interface makes; and
//! what may be said of a logical disk.

use super::validation;
use crate::body::python;
use crate::call::{Call, empty};
use crate::error::{ApiError, Reply};
use crate::write;
use axum::extract::Path;
use model::raid::{TARGET, check};
use serde_json::Value;

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
        validation::implemented(&call.app, &node, "raid")
            .map_err(|error| ApiError::client(404, error.message))?;
        check(&target).map_err(|why| ApiError::invalid(format!("RAID config validation error: {why}")))?;
    }
    write::change_unlocked(&call, &ident, |node| {
        let mut node = node.clone();
        if target.is_empty() {
            node.other.remove(TARGET);
        } else {
            node.other.insert(TARGET.into(), target.clone().into());
        }
        Ok((node, Vec::new()))
    })
    .await?;
    Ok(empty(204, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_property_that_is_described_is_known() {
        for (name, _) in DISK {
            let mut disk = json!({"raid_level": "1", "size_gb": 1});
            disk[name] = json!({"odd": 1});
            let config = json!({"logical_disks": [disk]});
            let why = check(config.as_object().expect("an object")).unwrap_err();
            assert!(!why.contains("unexpected"), "{name}: {why}");
        }
    }
}
