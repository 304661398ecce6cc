//! The firmware's variables as files of efivarfs: `NAME-GUID`, 4 bytes of attributes, then the value.

use crate::plan::Firmware;
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Vendor GUID of the variables that the specification names.
const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// Vendor GUID of what a kernel stores of its crash (`LINUX_EFI_CRASH_GUID` of linux/efi.h).
const CRASH: &str = "cfc8fc79-be2e-4ddc-97f0-9f98bfe298a0";
/// Kept without power, and there before and after the operating system starts.
const ATTRIBUTES: u32 = 7;

/// The directory where they are.
#[derive(Debug, Clone)]
pub struct Efivars {
    directory: PathBuf,
}

impl Efivars {
    /// Where the kernel has them, below `sys`.
    pub fn below(sys: &Path) -> Self {
        Self { directory: sys.join("firmware/efi/efivars") }
    }

    /// The variables in this directory.
    pub fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}-{GLOBAL}"))
    }

    /// The value of a variable; `None` without one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path(name)) {
            // An empty file: the kernel has the name, the firmware no value.
            Ok(bytes) => Ok(bytes.get(4..).map(<[u8]>::to_vec)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The numbers in a variable.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn numbers(&self, name: &str) -> io::Result<Vec<u16>> {
        let value = self.read(name)?.unwrap_or_default();
        Ok(value.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
    }

    /// All that is about boot entries.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn firmware(&self) -> io::Result<Firmware> {
        let mut entries = Vec::new();
        for file in fs::read_dir(&self.directory)? {
            let name = file?.file_name();
            let number = name.to_str().and_then(number);
            if let Some(number) = number
                && let Some(value) = self.read(&entry_name(number))?
            {
                entries.push((number, value));
            }
        }
        entries.sort();
        let one = |name: &str| Ok::<_, io::Error>(self.numbers(name)?.first().copied());
        let (current, next) = (one("BootCurrent")?, one("BootNext")?);
        Ok(Firmware { entries, order: self.numbers("BootOrder")?, current, next })
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// When the firmware does not take it. A variable that was not there is not there then.
    pub fn write(&self, name: &str, value: &[u8]) -> io::Result<()> {
        let path = self.path(name);
        let new = !path.exists();
        let written = self.try_write(&path, value);
        if new && written.is_err() {
            // The kernel keeps a name without a value.
            let _ = fs::remove_file(&path);
        }
        written
    }

    fn try_write(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        writable(path)?;
        let mut bytes = ATTRIBUTES.to_le_bytes().to_vec();
        bytes.extend(value);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        // One call of write is one call of the firmware.
        match file.write(&bytes)? {
            written if written == bytes.len() => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Removes a variable; there may be none.
    ///
    /// # Errors
    /// When the firmware keeps it.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        remove(&self.path(name))
    }

    /// The files of variables in which a kernel stored a part of its log when it crashed, sorted; none without variables.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn crash_records(&self) -> io::Result<Vec<String>> {
        let files = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            files => files?,
        };
        let names = files.map(|file| Ok(file?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.collect::<io::Result<_>>()?;
        names.retain(|name| name.strip_suffix(CRASH).is_some_and(|name| name.ends_with('-')));
        names.sort();
        Ok(names)
    }

    /// Removes one of [`Self::crash_records`]; it may be gone.
    ///
    /// # Errors
    /// When the firmware keeps it.
    pub fn remove_crash_record(&self, file: &str) -> io::Result<()> {
        remove(&self.directory.join(file))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    writable(path)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The kernel makes files immutable whose removal has broken machines.
fn writable(path: &Path) -> io::Result<()> {
    let Ok(file) = File::open(path) else { return Ok(()) };
    // File systems without such flags have no such files.
    match ioctl_getflags(&file) {
        Ok(flags) if flags.contains(IFlags::IMMUTABLE) => {
            Ok(ioctl_setflags(&file, flags.difference(IFlags::IMMUTABLE))?)
        }
        _ => Ok(()),
    }
}

/// `Boot0001`
pub fn entry_name(number: u16) -> String {
    format!("Boot{number:04X}")
}

/// The number of an entry's file.
fn number(file: &str) -> Option<u16> {
    let id = file.strip_prefix("Boot")?.strip_suffix(GLOBAL)?.strip_suffix('-')?;
    let hex = id.len() == 4 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u16::from_str_radix(id, 16).ok()).flatten()
}
