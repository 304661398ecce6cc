//! libblkid by hand-written externs (`blkid/blkid.h`, util-linux 2.38), linked statically.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}
type RawProbe = *mut Opaque;
type RawPartlist = *mut Opaque;
type RawPartition = *mut Opaque;

unsafe extern "C" {
    fn blkid_new_probe() -> RawProbe;
    fn blkid_free_probe(probe: RawProbe);
    fn blkid_probe_set_device(probe: RawProbe, fd: c_int, offset: i64, size: i64) -> c_int;
    fn blkid_probe_set_sectorsize(probe: RawProbe, size: c_uint) -> c_int;
    fn blkid_probe_enable_superblocks(probe: RawProbe, enable: c_int) -> c_int;
    fn blkid_probe_set_superblocks_flags(probe: RawProbe, flags: c_int) -> c_int;
    fn blkid_probe_enable_partitions(probe: RawProbe, enable: c_int) -> c_int;
    fn blkid_probe_set_partitions_flags(probe: RawProbe, flags: c_int) -> c_int;
    fn blkid_do_probe(probe: RawProbe) -> c_int;
    fn blkid_probe_lookup_value(
        probe: RawProbe,
        name: *const c_char,
        data: *mut *const c_char,
        length: *mut usize,
    ) -> c_int;
    fn blkid_probe_get_partitions(probe: RawProbe) -> RawPartlist;
    fn blkid_partlist_numof_partitions(list: RawPartlist) -> c_int;
    fn blkid_partlist_get_partition(list: RawPartlist, index: c_int) -> RawPartition;
    fn blkid_partition_get_start(partition: RawPartition) -> i64;
    fn blkid_partition_get_size(partition: RawPartition) -> i64;
    fn blkid_partition_get_type(partition: RawPartition) -> c_int;
    fn blkid_partition_get_type_string(partition: RawPartition) -> *const c_char;
}

// BLKID_SUBLKS_{LABEL,UUID,TYPE,USAGE,VERSION,MAGIC,BADCSUM}: also superblocks with a bad checksum, which
// some other tool might still accept.
const SUPERBLOCK_FLAGS: c_int = (1 << 1) | (1 << 3) | (1 << 5) | (1 << 7) | (1 << 8) | (1 << 9) | (1 << 10);
// BLKID_PARTS_{FORCE_GPT,MAGIC}: a GPT without its protective MBR counts too.
const PARTITION_FLAGS: c_int = (1 << 1) | (1 << 3);

/// One match of libblkid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) superblock_type: Option<String>,
    pub(crate) table_type: Option<String>,
    pub(crate) usage: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) uuid: Option<String>,
    /// Byte offset of the magic from the beginning of the probed range.
    pub(crate) offset: Option<u64>,
    /// Length of the magic in bytes.
    pub(crate) length: Option<u64>,
}

/// A partition of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// First byte, from the beginning of the device.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Its type: a GUID, or the number of an MBR (`0xfb`).
    pub(crate) kind: Option<String>,
}

/// A probe over one range of a device.
pub(crate) struct Prober<'a> {
    raw: RawProbe,
    // libblkid keeps the descriptor: the file must outlive the probe.
    _file: &'a File,
}

