//! Variables as files, in a directory that is like efivarfs: the same names and bytes; full where it is full.

use crate::disks::{debian, disk};
use boot_entries::disk::{all_partitions, entry};
use boot_entries::{Architecture, Efivars, LoadOption, install};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

const GUID: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

fn wanted() -> (LoadOption, BTreeSet<[u8; 16]>) {
    let file = debian();
    let disk = disk(&file, 512);
    let (option, _) = entry(&disk, Architecture::X64).expect("an entry");
    (option, all_partitions(&[disk]).expect("known"))
}

fn put(directory: &Path, name: &str, value: &[u8]) {
    let bytes = [&7u32.to_le_bytes()[..], value].concat();
    std::fs::write(directory.join(format!("{name}-{GUID}")), bytes).expect("written");
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|file| {
            let file = file.expect("a file");
            (file.file_name().to_string_lossy().into_owned(), std::fs::read(file.path()).expect("read"))
        })
        .collect();
    all.sort();
    all
}

fn words(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A machine with a network entry, one of a disk that is gone and an older one of ours.
fn machine(directory: &Path) {
    let (ours, _) = wanted();
    let mut gone = ours.clone();
    gone.description = "Fedora".into();
    gone.path[24] ^= 0xff;
    let older = LoadOption { data: vec![1], ..ours };
    let network = LoadOption { description: "PXE".into(), path: vec![0x7f, 0xff, 4, 0], ..older.clone() };
    for (number, option) in [(0, network), (1, gone), (2, older)] {
        put(directory, &format!("Boot{number:04X}"), &option.bytes().expect("short"));
    }
    put(directory, "BootOrder", &words(&[0, 1, 2]));
    put(directory, "BootCurrent", &words(&[0]));
    // Not about boot entries.
    std::fs::write(directory.join("Boot0007-00000000-0000-0000-0000-000000000000"), b"x").expect("written");
    put(directory, "BootOptionSupport", &[3, 0, 0, 0]);
    std::fs::write(directory.join(format!("Boot0009-{GUID}")), b"").expect("written");
}

#[test]
fn our_entry_is_the_first_and_a_second_run_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    machine(directory.path());
    let variables = Efivars::at(directory.path());
    let (ours, partitions) = wanted();
    let report = install(&variables, &ours, Some(&partitions)).expect("installed");
    assert_eq!((report.entry.as_str(), report.label.as_str(), report.added), ("Boot0001", "debian", true));
    assert_eq!(report.order, ["0001", "0000"]);
    let gone: Vec<_> = report.removed.iter().map(|gone| (gone.number, gone.label.as_str())).collect();
    assert_eq!(gone, [(1, "Fedora"), (2, "debian")]);
    let firmware = variables.firmware().expect("read");
    assert_eq!(firmware.order, [1, 0]);
    assert_eq!(firmware.entries[1], (1, ours.bytes().expect("short")));
    let after = files(directory.path());
    assert!(after.iter().any(|(name, bytes)| name.starts_with("Boot0001-") && bytes[..4] == [7, 0, 0, 0]));
    assert_eq!(after.len(), 7, "{after:?}");

    let read_only: Vec<_> = after.iter().map(|(name, _)| directory.path().join(name)).collect();
    let times =
        || read_only.iter().map(|path| path.metadata().and_then(|data| data.modified()).expect("a time"));
    let before: Vec<_> = times().collect();
    let report = install(&variables, &ours, Some(&partitions)).expect("installed");
    assert!(!report.added && report.removed.is_empty());
    assert_eq!((report.entry.as_str(), report.order), ("Boot0001", vec!["0001".into(), "0000".into()]));
    assert!(times().eq(before) && files(directory.path()) == after, "something was written");
}

/// What can hold so many files.
struct Full {
    directory: tempfile::TempDir,
}

impl Full {
    fn new(files: usize) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let options = format!("nr_inodes={}", files + 1);
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("tmpfs"), directory.path(), Some("tmpfs"), flags, Some(options.as_str())).expect("root");
        Self { directory }
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        let _ = umount2(self.directory.path(), MntFlags::MNT_DETACH);
    }
}

#[test]
fn what_goes_makes_room_for_ours() {
    let full = Full::new(9);
    machine(full.directory.path());
    let extra = full.directory.path().join("other");
    File::create(&extra).expect("the last file");
    File::create(extra.with_extension("more")).expect_err("it is full");
    let (ours, partitions) = wanted();
    let report = install(&Efivars::at(full.directory.path()), &ours, Some(&partitions)).expect("room");
    assert_eq!((report.added, report.removed.len()), (true, 2));
}

#[test]
fn full_nvram_is_named_and_the_order_stays() {
    let full = Full::new(3);
    let path = full.directory.path();
    let (ours, partitions) = wanted();
    let network = LoadOption { description: "PXE".into(), path: vec![0x7f, 0xff, 4, 0], ..ours.clone() };
    for name in ["Boot0000", "Boot0001"] {
        put(path, name, &network.bytes().expect("short"));
    }
    put(path, "BootOrder", &words(&[1, 0]));
    let before = files(path);
    let error = install(&Efivars::at(path), &ours, Some(&partitions)).expect_err("full").to_string();
    assert!(error.contains("NVRAM is full: it has 2 boot entries and no room for Boot0002"), "{error}");
    assert_eq!(files(path), before, "something was changed");
}

#[test]
fn an_entry_that_the_order_has_no_room_for_is_taken_back() {
    let full = Full::new(1);
    let path = full.directory.path();
    let (ours, partitions) = wanted();
    let error = install(&Efivars::at(path), &ours, Some(&partitions)).expect_err("full").to_string();
    assert!(error.contains("no room for BootOrder"), "{error}");
    assert!(files(path).is_empty());
}

#[test]
fn a_firmware_that_forgets_what_it_was_given_is_found_out() {
    let directory = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink("/dev/null", directory.path().join(format!("Boot0000-{GUID}")))
        .expect("a link");
    let (ours, _) = wanted();
    let error = install(&Efivars::at(directory.path()), &ours, None).expect_err("forgotten").to_string();
    assert!(error.contains("does not return the Boot0000"), "{error}");
    assert_eq!(files(directory.path()).len(), 1, "the order names an entry that is not there");
}

#[test]
fn immutable_files_are_changed_and_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    machine(directory.path());
    for name in ["BootOrder", "Boot0001", "Boot0002"] {
        let file = File::open(directory.path().join(format!("{name}-{GUID}"))).expect("a file");
        let flags = ioctl_getflags(&file).expect("a file system with flags");
        ioctl_setflags(&file, flags | IFlags::IMMUTABLE).expect("root");
    }
    let (ours, partitions) = wanted();
    let report = install(&Efivars::at(directory.path()), &ours, Some(&partitions)).expect("installed");
    assert_eq!(report.order, ["0001", "0000"]);
}

#[test]
fn a_variable_that_is_not_there_stays_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let variables = Efivars::below(directory.path());
    assert!(variables.directory().ends_with("firmware/efi/efivars"));
    let variables = Efivars::at(directory.path());
    assert_eq!(variables.read("BootOrder").expect("read"), None);
    assert!(variables.numbers("BootOrder").expect("read").is_empty());
    variables.remove("BootNext").expect("nothing");
    assert!(files(directory.path()).is_empty());
}
