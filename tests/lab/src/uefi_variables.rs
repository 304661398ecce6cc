//! The firmware's variables of a node that is off, in the file of its flash (EDK II `Guid/VariableFormat.h`,
//! `Pi/PiFirmwareVolume.h`): read, set, filled up, and the keys of Secure Boot enrolled.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::tls::der;

/// `gEfiAuthenticatedVariableGuid`.
const STORE: [u8; 16] =
    [0x78, 0x2c, 0xf3, 0xaa, 0x7b, 0x94, 0x9a, 0x43, 0xa1, 0x80, 0x2e, 0x14, 0x4e, 0xc3, 0x77, 0x92];
/// Bytes of the header of the store, and of a variable.
const STORE_HEADER: usize = 28;
const HEADER: usize = 60;
const START_ID: [u8; 2] = [0xaa, 0x55];
/// State of a variable that is there.
const ADDED: u8 = 0x3f;
/// Kept without power, and there before and after the operating system starts.
const ATTRIBUTES: u32 = 7;
/// Of a variable that fills the store; OVMF takes 33 KiB.
const LARGEST: usize = 0x7000;
/// Vendor of the variables that fill it, and of no others.
const FILLER: [u8; 16] = *b"filler of a test";

/// `gEfiGlobalVariableGuid`, of the variables that the UEFI specification defines.
const GLOBAL: [u8; 16] =
    [0x61, 0xdf, 0xe4, 0x8b, 0xca, 0x93, 0xd2, 0x11, 0xaa, 0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c];
/// `LINUX_EFI_CRASH_GUID`, of what a kernel stores of its crash.
const CRASH: [u8; 16] =
    [0x79, 0xfc, 0xc8, 0xcf, 0x2e, 0xbe, 0xdc, 0x4d, 0x97, 0xf0, 0x9f, 0x98, 0xbf, 0xe2, 0x98, 0xa0];
/// Its name, as the kernel makes it: kind, part, count, seconds since 1970, and C for compressed.
pub const CRASH_RECORD: &str = "dump-type0-1-1-1700000000-C";
/// Number of the load option of a URL; the firmware counts its own from 0.
const URL_OPTION: u16 = 0xa1ea;
/// `EFI_IMAGE_SECURITY_DATABASE_GUID`, of the keys that sign programs.
const SECURITY_DATABASE: [u8; 16] =
    [0xcb, 0xb2, 0x19, 0xd7, 0x3a, 0x3d, 0x96, 0x45, 0xa3, 0xbc, 0xda, 0xd0, 0x0e, 0x67, 0x65, 0x6f];
/// `EFI_CERT_X509_GUID`.
pub(crate) const X509: [u8; 16] =
    [0xa1, 0x59, 0xc0, 0xa5, 0xe4, 0x94, 0xa7, 0x4a, 0x87, 0xb5, 0xab, 0x15, 0x5c, 0x2b, 0xf0, 0x72];
/// The owner of the keys.
const OWNER: [u8; 16] = *b"owner of a test.";
/// Of the variables of Secure Boot: as others, and only changed by who shows a key
/// (`EFI_VARIABLE_TIME_BASED_AUTHENTICATED_WRITE_ACCESS`).
const AUTHENTICATED: u32 = ATTRIBUTES | 0x20;
/// Kept without power, and there before the operating system starts alone.
const BEFORE_THE_SYSTEM: u32 = 3;
/// `gEfiSecureBootEnableDisableGuid`.
const SECURE_BOOT_SWITCH: [u8; 16] =
    [0xac, 0x7b, 0xa3, 0xf0, 0x56, 0x45, 0xc4, 0x4c, 0x99, 0xa9, 0x00, 0x10, 0x09, 0xc9, 0x3a, 0x44];

/// Certificates (PEM files) of the keys that a firmware has for Secure Boot.
#[derive(Debug, Clone)]
pub struct SecureBootKeys {
    /// The platform key.
    pub platform: PathBuf,
    /// The key that may change the lists.
    pub exchange: PathBuf,
    /// The key that signs programs.
    pub programs: PathBuf,
}

