//! A disk image with a Linux that boots: by BIOS, and by UEFI through a boot entry only, since it has no `EFI/BOOT`. GRUB loads
//! kernel and initramfs from the EFI system partition in both.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::efi_image::{list, run};

/// Where GRUB keeps what its images are made of.
const GRUB: &str = "/usr/lib/grub";
const SECTOR: u64 = 512;
/// First sector of GRUB's core for BIOS, in a partition of its own (number 14).
const CORE: u64 = 2048;
/// First sector, number and sectors of the EFI system partition.
const PARTITION: (u64, u32, u64) = (4096, 15, 48 << 11);
const MIB: u64 = 1 << 20;

/// Writes the image of the kernel and initramfs in `system`. It is called `label` in boot menus, and Linux finds
/// `instance=LABEL` on its command line; `id` becomes the GUID of its EFI system partition.
///
/// # Errors
/// When GRUB, sgdisk, mkfs.vfat or mtools are missing or fail.
pub fn make(file: &Path, system: &Path, label: &str, id: &str) -> Result<()> {
    let (start, number, sectors) = PARTITION;
    let disk = File::create_new(file).context("cannot make an image")?;
    disk.set_len((start + sectors) * SECTOR + MIB)?;
    let image = path(file)?;
    let core = format!("14:{CORE}:{}", start - 1);
    let (esp, kib) = (format!("{number}:{start}:+{}K", sectors / 2), (sectors / 2).to_string());
    let (kind, guid) = (format!("{number}:ef00"), format!("{number}:{id}"));
    run("sgdisk", &["-n", &core, "-t", "14:ef02", "-n", &esp, "-t", &kind, "-u", &guid, image])?;
    run(
        "mkfs.vfat",
        &["--offset", &start.to_string(), "-F", "16", "-n", volume(label).as_str(), image, &kib],
    )?;
    let part = format!("{image}@@{}", start * SECTOR);
    run("mmd", &["-i", &part, "::EFI", "::EFI/debian"])?;

    let config = file.with_extension("grub.cfg");
    std::fs::write(&config, commands(label))?;
    let (bios, uefi) = (file.with_extension("core.img"), file.with_extension("efi"));
    grub("i386-pc", &config, &bios, &["biosdisk"])?;
    grub("x86_64-efi", &config, &uefi, &[])?;
    let loaders = file.with_extension("csv");
    std::fs::write(&loaders, list("grubx64.efi", label))?;
    for (source, name) in [
        (system.join("vmlinuz"), "vmlinuz"),
        (system.join("initramfs"), "initramfs"),
        (uefi, "EFI/debian/grubx64.efi"),
        (loaders, "EFI/debian/BOOTX64.CSV"),
    ] {
        run("mcopy", &["-i", &part, path(&source)?, &format!("::{name}")])?;
    }
    let first = std::fs::read(format!("{GRUB}/i386-pc/boot.img")).context("GRUB for BIOS (grub-pc-bin)")?;
    start_by_bios(&disk, &first, &std::fs::read(bios)?)
}

/// What OVMF says when it starts the boot entry of such an image, after the number of the entry.
#[must_use]
pub fn started(label: &str, id: &str) -> String {
    let (start, number, sectors) = PARTITION;
    format!("\"{label}\" from HD({number},GPT,{id},0x{start:X},0x{sectors:X})/\\EFI\\debian\\grubx64.efi")
}

/// The label of the file system: upper case, at most 11 characters.
fn volume(label: &str) -> String {
    label.to_uppercase().chars().take(11).collect()
}

fn commands(label: &str) -> String {
    format!(
        "search.fs_label {} root\nlinux /vmlinuz console=ttyS0,115200 quiet cryptomgr.notests panic=-1 instance={label}\n\
         initrd /initramfs\nboot\n",
        volume(label)
    )
}

fn grub(platform: &str, config: &Path, to: &Path, modules: &[&str]) -> Result<()> {
    let from = format!("{GRUB}/{platform}");
    let mut line = vec!["-d", &from, "-O", platform, "-p", "/", "-c", path(config)?, "-o", path(to)?];
    line.extend(modules);
    line.extend(["part_gpt", "fat", "search_label", "linux", "boot"]);
    run("grub-mkimage", &line).context("GRUB (grub-common, grub-pc-bin, grub-efi-amd64-bin)")
}

/// What grub-bios-setup does to a block device (GRUB's `boot.S` and `diskboot.S`): the first sector loads the first one of
/// the core, which loads the others.
fn start_by_bios(disk: &File, first: &[u8], core: &[u8]) -> Result<()> {
    let mut first = first.get(..440).context("boot.img is too short")?.to_vec();
    let mut core = core.to_vec();
    let others = (core.len() as u64).div_ceil(SECTOR) - 1;
    ensure!(core.len() > 512 && CORE + others < PARTITION.0, "the core has {} bytes", core.len());
    first[0x5c..0x64].copy_from_slice(&CORE.to_le_bytes());
    // Two no-ops: the BIOS says from which drive it boots.
    first[0x66..0x68].copy_from_slice(&[0x90, 0x90]);
    core[500..508].copy_from_slice(&(CORE + 1).to_le_bytes());
    core[508..510].copy_from_slice(&u16::try_from(others)?.to_le_bytes());
    disk.write_all_at(&first, 0)?;
    disk.write_all_at(&core, CORE * SECTOR)?;
    Ok(())
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_both_loaders_and_the_system() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["vmlinuz", "initramfs"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        let file = dir.path().join("image.raw");
        make(&file, dir.path(), "first", "5CA1AB1E-0000-4000-8000-00000000C0DE").unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(bytes[510..512], [0x55, 0xaa]);
        assert_eq!(bytes[0x5c..0x64], 2048u64.to_le_bytes());
        assert_eq!(bytes[2048 * 512 + 500..2048 * 512 + 508], 2049u64.to_le_bytes());
        let listed = std::process::Command::new("mdir")
            .args(["-/", "-b", "-i", &format!("{}@@{}", file.display(), 4096 * 512)])
            .output()
            .unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap().to_lowercase();
        for name in ["vmlinuz", "initramfs", "efi/debian/grubx64.efi", "efi/debian/bootx64.csv"] {
            assert!(listed.contains(name), "{listed}");
        }
        assert!(started("first", "ID").contains("from HD(15,GPT,ID,0x1000,0x18000)/"));
    }
}
