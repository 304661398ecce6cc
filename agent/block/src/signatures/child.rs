//! The side of the process: confined, then libblkid.

use super::answer::{Answer, Found, Request};
use crate::signature::{PartitionType, Signature, SignatureKind};
use crate::sys;
use sandbox::OwnGrants;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};

/// Whole-disk questions of libblkid (is it a partition, is it a private volume) are answered by sysfs.
const GRANTS: OwnGrants = OwnGrants { sysfs: true, memory_mib: 256, processor_s: Some(300) };
/// More matches in a range than this are noise of a hostile disk, not an answer.
const MATCHES: usize = 64;

/// Look at the device, descriptor 0, and write the answer to descriptor 1. Returns the exit status.
pub(crate) fn run(request: &str) -> i32 {
    let answer = match confined(request) {
        Ok(found) => Answer::Found(found),
        Err(error) => Answer::Failed(error.to_string()),
    };
    let written = serde_json::to_vec(&answer).map(|answer| io::stdout().write_all(&answer));
    i32::from(!matches!(written, Ok(Ok(()))) || io::stdout().flush().is_err())
}

fn confined(request: &str) -> io::Result<Found> {
    sandbox::confine_this_process(&GRANTS)
        .map_err(|error| io::Error::other(format!("libblkid's process cannot be confined: {error}")))?;
    let device = sys::input::standard_input()?;
    examine(&device, &serde_json::from_str(request)?)
}

/// Signatures on the whole device, in the partitions its table names, and in those that the kernel knows.
pub(super) fn examine(file: &File, request: &Request) -> io::Result<Found> {
    let table = sys::blkid::Prober::new(file, 0, request.size, request.sector)?.partitions();
    let ranges = ranges(request, &table);
    let mut signatures = Vec::new();
    for &(start, length) in &ranges {
        let mut prober = sys::blkid::Prober::new(file, start, length, request.sector)?;
        for _ in 0..MATCHES {
            let Some(hit) = prober.next_match()? else { break };
            let Some(signature) = signature(hit, (start, length)) else { continue };
            if !signatures.contains(&signature) {
                signatures.push(signature);
            }
        }
    }
    signatures.sort_by_key(|signature| (signature.offset, signature.range));
    let typed = |entry: sys::blkid::Entry| Some(PartitionType { start: entry.start, kind: entry.kind? });
    Ok(Found { ranges, signatures, partition_types: table.into_iter().filter_map(typed).collect() })
}

fn ranges(request: &Request, table: &[sys::blkid::Entry]) -> Vec<(u64, u64)> {
    let size = request.size;
    let inside: BTreeSet<(u64, u64)> = request
        .partitions
        .iter()
        .copied()
        .chain(table.iter().map(|entry| (entry.start, entry.size)))
        // A table may lie; an extended partition or a damaged entry may be too small to hold anything.
        .filter(|&(start, length)| start < size && length >= 1024)
        .map(|(start, length)| (start, length.min(size - start)))
        .filter(|&range| range != (0, size))
        .collect();
    std::iter::once((0, size)).chain(inside).collect()
}

fn signature(hit: sys::blkid::Match, range: (u64, u64)) -> Option<Signature> {
    let kind = match (&hit.superblock_type, hit.usage.as_deref()) {
        (None, _) => SignatureKind::PartitionTable,
        (_, Some("filesystem")) => SignatureKind::Filesystem,
        (_, Some("raid")) => SignatureKind::Member,
        _ => SignatureKind::Other,
    };
    Some(Signature {
        kind,
        name: hit.superblock_type.or(hit.table_type)?,
        label: hit.label,
        uuid: hit.uuid,
        offset: hit.offset.and_then(|offset| offset.checked_add(range.0)),
        length: hit.length.unwrap_or(0),
        range,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    const MIB: u64 = 1 << 20;

    #[test]
    fn ranges_are_the_disk_and_what_of_each_partition_is_on_it() {
        let disk = 64 * MIB;
        let partitions = vec![(0, disk), (MIB, 1 << 40), (8 * MIB, 512), (disk, 4096), (MIB, 1 << 40)];
        let request = Request { size: disk, sector: 512, partitions };
        assert_eq!(ranges(&request, &[]), [(0, disk), (MIB, disk - MIB)]);
    }

    /// Needs sgdisk.
    #[test]
    fn a_table_and_what_is_in_a_partition_are_found_by_offset() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(64 * MIB).unwrap();
        let made = Command::new("sgdisk").args(["-n", "1:2048:+16M"]).arg(file.path()).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        // Swap space of version 1 and 100 pages (Linux, union swap_header).
        for (at, bytes) in [(1024, &[1, 0, 0, 0, 100][..]), (4086, b"SWAPSPACE2")] {
            file.as_file().write_all_at(bytes, MIB + at).unwrap();
        }
        let request = Request { size: 64 * MIB, sector: 512, partitions: vec![(MIB, 16 * MIB)] };
        let found = examine(file.as_file(), &request).unwrap();
        assert_eq!(found.ranges, [(0, 64 * MIB), (MIB, 16 * MIB)]);
        let of = |name: &'static str| found.signatures.iter().filter(move |seen| seen.name == name);
        assert!(
            of("gpt").next().is_some_and(|table| table.kind == SignatureKind::PartitionTable),
            "{found:?}"
        );
        let swap: Vec<_> = of("swap").map(|seen| (seen.kind, seen.offset, seen.range)).collect();
        assert_eq!(swap, [(SignatureKind::Other, Some(MIB + 4086), (MIB, 16 * MIB))]);
        assert!(found.signatures.is_sorted_by_key(|seen| seen.offset), "{found:?}");
        assert_eq!(found.partition_types.len(), 1, "{found:?}");
    }
}
