//! Superblocks of md, version 1.x (`linux/raid/md_p.h`, `struct mdp_superblock_1`); all numbers little-endian.

use super::member::{Member, Whole};
use crate::fault::Fault;
use std::collections::BTreeSet;

const MAGIC: u32 = 0xa92b_4efc;
/// A superblock with the most roles that it can have.
const LENGTH: u64 = 4096;
const FIXED: usize = 256;

/// Bits of the feature map that a rebuilt array may have: a bitmap, the layout of a RAID 0.
const BITMAP: u32 = 1;
const BAD_BLOCKS: u32 = 8;
const RAID0_LAYOUT: u32 = 4096;

const BITMAP_MAGIC: u32 = 0x6d74_6962;
/// `struct bitmap_super_s`; the bits come behind it.
const BITMAP_HEAD: u64 = 256;

/// Fields, by byte offset.
mod at {
    pub const FEATURES: usize = 8;
    pub const UUID: usize = 16;
    pub const NAME: usize = 32;
    pub const LEVEL: usize = 72;
    pub const RAID_DISKS: usize = 92;
    pub const BITMAP_OFFSET: usize = 96;
    pub const SUPER_OFFSET: usize = 144;
    pub const DEV_NUMBER: usize = 160;
    pub const EVENTS: usize = 200;
    pub const RESYNC_OFFSET: usize = 208;
    pub const CHECKSUM: usize = 216;
    pub const MAX_DEV: usize = 220;
    pub const BITMAP_EVENTS: usize = 24;
    pub const BITMAP_EVENTS_CLEARED: usize = 32;
    pub const BITMAP_STATE: usize = 48;
}

/// What is at the places of superblocks.
pub(super) enum Superblock {
    Absent,
    /// A superblock of an array that cannot be rebuilt.
    NotRebuildable,
    Member(Member),
}

/// Look at the three places for the superblock of a disk of `size` bytes.
pub(super) fn member(
    size: u64,
    read: &mut impl FnMut(u64, u64) -> Result<Vec<u8>, Fault>,
) -> Result<Superblock, Fault> {
    let end = (size / 512).saturating_sub(16) & !7;
    for offset in [0, 4096, end * 512] {
        let bytes = read(offset, LENGTH)?;
        let Some(sound) = sound(&bytes, offset) else { continue };
        let Some(mut member) = sound else { return Ok(Superblock::NotRebuildable) };
        let bitmap = bitmap_at(&member.pieces[0].1, offset);
        if let Some(place) = bitmap {
            let head = read(place, BITMAP_HEAD)?;
            let Some(head) = clean_bitmap(head, member.whole.version) else {
                return Ok(Superblock::NotRebuildable);
            };
            member.pieces.push((place, head));
        }
        return Ok(Superblock::Member(member));
    }
    Ok(Superblock::Absent)
}

/// The member of a superblock: nothing where there is none, `Some(None)` where it is of an array that is changing, has
/// lost members, or has features that zeroes do not agree with.
fn sound(bytes: &[u8], offset: u64) -> Option<Option<Member>> {
    let length = FIXED + 2 * usize::try_from(word(bytes, at::MAX_DEV)?).ok()?;
    let mut bytes = bytes.get(..length)?.to_vec();
    let is = word(&bytes, 0)? == MAGIC
        && word(&bytes, 4)? == 1
        && quad(&bytes, at::SUPER_OFFSET)? == offset / 512
        && word(&bytes, at::CHECKSUM)? == checksum(&bytes);
    is.then(|| member_of(&mut bytes, offset))
}

