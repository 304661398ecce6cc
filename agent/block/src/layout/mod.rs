//! The arrays and volume groups of whole disks, remembered before an erase and written back, empty, after it.
//!
//! ```text
//!   remember (reads, a disk) ──▶ Member ──▶ complete (pure, all disks) ──▶ erase of all ──▶ write_back, read back
//! ```
//!
//! Kept are the superblock of md 1.x with the head of its bitmap, and of an LVM physical volume the label, the header of
//! its metadata area and the current text in it. No content of a volume is, and nothing that an array or group without all
//! of its members, or in the course of a change, would have. Where the disk reads as zeroes, these volumes are sound: zeroes
//! agree with their parity, and a bitmap of zeroes is clean. Absent on purpose: md 0.90, DDF and IMSM, members in
//! partitions or in other volumes, groups with volumes that keep metadata of their own (thin, mirrored, cached).

mod group;
mod md;
mod member;

pub use member::Member;

use crate::aligned::{Aligned, is_zero};
use crate::fault::Fault;
use crate::signature::{Signature, SignatureKind};
use crate::target::{Target, read_exact, write_all};
use md::Superblock;
use member::Whole;
use std::collections::{BTreeMap, BTreeSet};

/// A region that was written back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuilt {
    /// `md` or `lvm`.
    pub kind: &'static str,
    /// Name of the array or group.
    pub name: String,
    /// Its UUID, as its own tools write it.
    pub uuid: String,
    /// How many bytes, whole sectors.
    pub bytes: u64,
    /// Where, in bytes from the beginning of the disk.
    pub offset: u64,
}

/// What the whole disk is a member of, and what has to be written back; `None` where there is nothing, or nothing that
/// can be written back soundly.
///
/// # Errors
/// When the disk cannot be read.
pub fn remember(target: &dyn Target) -> Result<Option<Member>, Fault> {
    let signatures = target.signatures().map_err(|source| Fault::Command { what: "probing", source })?;
    let other =
        |signature: &Signature| signature.kind == SignatureKind::Member && signature.name != "LVM2_member";
    let mut read = |offset: u64, length: u64| read(target, offset, length);
    match md::member(target.size(), &mut read)? {
        Superblock::Member(member) => Ok(Some(member)),
        // What lies below an array is the array's content.
        Superblock::NotRebuildable => Ok(None),
        Superblock::Absent if signatures.iter().any(other) => Ok(None),
        Superblock::Absent => group::member(&mut read),
    }
}

/// Keep members whose array or group has every part here exactly once with identical metadata.
pub fn complete(members: Vec<Option<Member>>) -> Vec<Option<Member>> {
    let mut wholes: BTreeMap<String, Vec<&Member>> = BTreeMap::new();
    for member in members.iter().flatten() {
        wholes.entry(member.whole.uuid.clone()).or_default().push(member);
    }
    let sound = |all: &[&Member]| {
        let parts: BTreeSet<&String> = all.iter().map(|member| &member.part).collect();
        all.iter().all(|member| member.whole == all[0].whole)
            && parts.len() == all.len()
            && all[0].whole.parts.iter().collect::<BTreeSet<_>>() == parts
    };
    let sound: BTreeSet<String> =
        wholes.into_iter().filter(|(_, all)| sound(all)).map(|(uuid, _)| uuid).collect();
    members.into_iter().map(|member| member.filter(|member| sound.contains(&member.whole.uuid))).collect()
}

/// Write back what was kept of an erased disk, and read it back. Every place must read as zeroes before.
///
/// # Errors
/// [`Fault`] when a place is not zero, cannot be written, or reads differently; what was written by then is zero again.
pub fn write_back(target: &dyn Target, member: &Member) -> Result<Vec<Rebuilt>, Fault> {
    let pieces = member.sectors(u64::from(target.logical_block()));
    for (offset, bytes) in &pieces {
        if !is_zero(&read(target, *offset, bytes.len() as u64)?) {
            return Err(Fault::Mismatch(format!("the sectors at byte offset {offset} are not zero")));
        }
    }
    let result = pieces.iter().try_for_each(|(offset, bytes)| put(target, *offset, bytes));
    if let Err(fault) = result {
        blank(target, member)?;
        return Err(fault);
    }
    target.flush().map_err(|source| Fault::Command { what: "flush", source })?;
    let Whole { kind, name, uuid, .. } = &member.whole;
    let rebuilt = |(offset, bytes): (u64, Vec<u8>)| Rebuilt {
        kind,
        name: name.clone(),
        uuid: uuid.clone(),
        bytes: bytes.len() as u64,
        offset,
    };
    Ok(pieces.into_iter().map(rebuilt).collect())
}

/// Take back what was written back.
///
/// # Errors
/// [`Fault`] when it cannot be overwritten or does not read as zeroes afterwards.
pub fn blank(target: &dyn Target, member: &Member) -> Result<(), Fault> {
    let pieces = member.sectors(u64::from(target.logical_block()));
    pieces.iter().try_for_each(|(offset, bytes)| put(target, *offset, &vec![0; bytes.len()]))
}

