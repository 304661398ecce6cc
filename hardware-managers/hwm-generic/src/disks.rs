//! The disks for the inventory.

use crate::exempt::exempt;
use agent_protocol::inventory;
use block::{Filter, Holder, ListError, Probe, Roots, Signature};
use serde_json::{Map, Value, json};

/// Why the disks could not be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list the disks")]
pub struct DisksError(#[from] ListError);

pub(crate) fn disks(roots: &Roots, filter: &Filter) -> Result<Vec<inventory::Disk>, DisksError> {
    Ok(block::list(roots, filter)?
        .into_iter()
        .map(|disk| match block::probe(&disk) {
            Ok(probe) => entry(&probe, None),
            Err(error) => {
                let error = block::fault::chain(&error);
                entry(&Probe { disk, unreadable: Some(error.clone()), ..Probe::default() }, Some(error))
            }
        })
        .collect())
}

fn entry(probe: &Probe, error: Option<String>) -> inventory::Disk {
    let disk = &probe.disk;
    inventory::Disk {
        name: disk.path.to_string_lossy().into_owned(),
        model: disk.model.clone(),
        size: disk.size,
        rotational: disk.rotational,
        wwn: disk.wwn.clone(),
        serial: disk.serial.clone(),
        vendor: disk.vendor.clone(),
        wwn_with_extension: disk.wwn_with_extension.clone(),
        wwn_vendor_extension: disk.wwn_vendor_extension.clone(),
        hctl: disk.hctl.clone(),
        by_path: None,
        logical_sectors: Some(disk.logical_block.into()),
        physical_sectors: Some(disk.physical_block.into()),
        tran: disk.transport.clone(),
        anneal: additions(probe, error),
    }
}

fn additions(probe: &Probe, error: Option<String>) -> Map<String, Value> {
    let disk = &probe.disk;
    let partitions: Vec<Value> = disk
        .partitions
        .iter()
        .map(|partition| {
            json!({"name": partition.name, "number": partition.number, "start": partition.start,
                   "size": partition.size, "mounts": partition.mounts, "swap": partition.swap,
                   "holders": holders(&partition.holders)})
        })
        .collect();
    let refusals: Vec<String> = block::judge(probe).iter().map(ToString::to_string).collect();
    let mut map = Map::new();
    map.insert("read_only".into(), disk.read_only.into());
    map.insert("removable".into(), disk.removable.into());
    map.insert("partitions".into(), partitions.into());
    map.insert("holders".into(), holders(&disk.holders));
    map.insert("mounts".into(), json!(disk.mounts));
    map.insert("signatures".into(), probe.signatures.iter().map(signature).collect::<Vec<_>>().into());
    map.insert("refusals".into(), refusals.into());
    let methods: Vec<&str> = block::methods(probe).iter().map(|method| method.as_str()).collect();
    map.insert("erase_methods".into(), methods.into());
    if let Some(exempt) = exempt(probe, &[]) {
        map.insert("exempt".into(), exempt.into());
    }
    if !disk.other_paths.is_empty() {
        map.insert("other_paths".into(), disk.other_paths.clone().into());
    }
    if let Some(error) = error {
        map.insert("probe_error".into(), error.into());
    }
    map
}

fn holders(holders: &[Holder]) -> Value {
    let one = |holder: &Holder| {
        json!({"name": holder.name, "kind": holder.to_string(), "mounts": holder.mounts,
               "holders": self::holders(&holder.holders)})
    };
    holders.iter().map(one).collect::<Vec<_>>().into()
}

fn signature(signature: &Signature) -> Value {
    json!({"type": signature.name, "label": signature.label, "uuid": signature.uuid,
           "offset": signature.offset, "start": signature.range.0})
}
