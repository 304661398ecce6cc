//! Physical volumes of LVM (`lib/format_text/layout.h` of LVM2): the label, the headers of the metadata areas, and the
//! current text.

use super::member::{Member, Whole};
use crate::fault::Fault;
use crate::lvm::{LABEL_AREA, label_sector, metadata_areas, text_place};
use std::collections::BTreeSet;

const SECTOR: u64 = 512;

/// What the disk is a part of.
pub(super) fn member(
    read: &mut impl FnMut(u64, u64) -> Result<Vec<u8>, Fault>,
) -> Result<Option<Member>, Fault> {
    let label = read(0, LABEL_AREA as u64)?;
    let Some(sector) = label_sector(&label) else { return Ok(None) };
    let at = usize::try_from(sector * SECTOR).unwrap_or(0);
    let Some(bytes) = label.get(at..at + 512) else { return Ok(None) };
    let mut pieces = vec![(sector * SECTOR, bytes.to_vec())];
    let mut current = None;
    for (start, size) in metadata_areas(&label) {
        let header = read(start, SECTOR)?;
        let Some((offset, length)) = text_place(&header, size) else { return Ok(None) };
        // The text goes round at the end of the area; its first sector is the header.
        let head = length.min(size - offset);
        let mut text = read(start + offset, head)?;
        let rest = read(start + SECTOR, length - head)?;
        pieces.extend([(start, header), (start + offset, text.clone()), (start + SECTOR, rest.clone())]);
        text.extend(rest);
        current = Some(text);
    }
    let text = current.map(|text| String::from_utf8_lossy(&text).trim_end_matches('\0').to_owned());
    let (Some(text), Some(part)) = (text, identity(bytes)) else { return Ok(None) };
    Ok(whole(&text).map(|whole| Member { whole, part, pieces }))
}

/// The identity of a physical volume, from the sector of its label, as the text has it without dashes.
fn identity(sector: &[u8]) -> Option<String> {
    let at = u32::from_le_bytes(sector.get(20..24)?.try_into().ok()?);
    let at = usize::try_from(at).ok()?;
    Some(String::from_utf8_lossy(sector.get(at..at.checked_add(32)?)?).into_owned())
}

/// The group of a text, when every volume in it is plain: made of nothing but extents.
fn whole(text: &str) -> Option<Whole> {
    let value = |line: &str, key: &str| {
        Some(line.trim().strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().to_owned())
    };
    let all = |key: &str| text.lines().filter_map(|line| value(line, key)).collect::<Vec<_>>();
    let id = |word: &String| word.trim_matches('"').replace('-', "");
    if all("type").iter().any(|kind| kind != "\"striped\"") {
        return None;
    }
    let (head, rest) = text.split_once("physical_volumes")?;
    let (volumes, _) = rest.split_once("logical_volumes").unwrap_or((rest, ""));
    let ids = |text: &str| text.lines().filter_map(|line| value(line, "id")).collect::<Vec<_>>();
    let name = text.split_once('{')?.0.lines().last()?.trim().to_owned();
    let uuid = ids(head).first()?.trim_matches('"').to_owned();
    let parts: BTreeSet<String> = ids(volumes).iter().map(id).collect();
    let version = all("seqno").first()?.parse().ok()?;
    Some(Whole { kind: "lvm", name, uuid, version, parts })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "# written\nouter {\nid = \"AAAA-BBBB\"\nseqno = 3\nstatus = [\"RESIZEABLE\"]\n\
        physical_volumes {\npv0 {\nid = \"CC-DD\"\ndevice = \"/dev/vdc\"\n}\npv1 {\nid = \"EE-FF\"\n}\n}\n\
        logical_volumes {\ndata {\nid = \"GG-HH\"\nsegment1 {\ntype = \"striped\"\n}\n}\n}\n}\n";

    /// A physical volume of the group of [`TEXT`], whose text goes round at the end of its metadata area.
    pub(in crate::layout) fn volume() -> Vec<u8> {
        const AREA: usize = 4096;
        const SIZE: usize = 1024 + 512;
        let mut disk = vec![0; 8192];
        let mut put = |at: usize, bytes: &[u8]| disk[at..at + bytes.len()].copy_from_slice(bytes);
        put(512, b"LABELONE");
        put(512 + 20, &32_u32.to_le_bytes());
        put(512 + 32, format!("{:<32}", "CCDD").as_bytes());
        // No data area, then one metadata area.
        put(512 + 32 + 40 + 16, &(AREA as u64).to_le_bytes());
        put(512 + 32 + 40 + 24, &(SIZE as u64).to_le_bytes());
        put(AREA + 4, b" LVM2 x[5A%r0N*>");
        let (from, length) = (SIZE - 100, TEXT.len());
        put(AREA + 40, &(from as u64).to_le_bytes());
        put(AREA + 48, &(length as u64).to_le_bytes());
        put(AREA + from, &TEXT.as_bytes()[..100]);
        put(AREA + 512, &TEXT.as_bytes()[100..]);
        disk
    }

    #[test]
    fn a_group_of_plain_volumes_is_read_and_no_other() {
        let group = whole(TEXT).expect("a group");
        assert_eq!((group.name.as_str(), group.uuid.as_str(), group.version), ("outer", "AAAA-BBBB", 3));
        assert_eq!(group.parts, BTreeSet::from(["CCDD".to_owned(), "EEFF".to_owned()]));
        assert_eq!(whole(&TEXT.replace("striped", "thin-pool")), None);
        assert_eq!(whole(&TEXT.replace("physical_volumes", "")), None);
    }

    proptest! {
        #[test]
        fn no_volume_makes_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 600..4096), text: String) {
            let mut bytes = bytes;
            bytes[..8].copy_from_slice(b"LABELONE");
            let _ = (whole(&text), identity(&bytes));
            let _ = member(&mut |offset, length| {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let end = from.saturating_add(usize::try_from(length).unwrap_or(0)).min(bytes.len());
                Ok(bytes[from..end].to_vec())
            });
        }
    }
}