/// What a firmware with Secure Boot comes with.
#[derive(Debug, Clone)]
pub enum SecureBoot {
    /// These keys, and no others.
    Keys(SecureBootKeys),
    /// Microsoft's, as machines are sold.
    Microsoft,
    /// None: in its setup mode it starts every program, until it has a platform key.
    Setup,
}

/// The store in the flash.
struct Store {
    bytes: Vec<u8>,
    /// Where the first variable is, and where the next one would be.
    begin: usize,
    end: usize,
    limit: usize,
    /// Name, value and place of each variable that is there.
    present: Vec<(String, Vec<u8>, Range<usize>)>,
}

impl Store {
    fn read(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        let begin = usize::from(u16_at(&bytes, 48)?);
        ensure!(bytes[40..44] == *b"_FVH" && bytes[begin..].starts_with(&STORE), "no store of variables");
        let limit = begin + usize::try_from(u32_at(&bytes, begin + 16)?)?;
        ensure!(limit <= bytes.len(), "the store is larger than its file");
        let begin = begin + STORE_HEADER;
        let (mut at, mut present) = (begin, Vec::new());
        while at + HEADER <= limit && bytes[at..at + 2] == START_ID {
            let state = bytes[at + 2];
            let [name, value] = [36, 40].map(|place| u32_at(&bytes, at + place));
            let (name, value) = (usize::try_from(name?)?, usize::try_from(value?)?);
            let data = at + HEADER + name;
            ensure!(data + value <= limit, "a variable is larger than the store");
            let next = (data + value).next_multiple_of(4);
            if state == ADDED {
                let units = bytes[at + HEADER..data].chunks_exact(2);
                let units: Vec<u16> = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
                let text = String::from_utf16_lossy(&units).trim_end_matches('\0').to_owned();
                present.push((text, bytes[data..data + value].to_vec(), at..next));
            }
            at = next;
        }
        ensure!(bytes[at..limit].iter().all(|&byte| byte == 0xff), "something lies behind the last variable");
        Ok(Self { bytes, begin, end: at, limit, present })
    }

    /// Drops what variables that are gone have left, as the firmware does when it needs room.
    fn compact(&mut self) {
        let places = self.present.iter().map(|(.., place)| &self.bytes[place.clone()]);
        let kept: Vec<u8> = places.flatten().copied().collect();
        self.bytes[self.begin..self.limit].fill(0xff);
        self.end = self.begin + kept.len();
        self.bytes[self.begin..self.end].copy_from_slice(&kept);
    }

    fn add(&mut self, vendor: [u8; 16], name: &str, value: &[u8]) -> Result<()> {
        self.add_as(ATTRIBUTES, vendor, name, value)
    }

    fn add_as(&mut self, attributes: u32, vendor: [u8; 16], name: &str, value: &[u8]) -> Result<()> {
        let name: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let mut header = [0; HEADER];
        header[..2].copy_from_slice(&START_ID);
        header[2] = ADDED;
        header[4..8].copy_from_slice(&attributes.to_le_bytes());
        header[36..40].copy_from_slice(&u32::try_from(name.len())?.to_le_bytes());
        header[40..44].copy_from_slice(&u32::try_from(value.len())?.to_le_bytes());
        header[44..60].copy_from_slice(&vendor);
        let all = [&header[..], &name, value].concat();
        ensure!(self.end + all.len() <= self.limit, "the store is full");
        self.bytes[self.end..self.end + all.len()].copy_from_slice(&all);
        self.end = (self.end + all.len()).next_multiple_of(4);
        Ok(())
    }
}

/// The value of a variable; `None` without one.
///
/// # Errors
/// When the file holds no such store.
pub fn value(file: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let present = Store::read(file)?.present;
    Ok(present.into_iter().find(|(known, ..)| known == name).map(|(_, value, _)| value))
}

