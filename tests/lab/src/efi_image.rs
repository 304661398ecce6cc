//! A disk image that UEFI firmware starts only by a boot entry: a GPT, an EFI system partition, and on it a loader that says
//! on the serial port that it runs. There is no `EFI/BOOT`, which firmware would find without an entry. A BIOS starts its boot
//! sector, which says so, too.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::loopback::LoopDevice;
use crate::signatures;

/// What the loader says.
pub const BOOTED: &str = "LOADER STARTED BY UEFI";
/// What the boot sector says.
pub const BOOTED_BY_BIOS: &str = "BOOT SECTOR STARTED BY BIOS";
/// Where the filler begins, in MiB, on an image with sectors of 512 bytes; behind it is one MiB for the table's copy.
pub const FILLER: u64 = 19;
/// Number of the EFI system partition, and where it begins.
const NUMBER: u32 = 15;
const START: u64 = 2 * MIB;
const MIB: u64 = 1 << 20;

/// MiB of the EFI system partition. With large sectors its FAT needs more room to have the clusters of a FAT16.
fn partition_mib(sector: u32) -> u64 {
    if sector == 512 { 16 } else { 24 }
}

/// Writes the image, whose list of loaders has this label; `id` becomes the partition's GUID. So many MiB that cannot be
/// compressed follow the partition.
///
/// # Errors
/// When sgdisk, mkfs.vfat or mtools are missing or fail.
pub fn make(file: &Path, label: &str, id: &str, filler: u64) -> Result<()> {
    make_for(512, file, (label, id), filler)
}

/// [`make`] for a disk with sectors of 4096 bytes, without a filler.
///
/// # Errors
/// As [`make`], or when there is no loop device.
pub fn make_4k(file: &Path, label: &str, id: &str) -> Result<()> {
    make_for(4096, file, (label, id), 0)
}

fn make_for(sector: u32, file: &Path, (label, id): (&str, &str), filler: u64) -> Result<()> {
    let behind = START / MIB + partition_mib(sector) + 1;
    File::create(file)
        .and_then(|mut image| {
            image.set_len((behind + 1 + filler) * MIB)?;
            image.seek(SeekFrom::Start(behind * MIB))?;
            std::io::copy(&mut File::open("/dev/urandom")?.take(filler * MIB), &mut image)
        })
        .context("cannot make an image")?;
    let image = file.to_str().context("the path of an image")?;
    let (start, mib) = (START / u64::from(sector), partition_mib(sector));
    let sectors = format!("{NUMBER}:{start}:+{mib}M");
    let (kind, guid) = (format!("{NUMBER}:ef00"), format!("{NUMBER}:{id}"));
    let table = |on: &str| run("sgdisk", &["-n", &sectors, "-t", &kind, "-u", &guid, on]);
    if sector == 512 {
        table(image)?;
    } else {
        // sgdisk takes the sectors of a device as they are, and those of a file to have 512 bytes.
        let device = LoopDevice::attach(file, sector)?;
        table(device.path().to_str().context("the path of a device")?)?;
    }
    signatures::say(file, BOOTED_BY_BIOS)?;
    let (bytes, start, kib) = (sector.to_string(), start.to_string(), (mib * 1024).to_string());
    let size = ["-S", &bytes, "-s", if sector == 512 { "4" } else { "1" }, "--offset", &start];
    run("mkfs.vfat", &[&size[..], &["-F", "16", "-n", "ESP", image, &kib]].concat())?;
    let part = format!("{image}@@{START}");
    run("mmd", &["-i", &part, "::EFI", "::EFI/debian"])?;
    for (name, bytes) in [("BOOTX64.CSV", list("shimx64.efi", label)), ("shimx64.efi", loader())] {
        let source = file.with_extension(name);
        std::fs::write(&source, bytes)?;
        let source = source.to_str().context("the path of a file")?;
        run("mcopy", &["-i", &part, source, &format!("::EFI/debian/{name}")])?;
    }
    Ok(())
}

/// What OVMF says when it starts the boot entry of such an image on a disk with these sectors, after the number of the entry.
#[must_use]
pub fn started(sector: u32, label: &str, id: &str) -> String {
    let [start, length] = [START, partition_mib(sector) * MIB].map(|bytes| bytes / u64::from(sector));
    format!("\"{label}\" from HD({NUMBER},GPT,{id},0x{start:X},0x{length:X})/\\EFI\\debian\\shimx64.efi")
}