impl<'a> Prober<'a> {
    /// Over `size` bytes from `offset`; a size of 0 means to the end of the device.
    pub(crate) fn new(file: &'a File, offset: u64, size: u64, sector: u32) -> io::Result<Self> {
        let offset = i64::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let size = i64::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: no argument; the result is checked for null.
        let raw = unsafe { blkid_new_probe() };
        if raw.is_null() {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        let prober = Prober { raw, _file: file };
        // SAFETY: `raw` is a live probe, freed in Drop only; the descriptor lives as long as `prober`.
        let status = unsafe { blkid_probe_set_device(raw, file.as_raw_fd(), offset, size) };
        check(status, "blkid_probe_set_device")?;
        // SAFETY: `raw` is a live probe; the calls set options and nothing else.
        unsafe {
            check(blkid_probe_set_sectorsize(raw, sector), "blkid_probe_set_sectorsize")?;
            check(blkid_probe_enable_superblocks(raw, 1), "blkid_probe_enable_superblocks")?;
            check(
                blkid_probe_set_superblocks_flags(raw, SUPERBLOCK_FLAGS),
                "blkid_probe_set_superblocks_flags",
            )?;
            check(blkid_probe_enable_partitions(raw, 1), "blkid_probe_enable_partitions")?;
            check(
                blkid_probe_set_partitions_flags(raw, PARTITION_FLAGS),
                "blkid_probe_set_partitions_flags",
            )?;
        }
        Ok(prober)
    }

    /// The next match, or `None` when there is no further one.
    pub(crate) fn next_match(&mut self) -> io::Result<Option<Match>> {
        // SAFETY: `raw` is a live probe with a device assigned.
        match unsafe { blkid_do_probe(self.raw) } {
            0 => Ok(Some(Match {
                superblock_type: self.value(c"TYPE"),
                table_type: self.value(c"PTTYPE"),
                usage: self.value(c"USAGE"),
                label: self.value(c"LABEL"),
                uuid: self.value(c"UUID").or_else(|| self.value(c"PTUUID")),
                offset: self
                    .value(c"SBMAGIC_OFFSET")
                    .or_else(|| self.value(c"PTMAGIC_OFFSET"))
                    .and_then(|text| text.parse().ok()),
                length: self.length(c"SBMAGIC").or_else(|| self.length(c"PTMAGIC")),
            })),
            1 => Ok(None),
            _ => Err(last_error("blkid_do_probe")),
        }
    }

    /// The partitions of the table in this range, those of nested tables included.
    pub(crate) fn partitions(&mut self) -> Vec<Entry> {
        let mut found = Vec::new();
        // SAFETY: `raw` is a live probe with a device assigned; the list belongs to it and is read at once.
        let list = unsafe { blkid_probe_get_partitions(self.raw) };
        if list.is_null() {
            return found;
        }
        // SAFETY: `list` is not null and belongs to the live probe.
        let count = unsafe { blkid_partlist_numof_partitions(list) };
        for index in 0..count {
            // SAFETY: as above; `index` is below the count.
            let partition = unsafe { blkid_partlist_get_partition(list, index) };
            if partition.is_null() {
                continue;
            }
            // SAFETY: `partition` is not null and belongs to the live list.
            let (start, size) =
                unsafe { (blkid_partition_get_start(partition), blkid_partition_get_size(partition)) };
            // libblkid counts in 512-byte sectors whatever the device's sectors are.
            let bytes = |sectors: i64| u64::try_from(sectors).ok().and_then(|n| n.checked_mul(512));
            if let (Some(start), Some(size)) = (bytes(start), bytes(size)) {
                // SAFETY: as above.
                let kind = unsafe { kind(partition) };
                found.push(Entry { start, size, kind });
            }
        }
        found
    }

    fn lookup(&self, name: &CStr) -> Option<&[u8]> {
        let mut data: *const c_char = std::ptr::null();
        let mut length = 0usize;
        // SAFETY: `raw` is a live probe, `name` is NUL-terminated, both results point to locals.
        let status = unsafe { blkid_probe_lookup_value(self.raw, name.as_ptr(), &mut data, &mut length) };
        if status != 0 || data.is_null() {
            return None;
        }
        // SAFETY: libblkid owns `length` bytes at `data`, unchanged until the next probing call, which needs
        // `&mut self`.
        Some(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) })
    }

    fn value(&self, name: &CStr) -> Option<String> {
        let bytes = self.lookup(name)?;
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    fn length(&self, name: &CStr) -> Option<u64> {
        self.lookup(name).map(|bytes| bytes.len() as u64)
    }
}

impl Drop for Prober<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` came from blkid_new_probe and is freed here once.
        unsafe { blkid_free_probe(self.raw) }
    }
}

/// Type of a partition.
///
/// # Safety
/// `partition` is not null and belongs to a live list.
unsafe fn kind(partition: RawPartition) -> Option<String> {
    // SAFETY: as the caller promises; the string, if any, belongs to the list too and is NUL-terminated.
    let (text, number) =
        unsafe { (blkid_partition_get_type_string(partition), blkid_partition_get_type(partition)) };
    if text.is_null() {
        return (number > 0).then(|| format!("{number:#04x}"));
    }
    // SAFETY: not null, and copied at once.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn check(status: c_int, call: &str) -> io::Result<()> {
    if status == 0 { Ok(()) } else { Err(last_error(call)) }
}

fn last_error(call: &str) -> io::Error {
    let error = io::Error::last_os_error();
    io::Error::new(error.kind(), format!("{call}: {error}"))
}