/// Leaves a [`CRASH_RECORD`] in the store.
///
/// # Errors
/// When the file holds no such store, or it is full.
pub fn leave_crash_record(file: &Path) -> Result<()> {
    let mut store = Store::read(file)?;
    store.add(CRASH, CRASH_RECORD, b"what a tenant's kernel said last")?;
    std::fs::write(file, &store.bytes).with_context(|| format!("cannot write {}", file.display()))
}

/// Fills the store until so many bytes are left.
///
/// # Errors
/// When the file holds no such store, or less is left already.
pub fn fill(file: &Path, left: usize) -> Result<()> {
    let mut store = Store::read(file)?;
    store.compact();
    let free = |store: &Store| store.limit - store.end;
    ensure!(free(&store) > left, "{} bytes are left already", free(&store));
    for number in 0.. {
        let name = format!("Fill{number:04}");
        let overhead = HEADER + 2 * (name.len() + 1);
        let Some(room) = (free(&store) - left).checked_sub(overhead + 4) else { break };
        store.add(FILLER, &name, &vec![0x5a; room.min(LARGEST)])?;
    }
    std::fs::write(file, &store.bytes).with_context(|| format!("cannot write {}", file.display()))
}

/// Lets the firmware boot from this URL next, once (UEFI 2.10, 3.1.3 Load Options, 10.3.4.23 Uniform Resource Identifiers).
///
/// # Errors
/// When the file holds no such store, or it is full.
pub fn boot_next(file: &Path, url: &str) -> Result<()> {
    let mut path = vec![3, 24];
    path.extend(u16::try_from(url.len() + 4)?.to_le_bytes());
    path.extend(url.as_bytes());
    path.extend([0x7f, 0xff, 4, 0]);
    let name: Vec<u8> = "URL of the BMC\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let active = 1_u32.to_le_bytes();
    let option = [&active[..], &u16::try_from(path.len())?.to_le_bytes(), &name, &path].concat();
    let variables = [
        (format!("Boot{URL_OPTION:04X}"), option),
        ("BootNext".to_owned(), URL_OPTION.to_le_bytes().to_vec()),
    ];
    let mut store = Store::read(file)?;
    store.present.retain(|(known, ..)| variables.iter().all(|(name, _)| name != known));
    store.compact();
    for (name, value) in &variables {
        store.add(GLOBAL, name, value)?;
    }
    std::fs::write(file, &store.bytes).with_context(|| format!("cannot write {}", file.display()))
}

/// A variable that keeps without power what Secure Boot works with.
pub(crate) struct KeyVariable {
    attributes: u32,
    vendor: [u8; 16],
    /// Its name.
    pub(crate) name: &'static str,
}

impl KeyVariable {
    /// The lists of keys, the platform key first.
    pub(crate) const LISTS: [Self; 4] = [
        Self { attributes: AUTHENTICATED, vendor: GLOBAL, name: "PK" },
        Self { attributes: AUTHENTICATED, vendor: GLOBAL, name: "KEK" },
        Self { attributes: AUTHENTICATED, vendor: SECURITY_DATABASE, name: "db" },
        Self { attributes: AUTHENTICATED, vendor: SECURITY_DATABASE, name: "dbx" },
    ];
    /// EDK II's switch: one byte, 1 for on.
    pub(crate) const SWITCH: Self =
        Self { attributes: BEFORE_THE_SYSTEM, vendor: SECURE_BOOT_SWITCH, name: "SecureBootEnable" };
}

/// Puts variables in the place of those with the same names. Without a value there is none.
///
/// # Errors
/// When the file holds no such store, or it is full.
pub(crate) fn put(file: &Path, variables: &[(KeyVariable, Option<&[u8]>)]) -> Result<()> {
    let mut store = Store::read(file)?;
    store.present.retain(|(known, ..)| variables.iter().all(|(variable, _)| variable.name != known));
    store.compact();
    for (variable, value) in variables {
        if let Some(value) = value {
            store.add_as(variable.attributes, variable.vendor, variable.name, value)?;
        }
    }
    std::fs::write(file, &store.bytes).with_context(|| format!("cannot write {}", file.display()))
}