/// The same as a compressed qcow2.
///
/// # Errors
/// When qemu-img fails.
pub fn as_qcow2(raw: &Path, qcow2: &Path) -> Result<()> {
    let [raw, qcow2] = [raw, qcow2].map(|path| path.to_str().context("the path of an image"));
    run("qemu-img", &["convert", "-c", "-O", "qcow2", raw?, qcow2?])
}

/// The list of loaders that shim's fallback program and agents read: this one, which boot menus call `label`.
pub(crate) fn list(loader: &str, label: &str) -> Vec<u8> {
    let text = format!("\u{feff}{loader},{label},,This is the boot entry for {label}\n");
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).output().with_context(|| program.to_owned())?;
    ensure!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A program for x86-64 (UEFI Specification 2.10, 2.1.1; Microsoft's PE format, PE32+) with one section.
fn loader() -> Vec<u8> {
    // Straight to the port: the firmware's console adds control sequences.
    // cli; cld; lea rsi,[rip+text]; mov dx,0x3f8
    // next: lodsb; test al,al; jz stop; out dx,al; jmp next
    // stop: hlt; jmp stop
    let code = [
        0xfa, 0xfc, 0x48, 0x8d, 0x35, 0x0f, 0, 0, 0, 0x66, 0xba, 0xf8, 0x03, 0xac, 0x84, 0xc0, 0x74, 0x03,
        0xee, 0xeb, 0xf8, 0xf4, 0xeb, 0xfd,
    ];
    let mut file = vec![0; 0x400];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &[0x40]);
    // Machine x86-64, one section, 240 bytes of optional header, executable.
    put(0x40, b"PE\0\0\x64\x86\x01");
    put(0x54, &[0xf0, 0, 0x22]);
    let mut word = |at: usize, value: u32| put(0x58 + at, &value.to_le_bytes());
    // PE32+; code, entry point, base of the code and of the image, alignment in memory and in the file.
    word(0, 0x20b);
    for (at, value) in [(4, 0x200), (16, 0x1000), (20, 0x1000), (24, 0x40_0000), (32, 0x1000), (36, 0x200)] {
        word(at, value);
    }
    // Size of the image and of its headers, EFI application, 16 directories.
    for (at, value) in [(56, 0x2000), (60, 0x200), (68, 10), (108, 16)] {
        word(at, value);
    }
    put(0x148, b".text");
    let mut word = |at: usize, value: u32| put(0x148 + at, &value.to_le_bytes());
    for (at, value) in [(8, 0x200), (12, 0x1000), (16, 0x200), (20, 0x200), (36, 0x6000_0020)] {
        word(at, value);
    }
    put(0x200, &code);
    put(0x200 + code.len(), format!("\r\n{BOOTED}\r\n\0").as_bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `blkid` says of the EFI system partition.
    fn partition(file: &Path) -> String {
        let mut command = Command::new("blkid");
        command.args(["--probe", "--output", "export", "--offset", &START.to_string()]).arg(file);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    #[test]
    fn both_sector_sizes_have_a_fat_of_that_size_and_a_boot_sector() {
        let dir = tempfile::tempdir().unwrap();
        let (small, large) = (dir.path().join("small"), dir.path().join("large"));
        let id = "5CA1AB1E-0000-4000-8000-00000000C0DE";
        make(&small, "debian", id, 1).unwrap();
        make_4k(&large, "debian", id).unwrap();
        for (file, sector) in [(&small, 512), (&large, 4096)] {
            let found = partition(file);
            assert!(found.contains("VERSION=FAT16"), "{found}");
            assert!(found.contains(&format!("BLOCK_SIZE={sector}\n")), "{found}");
            let bytes = std::fs::read(file).unwrap();
            assert!(
                bytes[sector..].starts_with(b"EFI PART"),
                "no GPT in the second sector of {sector} bytes"
            );
            assert_eq!(bytes[510..512], [0x55, 0xaa]);
            assert!(bytes[..440].windows(11).any(|text| text == b"BOOT SECTOR"));
        }
        assert!(started(4096, "debian", id).contains("0x200,0x1800)/"));
        assert!(started(512, "debian", id).contains("0x1000,0x8000)/"));
    }
}
