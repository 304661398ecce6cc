//! After the verification: the table becomes that of the disk, the configuration drive gets its partition, and last of
//! all the disk can be booted.

use super::disk;
use super::progress::{Meter, Phase, Watch};
use crate::configdrive::{self, LABEL, LARGEST, label};
use crate::digest::sha256;
use crate::error::ImageError;
use crate::gpt::{Gpt, Patch};
use crate::hold::{HEAD, Held};
use crate::record::Edit;
use crate::table::Table;
use block::Target;
use block::aligned::Aligned;
use ring::rand::{SecureRandom, SystemRandom};

/// How much of a file system contains its label.
const LABEL_BYTES: usize = 34 << 10;

/// Makes our changes, writes what was held, and reads all of it back.
pub(super) fn finish(
    disk: &dyn Target,
    mut held: Held,
    size: u64,
    configdrive: Option<&[u8]>,
    watch: &dyn Watch,
) -> Result<Vec<Edit>, ImageError> {
    watch.progress(Meter::default().progress(Phase::Finishing, (0, 0), 0, None));
    let sector = disk.logical_block() as usize;
    let patches = match Table::read(&held.head, sector, size)? {
        Table::Gpt(gpt) => of_gpt(disk, gpt, configdrive)?,
        Table::Mbr(mut mbr) => match configdrive {
            None => Vec::new(),
            Some(content) => {
                let (offset, length, table) =
                    mbr.add_at_end(disk.size(), LARGEST).map_err(ImageError::ConfigDrive)?;
                let table = Patch { what: "MBR", offset: 0, bytes: table };
                vec![drive(content, offset, length, sector)?, table]
            }
        },
    };
    for patch in &patches {
        place(disk, &mut held, patch)?;
    }
    disk::write_all(disk, &aligned(&held.tail), held.tail_start)?;
    disk::flush(disk)?;
    // What is in the head comes back only when the head is there: that is the last write.
    let (head, rest): (Vec<&Patch>, _) = patches.iter().partition(|patch| patch.offset < HEAD);
    let mut edits = rest.into_iter().map(|patch| edit(disk, patch)).collect::<Result<Vec<_>, _>>()?;
    same(disk, held.tail_start, &held.tail)?;
    if watch.cancelled() {
        return Err(ImageError::Cancelled);
    }
    disk::write_all(disk, &aligned(&held.head), 0)?;
    disk::flush(disk)?;
    same(disk, 0, &held.head)?;
    for patch in head {
        edits.push(edit(disk, patch)?);
    }
    Ok(edits)
}

fn of_gpt(disk: &dyn Target, mut gpt: Gpt, configdrive: Option<&[u8]>) -> Result<Vec<Patch>, ImageError> {
    let sector = disk.logical_block() as usize;
    gpt.move_to(disk.size()).map_err(ImageError::Table)?;
    let mut patches = Vec::new();
    if let Some(content) = configdrive {
        let mut labelled = Vec::new();
        for partition in gpt.partitions() {
            let length = LABEL_BYTES.min(usize::try_from(partition.length).unwrap_or(LABEL_BYTES));
            // The first MiB has no partition of a file system's size.
            let start = if partition.offset < HEAD {
                Vec::new()
            } else {
                disk::bytes(disk, partition.offset, length)?
            };
            let found = label(&start).is_some_and(|label| label.eq_ignore_ascii_case(LABEL));
            if found || partition.name == LABEL {
                labelled.push(partition);
            }
        }
        let partition = match labelled.as_slice() {
            [] => {
                let mut id = [0; 16];
                let random = SystemRandom::new().fill(&mut id);
                random.map_err(|_| ImageError::Internal("no randomness".to_owned()))?;
                // A random GUID, version 4.
                (id[7], id[8]) = (id[7] & 0x0f | 0x40, id[8] & 0x3f | 0x80);
                gpt.add_at_end(LARGEST, LABEL, id).map_err(ImageError::ConfigDrive)?
            }
            [one] => one.clone(),
            _ => {
                let problem = format!("the image has {} partitions for it", labelled.len());
                return Err(ImageError::ConfigDrive(problem));
            }
        };
        patches.push(drive(content, partition.offset, partition.length, sector)?);
    }
    patches.extend(gpt.patches());
    Ok(patches)
}

fn drive(content: &[u8], offset: u64, length: u64, sector: usize) -> Result<Patch, ImageError> {
    let content = configdrive::for_disk(content, sector, length).map_err(ImageError::ConfigDrive)?;
    if content.len() as u64 > length {
        let problem = format!("it has {} bytes, its partition {length}", content.len());
        return Err(ImageError::ConfigDrive(problem));
    }
    Ok(Patch { what: "configdrive", offset, bytes: content.into_owned() })
}

/// To the held parts or to the disk, each piece where it belongs.
fn place(disk: &dyn Target, held: &mut Held, patch: &Patch) -> Result<(), ImageError> {
    let (mut offset, mut rest) = (patch.offset, patch.bytes.as_slice());
    while !rest.is_empty() {
        let border = [HEAD, held.tail_start].into_iter().find(|&border| offset < border);
        let length =
            border.map_or(rest.len(), |border| usize::try_from(border - offset).unwrap_or(rest.len()));
        let (now, later) = rest.split_at(length.min(rest.len()).min(1 << 20));
        if !held.take(offset, now) {
            disk::patch(disk, now, offset)?;
        }
        (offset, rest) = (offset + now.len() as u64, later);
    }
    Ok(())
}

/// What the disk returns in place of a patch.
fn edit(disk: &dyn Target, patch: &Patch) -> Result<Edit, ImageError> {
    same(disk, patch.offset, &patch.bytes)?;
    Ok(Edit {
        what: patch.what.to_owned(),
        offset: patch.offset,
        length: patch.bytes.len() as u64,
        sha256: sha256(&patch.bytes),
    })
}

fn same(disk: &dyn Target, offset: u64, expected: &[u8]) -> Result<(), ImageError> {
    for (at, piece) in (offset..).step_by(1 << 20).zip(expected.chunks(1 << 20)) {
        if disk::bytes(disk, at, piece.len())? != piece {
            let what = format!("{} bytes at {at}", piece.len());
            return Err(ImageError::ReadBack { disk: disk.name(), what });
        }
    }
    Ok(())
}

fn aligned(bytes: &[u8]) -> Aligned {
    let mut buffer = Aligned::new(bytes.len());
    buffer.copy_from_slice(bytes);
    buffer
}
