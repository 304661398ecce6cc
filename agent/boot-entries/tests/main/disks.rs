//! Whole disks: which partition is an EFI system partition, and which partitions there are.

use crate::bytes::{ESP, hex};
use crate::file_systems::{list, made};
use boot_entries::disk::{all_partitions, entry};
use boot_entries::{Architecture, Disk, Efivars, LoadOption, Signature, device_path};
use std::os::unix::fs::FileExt;
use std::process::Command;

const MIB: u64 = 1 << 20;

pub fn disk(file: &tempfile::NamedTempFile, sector: usize) -> Disk {
    let size = file.as_file().metadata().expect("a size").len();
    Disk { name: "/dev/sdx".into(), file: file.reopen().expect("the file"), size, sector }
}

/// A file of 32 MiB with what `tool` wrote into it.
fn partitioned(tool: &str, arguments: &[&str], input: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(32 * MIB).expect("a size");
    let script = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(script.path(), input).expect("its input");
    let mut command = Command::new(tool);
    command.args(arguments).arg(file.path()).stdin(script.reopen().expect("the input"));
    let done = command.output().expect("installed (cargo xtask deps)");
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    file
}

/// With an EFI system partition number 15, from 2 MiB on, and a partition after it.
pub fn image(files: &[(&str, &[u8])]) -> tempfile::NamedTempFile {
    let arguments = [
        "-n",
        "15:4096:+16M",
        "-t",
        "15:ef00",
        "-u",
        "15:5CA1AB1E-0000-4000-8000-00000000C0DE",
        "-n",
        "1:0:0",
    ];
    let file = partitioned("sgdisk", &arguments, "");
    file.as_file().write_all_at(&made(16 << 10, "16", files), 2 * MIB).expect("the file system");
    file
}

/// As Debian's image has it.
pub fn debian() -> tempfile::NamedTempFile {
    image(&[("EFI/debian/BOOTX64.CSV", &list("debian")), ("EFI/debian/shimx64.efi", b"MZ")])
}

fn option(disk: &Disk) -> Result<LoadOption, String> {
    entry(disk, Architecture::X64).map(|(option, _)| option)
}

#[test]
fn the_entry_of_a_disk_is_that_of_efibootmgr() {
    let bytes = option(&disk(&debian(), 512)).expect("an entry").bytes();
    let expected = "010000006200640065006200690061006e00000004012a000f000000001000000000000000800000000000001\
                    eaba15c00000040800000000000c0de0202040434005c004500460049005c00640065006200690061006e005\
                    c007300680069006d007800360034002e0065006600690000007fff0400";
    assert_eq!(bytes, Some(hex(expected)));
}

#[test]
fn a_partition_of_an_mbr_is_known_by_its_disk() {
    let script =
        "label: dos\nlabel-id: 0x1a2b3c4d\nstart=2048,size=4096,type=83\nstart=8192,size=32768,type=ef\n";
    let file = partitioned("sfdisk", &["-q"], script);
    let files: [(&str, &[u8]); 1] = [("EFI/BOOT/BOOTX64.EFI", b"MZ")];
    file.as_file().write_all_at(&made(16 << 10, "16", &files), 4 * MIB).expect("the file system");
    let option = option(&disk(&file, 512)).expect("an entry");
    let drive = device_path::partition(&option.path).expect("on a disk");
    assert_eq!((drive.number, drive.start, drive.sectors), (2, 8192, 32768));
    assert_eq!(drive.signature, Signature::Mbr([0x4d, 0x3c, 0x2b, 0x1a]));
}

#[test]
fn a_disk_that_uefi_cannot_boot_is_named_with_the_cause() {
    let data = partitioned("sgdisk", &["-n", "1:0:0"], "");
    let mbr = partitioned("sfdisk", &["-q"], "label: dos\nstart=2048,type=83\n");
    let empty = image(&[]);
    let blank = tempfile::NamedTempFile::new().expect("a file");
    blank.as_file().set_len(MIB).expect("a size");
    for (file, expected) in [
        (&data, "/dev/sdx cannot be booted by UEFI: it has no EFI system partition"),
        (&mbr, "/dev/sdx cannot be booted by UEFI: it has no EFI system partition"),
        (&blank, "/dev/sdx cannot be booted by UEFI: there is none: no GPT and no MBR"),
        (&empty, "the EFI system partition (number 15) of /dev/sdx cannot be booted: it has neither"),
    ] {
        let problem = option(&disk(file, 512)).expect_err(expected);
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn the_partitions_of_all_disks_are_known_or_none() {
    let (debian, blank) = (debian(), tempfile::NamedTempFile::new().expect("a file"));
    blank.as_file().set_len(MIB).expect("a size");
    let empty = partitioned("sgdisk", &["-o"], "");
    let all = [disk(&debian, 512), disk(&blank, 512), disk(&empty, 512)];
    let ids = all_partitions(&all).expect("known");
    assert!(ids.contains(&ESP) && ids.len() == 2);
    // Its first sectors are lost: its backup names what the firmware may still find.
    debian.as_file().write_all_at(&[0; 4096], 0).expect("written");
    let problem = all_partitions(&all).expect_err("a damaged one");
    assert_eq!(problem, "/dev/sdx: its GPT cannot be read");
}

#[test]
fn a_disk_is_only_read() {
    let file = debian();
    let before = std::fs::read(file.path()).expect("read");
    let read_only = Disk { file: std::fs::File::open(file.path()).expect("the file"), ..disk(&file, 512) };
    option(&read_only).expect("an entry");
    assert!(std::fs::read(file.path()).expect("read") == before);
    let none = Efivars::at(file.path());
    assert!(none.firmware().is_err());
}
