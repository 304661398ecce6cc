//! LVM metadata, read to see whether a volume group belongs to a cluster, and where it is (`lib/format_text/layout.h` of LVM2).

use std::io;

/// Bytes from the beginning of a physical volume in which its label is.
pub(crate) const LABEL_AREA: usize = 2048;
/// More metadata than this is not looked at; a copy of the group is at most half of an area of 1 MiB.
const MOST: u64 = 1 << 20;

/// The name of the volume group of a physical volume, if it is shared by a cluster: flagged as clustered (clvmd), or
/// locked by dlm or sanlock (lvmlockd). `read` gives bytes of the physical volume.
pub(crate) fn clustered(
    mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Option<String>> {
    let mut label = vec![0; LABEL_AREA];
    read(0, &mut label)?;
    for (start, size) in metadata_areas(&label) {
        let mut header = vec![0; 512];
        read(start, &mut header)?;
        let Some((offset, length)) = text_place(&header, size) else { continue };
        // The text goes round at the end of the area; its first sector is the header.
        let head = length.min(size - offset);
        let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
        let (first, rest) = text.split_at_mut(usize::try_from(head).unwrap_or(0));
        read(start + offset, first)?;
        if !rest.is_empty() {
            read(start + 512, rest)?;
        }
        return Ok(cluster_of(&String::from_utf8_lossy(&text)));
    }
    Ok(None)
}

fn quad(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// In which of the first sectors the label is.
pub(crate) fn label_sector(label: &[u8]) -> Option<u64> {
    let at = label.chunks(512).position(|sector| sector.starts_with(b"LABELONE"))?;
    u64::try_from(at).ok()
}

/// `(start, size)` of the metadata areas, from the label in one of the first four sectors.
pub(crate) fn metadata_areas(label: &[u8]) -> Vec<(u64, u64)> {
    let Some(sector) = label_sector(label).and_then(|at| label.chunks(512).nth(usize::try_from(at).ok()?))
    else {
        return Vec::new();
    };
    let offset = sector.get(20..24).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
    // The header is a UUID of 32 bytes and a size; then two lists of places, each ended by an empty one.
    let mut at = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(40);
    let mut lists = [Vec::new(), Vec::new()];
    for list in &mut lists {
        while let (Some(start), Some(size)) = (quad(sector, at), quad(sector, at.saturating_add(8))) {
            at += 16;
            if start == 0 {
                break;
            }
            list.push((start, size));
        }
    }
    let [_, areas] = lists;
    areas
}

/// `(offset, length)` of the text in its area, from the area's header.
pub(crate) fn text_place(header: &[u8], size: u64) -> Option<(u64, u64)> {
    const MAGIC: &[u8; 16] = b" LVM2 x[5A%r0N*>";
    let (offset, length) = (quad(header, 40)?, quad(header, 48)?);
    let sound =
        header.get(4..20)? == MAGIC && (512..size).contains(&offset) && length <= MOST.min(size - 512);
    (sound && length > 0).then_some((offset, length))
}

/// The group's name, when its text says that it is shared.
fn cluster_of(text: &str) -> Option<String> {
    let value = |line: &str, key: &str| {
        Some(line.trim().strip_prefix(key)?.trim_start().strip_prefix('=')?.trim().to_owned())
    };
    let shared = text.lines().any(|line| {
        value(line, "lock_type")
            .is_some_and(|kind| ["\"dlm\"", "\"sanlock\"", "\"idm\""].contains(&kind.as_str()))
            || value(line, "status").is_some_and(|flags| flags.contains("\"CLUSTERED\""))
    });
    let name = text.split_once('{').map_or("", |(name, _)| name).trim();
    shared.then(|| name.lines().last().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shared_groups_in_the_words_of_both_managers() {
        let local =
            "vg0 {\nid = \"x\"\nstatus = [\"RESIZEABLE\", \"READ\", \"WRITE\"]\nlock_type = \"none\"\n}";
        assert_eq!(cluster_of(local), None);
        for shared in [
            local.replace("none", "dlm"),
            local.replace("none", "sanlock"),
            local.replace("READ\"", "CLUSTERED\""),
        ] {
            assert_eq!(cluster_of(&shared).as_deref(), Some("vg0"), "{shared}");
        }
    }

    proptest! {
        #[test]
        fn no_volume_makes_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..4096), text: String, at in 0usize..3) {
            let mut bytes = bytes;
            bytes.resize(4096, 0);
            bytes[at * 512..at * 512 + 8].copy_from_slice(b"LABELONE");
            let read = |offset: u64, buffer: &mut [u8]| {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let end = from.saturating_add(buffer.len());
                buffer.copy_from_slice(bytes.get(from..end).ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            };
            let _ = (clustered(read), cluster_of(&text), text_place(&bytes, 1 << 20));
        }
    }
}