fn put(target: &dyn Target, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
    let mut buffer = Aligned::new(bytes.len());
    buffer.copy_from_slice(bytes);
    write_all(target, &buffer, offset, &mut |_| ())?;
    if read(target, offset, bytes.len() as u64)? != bytes {
        return Err(Fault::Mismatch(format!("what was written back at byte offset {offset} is not there")));
    }
    Ok(())
}

/// Any bytes of the disk; short where it ends.
fn read(target: &dyn Target, offset: u64, length: u64) -> Result<Vec<u8>, Fault> {
    let block = u64::from(target.logical_block());
    let end = offset.saturating_add(length).min(target.size());
    let (start, stop) = (offset / block * block, end.next_multiple_of(block).min(target.size()));
    if start >= stop || offset >= end {
        return Ok(Vec::new());
    }
    let mut buffer = Aligned::new(usize::try_from(stop - start).unwrap_or(0));
    read_exact(target, &mut buffer, start)?;
    let from = usize::try_from(offset - start).unwrap_or(0);
    Ok(buffer[from..from + usize::try_from(end - offset).unwrap_or(0)].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeDisk;
    use proptest::prelude::*;

    fn member(uuid: &str, part: &str, parts: &[&str], version: u64) -> Member {
        let whole = Whole {
            kind: "md",
            name: "x".into(),
            uuid: uuid.into(),
            version,
            parts: parts.iter().map(|&part| part.to_owned()).collect(),
        };
        Member { whole, part: part.into(), pieces: Vec::new() }
    }

    #[test]
    fn only_what_has_all_of_its_parts_once_and_of_one_moment_is_kept() {
        let (a, b) = (member("1", "0", &["0", "1"], 7), member("1", "1", &["0", "1"], 7));
        let kept = |members: &[&Member]| {
            let members = members.iter().map(|&member| Some(member.clone())).collect();
            complete(members).iter().filter(|member| member.is_some()).count()
        };
        assert_eq!(kept(&[&a, &b]), 2);
        assert_eq!(kept(&[&a]), 0, "one is missing");
        assert_eq!(kept(&[&a, &b, &b]), 0, "one is there twice");
        assert_eq!(kept(&[&a, &member("1", "1", &["0", "1"], 8)]), 0, "one is older");
        assert_eq!(kept(&[&a, &b, &member("2", "0", &["0", "1"], 7)]), 2, "another array is another matter");
    }

    #[test]
    fn a_volume_of_a_group_is_remembered() {
        let found = remember(&FakeDisk::new(group::tests::volume(), 512, Vec::new())).unwrap().unwrap();
        assert_eq!((found.whole.name.as_str(), found.part.trim_end()), ("outer", "CCDD"));
        let places: Vec<u64> = found.pieces.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(places, [512, 4096, 4096 + 1436, 4096 + 512]);
        assert!(remember(&FakeDisk::new(vec![0; 8192], 512, Vec::new())).unwrap().is_none());
    }

    /// What was kept is written where zeroes are, and nowhere else.
    #[test]
    fn what_was_kept_comes_back_to_an_erased_disk_alone() {
        let kept = Member { pieces: vec![(512, vec![7; 4])], ..member("1", "0", &["0"], 1) };
        let erased = FakeDisk::new(vec![0; 4096], 512, Vec::new());
        let rebuilt = write_back(&erased, &kept).unwrap();
        let places: Vec<_> = rebuilt.iter().map(|one| (one.offset, one.bytes)).collect();
        assert_eq!(places, [(512, 512)]);
        let mut expected = vec![0; 4096];
        expected[512..516].fill(7);
        assert!(erased.content() == expected);

        let mut used = vec![0; 4096];
        used[1000] = 1;
        let disk = FakeDisk::new(used.clone(), 512, Vec::new());
        assert!(matches!(write_back(&disk, &kept), Err(Fault::Mismatch(_))));
        assert!(disk.content() == used);
    }

    proptest! {
        #[test]
        fn sectors_hold_the_pieces_and_zeroes(
            pieces in prop::collection::vec((0u64..20_000, prop::collection::vec(1u8.., 1..2000)), 0..4),
            block in prop::sample::select(vec![512u64, 4096]),
        ) {
            let mut disk = vec![0; 24 << 10];
            for (offset, bytes) in &pieces {
                let at = usize::try_from(*offset).unwrap_or(0);
                disk[at..at + bytes.len()].copy_from_slice(bytes);
            }
            let mut made = vec![0; 24 << 10];
            let member = Member { pieces, ..member("1", "0", &["0"], 1) };
            let mut last = None;
            for (offset, bytes) in member.sectors(block) {
                prop_assert!(offset.is_multiple_of(block) && (bytes.len() as u64).is_multiple_of(block) && last < Some(offset));
                last = Some(offset + bytes.len() as u64 - 1);
                let at = usize::try_from(offset).unwrap_or(0);
                made[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            prop_assert!(made == disk);
        }
    }
}
