//! The keys that a firmware has for Secure Boot (UEFI 2.10, 32.4.1), as its BMC knows them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::node::OVMF_MICROSOFT_VARS;
use crate::uefi_variables::{KeyVariable, X509, put, signature_list, value};

/// Names of the lists.
pub const DATABASES: [&str; 4] = ["PK", "KEK", "db", "dbx"];
/// Those that take certificates.
const OF_CERTIFICATES: [&str; 3] = ["PK", "KEK", "db"];
/// Bytes of `EFI_SIGNATURE_LIST` before its entries, and of the owner of an entry.
const HEAD: usize = 28;
const OWNER: usize = 16;

/// The lists, and the switch of the firmware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLists {
    /// The variables that there are, by name.
    lists: BTreeMap<&'static str, Vec<u8>>,
    /// `None`: the firmware has never been asked.
    switch: Option<bool>,
}

impl KeyLists {
    /// Those of a store of variables.
    ///
    /// # Errors
    /// When the file holds none.
    pub fn read(file: &Path) -> Result<Self> {
        let mut lists = BTreeMap::new();
        for name in DATABASES {
            if let Some(list) = value(file, name)? {
                lists.insert(name, list);
            }
        }
        let switch = value(file, KeyVariable::SWITCH.name)?.map(|value| value == [1]);
        Ok(Self { lists, switch })
    }

    /// Writes them into a store of variables.
    ///
    /// # Errors
    /// When the file holds none, or it is full.
    pub fn write(&self, file: &Path) -> Result<()> {
        let lists = KeyVariable::LISTS.map(|variable| {
            let list = self.lists.get(variable.name).map(Vec::as_slice);
            (variable, list)
        });
        put(file, &lists)?;
        let switch = self.switch.map(|on| [u8::from(on)]);
        put(file, &[(KeyVariable::SWITCH, switch.as_ref().map(<[u8; 1]>::as_slice))])
    }

    /// The certificates of a list, as DER.
    #[must_use]
    pub fn certificates(&self, database: &str) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut rest = self.lists.get(database).map(Vec::as_slice).unwrap_or_default();
        let number = |bytes: &[u8], at: usize| {
            let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes);
            four.and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
        };
        while rest.len() > HEAD {
            let (length, head, entry) = (number(rest, 16), number(rest, 20), number(rest, 24));
            let entries = rest.get(HEAD + head..length).unwrap_or_default();
            if rest.starts_with(&X509) && entry > OWNER {
                found.extend(entries.chunks_exact(entry).map(|entry| entry[OWNER..].to_vec()));
            }
            rest = rest.get(length.max(HEAD)..).unwrap_or_default();
        }
        found
    }

    /// Adds a certificate, and returns its place in the list.
    ///
    /// # Errors
    /// The list takes none, or has its only one.
    pub fn add(&mut self, database: &str, der: &[u8]) -> Result<usize> {
        let Some(name) = OF_CERTIFICATES.into_iter().find(|name| *name == database) else {
            bail!("{database} takes no certificates");
        };
        ensure!(der.starts_with(&[0x30, 0x82]), "it is no certificate");
        let place = self.certificates(name).len();
        ensure!(name != "PK" || place == 0, "there is a platform key already");
        self.lists.entry(name).or_default().extend(signature_list(der)?);
        Ok(place)
    }

    /// Deletes all keys.
    pub fn clear(&mut self) {
        self.lists.clear();
    }

    /// Brings back those with which the machine was sold: Microsoft's.
    ///
    /// # Errors
    /// When OVMF is not installed.
    pub fn restore_factory(&mut self) -> Result<()> {
        self.lists = Self::read(Path::new(OVMF_MICROSOFT_VARS))?.lists;
        Ok(())
    }

    /// Switches the check of signatures on or off.
    ///
    /// # Errors
    /// There is no platform key, without which it cannot be on.
    pub fn switch(&mut self, on: bool) -> Result<()> {
        ensure!(!on || self.has_platform_key(), "Secure Boot needs a platform key");
        self.switch = Some(on);
        Ok(())
    }

    /// Whether the firmware is out of its setup mode.
    #[must_use]
    pub fn has_platform_key(&self) -> bool {
        self.lists.contains_key("PK")
    }

    /// Whether signatures are checked.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.has_platform_key() && self.switch != Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_enrolled_is_in_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("vars");
        std::fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &file).unwrap();
        let mut keys = KeyLists::read(&file).unwrap();
        assert!(!keys.has_platform_key() && keys.switch(true).is_err());
        let [one, two] = ["one", "two"]
            .map(|name| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.der().to_vec());
        assert_eq!((keys.add("db", &one).unwrap(), keys.add("db", &two).unwrap()), (0, 1));
        keys.add("PK", &one).unwrap();
        for (name, der) in [("PK", two.as_slice()), ("dbx", &one), ("db", b"text")] {
            assert!(keys.add(name, der).is_err(), "{name}");
        }
        assert!(keys.is_on());
        keys.switch(false).unwrap();
        keys.write(&file).unwrap();
        let read = KeyLists::read(&file).unwrap();
        assert_eq!(read, keys);
        assert!(!read.is_on());
        assert_eq!(read.certificates("db"), [one.clone(), two]);
        assert_eq!(read.certificates("PK"), [one]);

        keys.restore_factory().unwrap();
        keys.write(&file).unwrap();
        let microsoft = KeyLists::read(&file).unwrap();
        assert!(microsoft.certificates("db").len() > 1 && microsoft.has_platform_key());
        keys.clear();
        keys.write(&file).unwrap();
        assert!(!KeyLists::read(&file).unwrap().has_platform_key());
    }
}
