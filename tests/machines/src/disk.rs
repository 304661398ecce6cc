//! A disk with a past, and the outside view of what is left of it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::disk::{Bus, DiskSpec, Fault};
use lab::fill;
use lab::scan::{self, Findings, Snapshot};
use lab::signatures::{self, Content, Table};

/// An image full of recognisable data and what it held.
#[derive(Debug)]
pub struct OldDisk {
    /// How it is attached.
    pub spec: DiskSpec,
    before: Snapshot,
}

impl OldDisk {
    /// Makes `SERIAL.img` in `dir`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make(dir: &Path, serial: &str, bus: Bus, bytes: u64) -> Result<Self> {
        let file = dir.join(format!("{serial}.img"));
        fill::fill(&file, serial, bytes)?;
        let before = Snapshot::take(&file)?;
        Ok(Self { spec: DiskSpec::new(file, bus, serial), before })
    }

    /// The same disk with a partition table and a label on it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn labelled(mut self, table: Table, content: Content) -> Result<Self> {
        signatures::write(&self.spec.file, table, content)?;
        self.before = Snapshot::take(&self.spec.file)?;
        Ok(self)
    }

    /// `SERIAL.img` of `bytes` without data, and what `write` puts on it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prepared(
        dir: &Path,
        serial: &str,
        bus: Bus,
        bytes: u64,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Self> {
        let file = dir.join(format!("{serial}.img"));
        File::create(&file).and_then(|image| image.set_len(bytes)).context("cannot make an image")?;
        write(&file)?;
        let before = Snapshot::take(&file)?;
        Ok(Self { spec: DiskSpec::new(file, bus, serial).with_holes(), before })
    }

    /// The same disk with a fault.
    #[must_use]
    pub fn with(mut self, fault: Fault) -> Self {
        self.spec = self.spec.with(fault);
        self
    }

    /// Its serial number.
    pub fn serial(&self) -> &str {
        &self.spec.serial
    }

    /// The same disk, looked at in another file: what it held before is known.
    #[must_use]
    pub fn as_file(&self, file: PathBuf) -> Self {
        Self { spec: DiskSpec { file, ..self.spec.clone() }, before: self.before.clone() }
    }

    /// What is left, seen from outside.
    ///
    /// # Errors
    /// When the image cannot be read.
    pub fn findings(&self) -> Result<Findings> {
        self.before.compare(&self.spec.file)
    }

    /// Nothing but zeroes.
    ///
    /// # Errors
    /// When anything else is on it, with the counts.
    pub fn ensure_erased(&self) -> Result<()> {
        let found = self.findings()?;
        ensure!(found.held_data > 0, "{} held no data before: nothing is proven", self.serial());
        let clean = found.unchanged == 0 && found.tags == 0 && found.nonzero_bytes == 0;
        ensure!(clean, "disk {} is not erased: {found:?}", self.serial());
        Ok(())
    }

    /// A copy of it as it is now, for [`OldDisk::ensure_same`].
    ///
    /// # Errors
    /// When it cannot be copied.
    pub fn copy(&self) -> Result<PathBuf> {
        let copy = self.spec.file.with_extension("copy");
        std::fs::copy(&self.spec.file, &copy).context("a copy of a disk")?;
        Ok(copy)
    }

    /// Every byte is that of the copy.
    ///
    /// # Errors
    /// When one is not.
    pub fn ensure_same(&self, copy: &Path) -> Result<()> {
        let differs = scan::first_difference(&self.spec.file, copy)?;
        ensure!(differs.is_none(), "disk {} was written at byte {differs:?}", self.serial());
        Ok(())
    }

    /// No partition table and no boot loader has come to it: its first and its last MiB hold zeroes or what they held before,
    /// which cannot be booted.
    ///
    /// # Errors
    /// When they hold something else.
    pub fn ensure_unbootable(&self) -> Result<()> {
        let (file, size) = (&self.spec.file, self.findings()?.size);
        for from in [0, size - (1 << 20)] {
            let changed = self.before.changed_to_data(file, from, 1 << 20)?;
            ensure!(changed == 0, "disk {}: {changed} new sectors in the MiB at {from}", self.serial());
        }
        let mut sector = [0; 512];
        File::open(file)?.read_exact_at(&mut sector, 0)?;
        ensure!(sector[510..] != [0x55, 0xaa], "disk {} has a boot sector", self.serial());
        Ok(())
    }

    /// Not one byte written.
    ///
    /// # Errors
    /// When it was changed.
    pub fn ensure_untouched(&self) -> Result<()> {
        let now = Snapshot::take(&self.spec.file).context("outside view")?;
        ensure!(now == self.before, "disk {} was written: {:?}", self.serial(), self.findings()?);
        Ok(())
    }
}
