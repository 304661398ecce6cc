//! A tree as squashfs: the same tree gives the same bytes, on any machine, at any time.

use crate::manifest::ROOT_ALIGN;
use crate::tree::Entry;
use backhand::compression::Compressor;
use backhand::{BackhandError, FilesystemCompressor, FilesystemWriter, NodeHeader};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes of a data block: the default of mksquashfs, and little memory on the node.
const BLOCK: u32 = 128 << 10;

/// Write it from where `out` stands; its size, a multiple of [`ROOT_ALIGN`].
///
/// gzip, because every kernel that has squashfs unpacks it. Owners, times and modes are not the tree's: they are
/// those of the user who checked it out.
pub fn write(
    root: &Path,
    tree: &[(PathBuf, Entry)],
    out: &mut (impl Write + Seek),
) -> Result<u64, BackhandError> {
    let mut writer = FilesystemWriter::default();
    writer.set_block_size(BLOCK);
    writer.set_time(0);
    writer.set_only_root_id();
    writer.set_root_mode(0o755);
    writer.set_compressor(FilesystemCompressor::new(Compressor::Gzip, None)?);
    writer.set_no_padding();
    let header = |permissions| NodeHeader { permissions, uid: 0, gid: 0, mtime: 0 };
    for (path, entry) in tree {
        match entry {
            Entry::Directory => writer.push_dir(path, header(0o755))?,
            Entry::File { executable: true } => {
                writer.push_file_from_path(root.join(path), path, header(0o755))?;
            }
            Entry::File { executable: false } => {
                writer.push_file_from_path(root.join(path), path, header(0o644))?;
            }
            Entry::Link(target) => writer.push_symlink(target, path, header(0o777))?,
        }
    }
    writer.write(&mut *out)?;
    pad(out).map_err(BackhandError::from)
}

fn pad(out: &mut (impl Write + Seek)) -> io::Result<u64> {
    let end = out.seek(SeekFrom::End(0))?;
    let size = end.next_multiple_of(ROOT_ALIGN);
    io::copy(&mut io::Read::take(io::repeat(0), size - end), out)?;
    Ok(size)
}
