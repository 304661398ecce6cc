//! A disk image that UEFI firmware starts only by a boot entry: a GPT, an EFI system partition, and on it a loader that says
//! on the serial port that it runs. There is no `EFI/BOOT`, which firmware would find without an entry.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What the loader says.
pub const BOOTED: &str = "LOADER STARTED BY UEFI";
/// First sector of the EFI system partition, its number and KiB.
const PARTITION: (u32, &str, &str) = (4096, "15", "16384");
/// Where the filler begins, in MiB; behind it is one MiB for the table's copy.
pub const FILLER: u64 = 19;
const MIB: u64 = 1 << 20;

/// Writes the image, whose list of loaders has this label; `id` becomes the partition's GUID. So many MiB that cannot be
/// compressed follow the partition.
///
/// # Errors
/// When sgdisk, mkfs.vfat or mtools are missing or fail.
pub fn make(file: &Path, label: &str, id: &str, filler: u64) -> Result<()> {
    let (start, number, kib) = PARTITION;
    File::create(file)
        .and_then(|mut image| {
            image.set_len((FILLER + 1 + filler) * MIB)?;
            image.seek(SeekFrom::Start(FILLER * MIB))?;
            std::io::copy(&mut File::open("/dev/urandom")?.take(filler * MIB), &mut image)
        })
        .context("cannot make an image")?;
    let image = file.to_str().context("the path of an image")?;
    let sectors = format!("{number}:{start}:+{kib}K");
    let (kind, guid) = (format!("{number}:ef00"), format!("{number}:{id}"));
    run("sgdisk", &["-n", &sectors, "-t", &kind, "-u", &guid, image])?;
    run("mkfs.vfat", &["--offset", &start.to_string(), "-F", "16", "-n", "ESP", image, kib])?;
    let part = format!("{image}@@{}", u64::from(start) * 512);
    run("mmd", &["-i", &part, "::EFI", "::EFI/debian"])?;
    for (name, bytes) in [("BOOTX64.CSV", list("shimx64.efi", label)), ("shimx64.efi", loader())] {
        let source = file.with_extension(name);
        std::fs::write(&source, bytes)?;
        let source = source.to_str().context("the path of a file")?;
        run("mcopy", &["-i", &part, source, &format!("::EFI/debian/{name}")])?;
    }
    Ok(())
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