fn member_of(bytes: &mut [u8], offset: u64) -> Option<Member> {
    let features = word(bytes, at::FEATURES)?;
    let level = i32::from_le_bytes(bytes.get(at::LEVEL..at::LEVEL + 4)?.try_into().ok()?);
    if features & !(BITMAP | BAD_BLOCKS | RAID0_LAYOUT) != 0 || ![-1, 0, 1, 4, 5, 6, 10].contains(&level) {
        return None;
    }
    let number = usize::try_from(word(bytes, at::DEV_NUMBER)?).ok()?;
    let role = half(bytes, FIXED + 2 * number)?;
    let disks = word(bytes, at::RAID_DISKS)?;
    let name = bytes.get(at::NAME..at::NAME + 32)?;
    let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    let uuid: Vec<String> = bytes.get(at::UUID..at::UUID + 16)?.chunks(4).map(hex).collect();
    let roles: BTreeSet<String> = (0..disks.min(0xfffd)).map(|role| role.to_string()).collect();
    let whole = Whole {
        kind: "md",
        name,
        uuid: uuid.join(":"),
        version: quad(bytes, at::EVENTS)?,
        parts: roles.clone(),
    };
    let part = role.to_string();
    if !roles.contains(&part) {
        return None;
    }
    if level > 0 {
        // All-zero members are in sync.
        bytes[at::RESYNC_OFFSET..at::RESYNC_OFFSET + 8].fill(0xff);
    }
    // The list of bad blocks is not kept: the erase has just written them all.
    let kept = (features & !BAD_BLOCKS).to_le_bytes();
    bytes[at::FEATURES..at::FEATURES + 4].copy_from_slice(&kept);
    let sum = checksum(bytes).to_le_bytes();
    bytes[at::CHECKSUM..at::CHECKSUM + 4].copy_from_slice(&sum);
    Some(Member { whole, part, pieces: vec![(offset, bytes.to_vec())] })
}

/// Where the bitmap of a superblock is, in bytes, when it has one.
fn bitmap_at(bytes: &[u8], offset: u64) -> Option<u64> {
    let place = i32::from_le_bytes(bytes.get(at::BITMAP_OFFSET..at::BITMAP_OFFSET + 4)?.try_into().ok()?);
    (word(bytes, at::FEATURES)? & BITMAP != 0).then(|| offset.checked_add_signed(i64::from(place) * 512))?
}

/// The head of a bitmap in which nothing is marked.
fn clean_bitmap(mut head: Vec<u8>, events: u64) -> Option<Vec<u8>> {
    if word(&head, 0)? != BITMAP_MAGIC || head.len() as u64 != BITMAP_HEAD {
        return None;
    }
    for field in [at::BITMAP_EVENTS, at::BITMAP_EVENTS_CLEARED] {
        head[field..field + 8].copy_from_slice(&events.to_le_bytes());
    }
    head[at::BITMAP_STATE..at::BITMAP_STATE + 4].fill(0);
    Some(head)
}

