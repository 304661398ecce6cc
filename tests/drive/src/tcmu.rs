//! A drive as a disk of the running kernel (Linux `Documentation/target/tcmu-design.rst`, `target_core_user.h`).

use crate::drive::{Answer, Drive};
use crate::sys::Map;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const TARGET: &str = "/sys/kernel/config/target";

// `struct tcmu_mailbox`.
const RING_OFFSET: usize = 4;
const RING_SIZE: usize = 8;
const HEAD: usize = 12;
const TAIL: usize = 64;

// `struct tcmu_cmd_entry`: header, then request and response over each other.
const USER_FLAGS: usize = 7;
const IOVECS: usize = 8;
const CDB: usize = 24;
const IOVEC: usize = 48;
const STATUS: usize = 8;
const READ_LENGTH: usize = 12;
const SENSE: usize = 16;
const SENSE_BYTES: usize = 96;

const PAD: u32 = 0;
const COMMAND: u32 = 1;
/// `TCMU_UFLAG_UNKNOWN_OP`, `TCMU_UFLAG_READ_LEN`.
const UNKNOWN: u8 = 1;
const READ_LENGTH_COUNTS: u8 = 2;

/// A drive whose commands come from the kernel.
#[derive(Debug)]
pub struct Backend {
    drive: Drive,
    ring: Map,
    uio: File,
    directory: PathBuf,
    index: usize,
}

impl Backend {
    /// Make the drive known to the kernel as number `index`. `target_core_user` and configfs must be there.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(drive: Drive, index: usize) -> Result<Self> {
        let serial = drive.spec().serial.clone();
        let directory = Path::new(TARGET).join(format!("core/user_{index}/{serial}"));
        fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let (kind, size) = (format!("rig/{serial}"), drive.sectors() * crate::drive::SECTOR);
        let control = format!(
            "dev_config={kind},dev_size={size},hw_block_size=512,hw_max_sectors=2048,max_data_area_mb=8,cmd_ring_size_mb=1,nl_reply_supported=-1"
        );
        put(&directory.join("control"), &control)?;
        // Reservations are the drive's own.
        put(&directory.join("attrib/pgr_support"), "0")?;
        put(&directory.join("enable"), "1")?;
        let name = format!("tcm-user/{index}/{serial}/{kind}");
        let (uio, length) = find(&name)?;
        let uio =
            File::options().read(true).write(true).open(&uio).with_context(|| uio.display().to_string())?;
        let ring = Map::new(&uio, length).context("cannot map the ring")?;
        Ok(Backend { drive, ring, uio, directory, index })
    }

    /// What makes it a disk, once a process serves it.
    pub fn link(&self) -> Link {
        Link { directory: self.directory.clone(), index: self.index }
    }

    /// Answer commands without end.
    ///
    /// # Errors
    /// When the ring is not as the kernel describes it.
    pub fn serve(mut self) -> Result<()> {
        loop {
            let mut count = [0; 4];
            self.uio.read_exact(&mut count).context("waiting for commands")?;
            self.answer_all()?;
        }
    }

    fn answer_all(&mut self) -> Result<()> {
        let (start, size) = (self.number(RING_OFFSET), self.number(RING_SIZE));
        let mut tail = self.number(TAIL);
        while tail != self.number(HEAD) {
            let entry = start + tail;
            let word = self.ring.load(entry);
            let (operation, length) = (word & 7, usize::try_from(word & !7)?);
            ensure!(length > 0 && tail + length <= size, "an entry of {length} bytes at {tail} of {size}");
            match operation {
                PAD => {}
                COMMAND => self.answer(entry)?,
                _ => self.ring.write(entry + USER_FLAGS, &[UNKNOWN]),
            }
            tail = (tail + length) % size;
            self.ring.store(TAIL, u32::try_from(tail)?);
            // Each at once: the next one may take minutes.
            self.uio.write_all(&1u32.to_ne_bytes()).context("notifying the kernel")?;
        }
        Ok(())
    }

    fn answer(&mut self, entry: usize) -> Result<()> {
        let areas = self.areas(entry)?;
        let cdb = self.cdb(entry)?;
        let mut out = Vec::new();
        for &(offset, length) in &areas {
            let old = out.len();
            out.resize(old + length, 0);
            self.ring.read(offset, &mut out[old..]);
        }
        let answer = self.drive.execute(&cdb, &out);
        for words in self.drive.take_notes() {
            eprintln!("drive {}: {words}", self.drive.spec().serial);
        }
        self.respond(entry, &areas, &answer)
    }

    fn respond(&self, entry: usize, areas: &[(usize, usize)], answer: &Answer) -> Result<()> {
        let mut rest = &answer.data[..];
        for &(offset, length) in areas {
            let (now, later) = rest.split_at(length.min(rest.len()));
            self.ring.write(offset, now);
            rest = later;
        }
        let sent = answer.data.len() - rest.len();
        let mut sense = [0; SENSE_BYTES];
        let length = answer.sense.len().min(SENSE_BYTES);
        sense[..length].copy_from_slice(&answer.sense[..length]);
        self.ring.write(entry + STATUS, &[answer.status, 0, 0, 0]);
        self.ring.write(entry + READ_LENGTH, &u32::try_from(sent)?.to_ne_bytes());
        self.ring.write(entry + SENSE, &sense);
        self.ring.write(entry + USER_FLAGS, &[if sent > 0 { READ_LENGTH_COUNTS } else { 0 }]);
        Ok(())
    }

    /// Parts of the ring that hold the command's data.
    fn areas(&self, entry: usize) -> Result<Vec<(usize, usize)>> {
        (0..self.number(entry + IOVECS))
            .map(|index| {
                let at = entry + IOVEC + index * 16;
                Ok((self.long(at)?, self.long(at + 8)?))
            })
            .collect()
    }

    fn cdb(&self, entry: usize) -> Result<Vec<u8>> {
        let at = self.long(entry + CDB)?;
        let mut code = [0];
        self.ring.read(at, &mut code);
        // SAM-6 5.2: the group code determines the length.
        let mut cdb = vec![
            0;
            match code[0] >> 5 {
                0 => 6,
                1 | 2 => 10,
                5 => 12,
                _ => 16,
            }
        ];
        self.ring.read(at, &mut cdb);
        Ok(cdb)
    }

    fn number(&self, offset: usize) -> usize {
        usize::try_from(self.ring.load(offset)).unwrap_or(usize::MAX)
    }

    fn long(&self, offset: usize) -> Result<usize> {
        let mut bytes = [0; 8];
        self.ring.read(offset, &mut bytes);
        Ok(usize::try_from(u64::from_ne_bytes(bytes))?)
    }
}