/// Gives a firmware these keys (UEFI 2.10, 32.3 and 32.4.1): it leaves its setup mode, and starts signed programs only.
///
/// # Errors
/// When the file holds no such store, or a certificate cannot be read.
pub fn enrol(file: &Path, keys: &SecureBootKeys) -> Result<()> {
    let [pk, kek, db, _] = KeyVariable::LISTS;
    let list = |certificate: &Path| signature_list(&der(certificate)?);
    let (platform, exchange, programs) =
        (list(&keys.platform)?, list(&keys.exchange)?, list(&keys.programs)?);
    put(file, &[(pk, Some(&platform)), (kek, Some(&exchange)), (db, Some(&programs))])
}

/// `EFI_SIGNATURE_LIST` with one certificate.
pub(crate) fn signature_list(der: &[u8]) -> Result<Vec<u8>> {
    const HEAD: usize = 28;
    let entry = OWNER.len() + der.len();
    let numbers = [HEAD + entry, 0, entry].map(u32::try_from);
    let mut list = X509.to_vec();
    for number in numbers {
        list.extend(number?.to_le_bytes());
    }
    list.extend(OWNER);
    list.extend(der);
    Ok(list)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    let part = bytes.get(at..at + 2).context("the flash is too small")?;
    Ok(u16::from_le_bytes([part[0], part[1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let part = bytes.get(at..at + 4).context("the flash is too small")?;
    Ok(u32::from_le_bytes([part[0], part[1], part[2], part[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_booted_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("vars");
        std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &file).unwrap();
        for url in ["http://192.0.2.1/first.iso", "http://192.0.2.1/a.iso"] {
            boot_next(&file, url).unwrap();
            let option = value(&file, "BootA1EA").unwrap().unwrap();
            assert!(option.windows(url.len()).any(|part| part == url.as_bytes()), "{url}");
        }
        assert_eq!(value(&file, "BootNext").unwrap(), Some(vec![0xea, 0xa1]));
        let names = Store::read(&file).unwrap().present.into_iter().map(|(name, ..)| name);
        assert_eq!(names.filter(|name| name.starts_with("Boot")).count(), 2);
    }

    #[test]
    fn keys_are_enrolled_as_lists_with_one_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("vars");
        std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &file).unwrap();
        let pem = dir.path().join("key.crt");
        std::fs::write(&pem, rcgen::generate_simple_self_signed(["k".to_owned()]).unwrap().cert.pem())
            .unwrap();
        let keys = SecureBootKeys { platform: pem.clone(), exchange: pem.clone(), programs: pem.clone() };
        enrol(&file, &keys).unwrap();
        let der = der(&pem).unwrap();
        for name in ["PK", "KEK", "db"] {
            let list = value(&file, name).unwrap().unwrap();
            assert!(list.starts_with(&X509) && list.ends_with(&der), "{name}");
            assert_eq!(u32_at(&list, 16).unwrap() as usize, list.len());
            assert_eq!(u32_at(&list, 24).unwrap() as usize, der.len() + 16);
        }
        assert!(enrol(&file, &SecureBootKeys { programs: dir.path().join("none"), ..keys }).is_err());
    }

    #[test]
    fn the_empty_store_of_ovmf_is_filled_up() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("vars");
        std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &file).unwrap();
        assert_eq!(value(&file, "BootOrder").unwrap(), None);
        fill(&file, 2000).unwrap();
        let store = Store::read(&file).unwrap();
        let left = store.limit - store.end;
        assert!((2000..2200).contains(&left), "{left} bytes are left");
        assert_eq!(value(&file, "Fill0000").unwrap().map(|value| value.len()), Some(LARGEST));
        assert!(fill(&file, left).is_err());

        // A variable that is gone makes room for the next one.
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[store.begin + 2] &= 0xfd;
        std::fs::write(&file, bytes).unwrap();
        assert_eq!(value(&file, "Fill0000").unwrap(), None);
        fill(&file, 2000).unwrap();
        assert_eq!(value(&file, "Fill0000").unwrap().map(|value| value.len()), Some(LARGEST));
    }
}