/// The sum of all words but the sum itself, with the carries added.
fn checksum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(4).enumerate().filter(|(index, _)| index * 4 != at::CHECKSUM);
    let sum: u64 =
        words.map(|(_, word)| word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))).sum();
    // Both halves, cut to 32 bits as the kernel does.
    u32::try_from(((sum & 0xffff_ffff) + (sum >> 32)) & 0xffff_ffff).unwrap_or(0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn quad(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A superblock 1.2 of a RAID 1 of two disks with a bitmap.
    fn superblock(features: u32, role: u16) -> Vec<u8> {
        let mut bytes = vec![0; FIXED + 8];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &MAGIC.to_le_bytes());
        put(4, &1u32.to_le_bytes());
        put(at::FEATURES, &features.to_le_bytes());
        put(at::UUID, &[0xab; 16]);
        put(at::NAME, b"old:mirror");
        put(at::LEVEL, &1i32.to_le_bytes());
        put(at::RAID_DISKS, &2u32.to_le_bytes());
        put(at::BITMAP_OFFSET, &8i32.to_le_bytes());
        put(at::SUPER_OFFSET, &8u64.to_le_bytes());
        put(at::EVENTS, &17u64.to_le_bytes());
        put(at::MAX_DEV, &4u32.to_le_bytes());
        put(FIXED, &role.to_le_bytes());
        let sum = checksum(&bytes).to_le_bytes();
        bytes[at::CHECKSUM..at::CHECKSUM + 4].copy_from_slice(&sum);
        bytes
    }

    fn on_disk(superblock: &[u8]) -> Result<Superblock, Fault> {
        let mut disk = vec![0; 1 << 20];
        disk[4096..4096 + superblock.len()].copy_from_slice(superblock);
        disk[8192..8196].copy_from_slice(&BITMAP_MAGIC.to_le_bytes());
        disk[8192 + 48] = 2;
        member(1 << 20, &mut |offset, length| {
            let from = usize::try_from(offset).unwrap_or(0);
            Ok(disk[from..(from + usize::try_from(length).unwrap_or(0)).min(disk.len())].to_vec())
        })
    }

    #[test]
    fn a_member_is_kept_clean_and_with_a_fresh_bitmap() {
        let Ok(Superblock::Member(member)) = on_disk(&superblock(BITMAP | BAD_BLOCKS, 1)) else {
            panic!("none")
        };
        assert_eq!(
            (member.whole.name.as_str(), member.part.as_str(), member.whole.version),
            ("old:mirror", "1", 17)
        );
        assert_eq!(member.whole.uuid, "abababab:abababab:abababab:abababab");
        let [(place, bytes), (map, head)] = &member.pieces[..] else { panic!("{:?}", member.pieces) };
        assert_eq!((*place, *map, head[24], head[32], head[48]), (4096, 8192, 17, 17, 0));
        assert_eq!(
            (quad(bytes, at::RESYNC_OFFSET), word(bytes, at::FEATURES)),
            (Some(u64::MAX), Some(BITMAP))
        );
        assert_eq!(word(bytes, at::CHECKSUM), Some(checksum(bytes)));
    }

    /// Sums by hand.
    #[test]
    fn the_checksum_is_the_kernels() {
        assert_eq!(checksum(&[1, 2, 3, 4, 0x10, 0, 0, 0]), 0x0403_0211, "words are little-endian");
        assert_eq!(checksum(&[0xff, 0xff, 0xff, 0xff, 3, 0, 0, 0]), 3, "the carry is added");
        let mut whole = vec![0; FIXED];
        whole[at::CHECKSUM..at::CHECKSUM + 4].fill(0xff);
        assert_eq!(checksum(&whole), 0, "its own place does not count");
    }

    /// A RAID 0 has nothing to be in sync.
    #[test]
    fn only_an_array_with_redundancy_is_said_to_be_in_sync() {
        for (level, resync) in [(0, 0), (1, u64::MAX)] {
            let mut bytes = superblock(0, 1);
            bytes[at::LEVEL] = level;
            let sum = checksum(&bytes).to_le_bytes();
            bytes[at::CHECKSUM..at::CHECKSUM + 4].copy_from_slice(&sum);
            let Ok(Superblock::Member(member)) = on_disk(&bytes) else { panic!("level {level}") };
            assert_eq!(quad(&member.pieces[0].1, at::RESYNC_OFFSET), Some(resync), "level {level}");
        }
    }

    #[test]
    fn what_changes_has_lost_its_role_or_is_damaged_is_not_kept() {
        for (features, role) in [(2, 0), (4, 0), (0x200, 0), (0, 0xfffe), (0, 0xffff), (0, 2)] {
            assert!(
                matches!(on_disk(&superblock(features, role)), Ok(Superblock::NotRebuildable)),
                "{features} {role}"
            );
        }
        let mut damaged = superblock(0, 0);
        damaged[at::LEVEL] = 5;
        assert!(matches!(on_disk(&damaged), Ok(Superblock::Absent)));
    }

    proptest! {
        #[test]
        fn no_superblock_makes_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), max in any::<u8>()) {
            let mut bytes = bytes;
            bytes.resize(600, 0);
            bytes[at::MAX_DEV..at::MAX_DEV + 4].copy_from_slice(&u32::from(max).to_le_bytes());
            let _ = (sound(&bytes, 0), member_of(&mut bytes.clone(), 0), bitmap_at(&bytes, 7), clean_bitmap(bytes, 1));
        }
    }
}