/// The way from a [`Backend`] to a disk.
#[derive(Debug)]
pub struct Link {
    directory: PathBuf,
    index: usize,
}

impl Link {
    /// Plug the drive in: a SCSI host with one disk, by `tcm_loop`. Returns when the kernel has looked at it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn plug_in(&self) -> Result<()> {
        let group = Path::new(TARGET).join(format!("loopback/naa.50014059{:08x}/tpgt_1", self.index));
        let unit = group.join("lun/lun_0");
        fs::create_dir_all(&group).with_context(|| format!("cannot create {}", group.display()))?;
        put(&group.join("nexus"), &format!("naa.5001405a{:08x}", self.index))?;
        fs::create_dir(&unit).with_context(|| format!("cannot create {}", unit.display()))?;
        symlink(&self.directory, unit.join("drive")).context("cannot link the drive to its host")
    }
}

fn put(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {text:?} to {}", file.display()))
}

/// Device and bytes of the ring with this name.
fn find(name: &str) -> Result<(PathBuf, usize)> {
    for entry in fs::read_dir("/sys/class/uio").context("cannot list /sys/class/uio")? {
        let path = entry?.path();
        if fs::read_to_string(path.join("name")).is_ok_and(|found| found.trim() == name) {
            let text = fs::read_to_string(path.join("maps/map0/size")).context("the ring's size")?;
            let digits = text.trim().trim_start_matches("0x");
            let size =
                usize::from_str_radix(digits, 16).with_context(|| format!("the ring's size {text:?}"))?;
            return Ok((Path::new("/dev").join(path.file_name().unwrap_or_default()), size));
        }
    }
    bail!("the kernel made no ring named {name}")
}
