//! File systems and volume managers that several machines use at once: what one erases, all lose.

use crate::probe::Probe;
use crate::signature::{PartitionType, Signature};

/// Partition types, GPT and MBR. Their case depends on who reads the table, so it does not count.
const PARTITIONS: [(&str, &str); 6] = [
    ("aa31e02a-400f-11db-9590-000c2911d1b8", "a VMFS partition"),
    ("9d275380-40ad-11db-bf97-000c2911d1b8", "a VMware kernel dump partition"),
    ("381cfccc-7288-11e0-92ee-000c2911d0b2", "a VMware vSAN partition"),
    ("37affc90-ef7d-4e96-91c3-2d7ae055b174", "a GPFS partition"),
    ("0xfb", "a VMFS partition"),
    ("0xfc", "a VMware kernel dump partition"),
];

/// Signatures in libblkid's words.
const SIGNATURES: [(&str, &str); 7] = [
    ("vmfs", "a VMFS file system"),
    ("vmfs_volume_member", "a VMFS volume"),
    ("gfs", "a GFS file system"),
    ("gfs2", "a GFS2 file system"),
    ("ocfs", "an OCFS file system"),
    ("ocfs2", "an OCFS2 file system"),
    ("oracleasm", "an Oracle ASM disk"),
];

/// The first that the disk, one of its partitions, or a volume built on them carries.
pub(crate) fn found(probe: &Probe) -> Option<String> {
    let own = || on(&probe.partition_types, &probe.signatures, probe.clustered.as_ref());
    let above = || {
        probe.above.iter().find_map(|layer| {
            let found = on(&layer.partition_types, &layer.signatures, layer.clustered.as_ref())?;
            Some(format!("{found} on {}", layer.what))
        })
    };
    own().or_else(above)
}

fn on(types: &[PartitionType], signatures: &[Signature], clustered: Option<&String>) -> Option<String> {
    let known = |table: &[(&str, &str)], word: &str| {
        let word = word.trim().to_lowercase();
        table.iter().find(|(name, _)| *name == word).map(|(_, words)| (*words).to_owned())
    };
    let partition = types.iter().find_map(|partition| known(&PARTITIONS, &partition.kind));
    let signature = || signatures.iter().find_map(|signature| known(&SIGNATURES, &signature.name));
    partition
        .or_else(signature)
        .or_else(|| clustered.map(|group| format!("the clustered LVM volume group {group}")))
}
