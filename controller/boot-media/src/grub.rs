//! The medium that boots by UEFI through Debian's signed shim and GRUB, for a firmware with Secure Boot and Microsoft's keys. GRUB reads
//! its configuration, the kernel, the archives and the overlay from the ISO 9660 file system, where it looks for `/boot/grub` on the drive
//! that it was started from. What it finds there it does not search for on other drives, which hold what the last user has left.

use crate::error::TemplateError;
use crate::fat;
use crate::iso::{self, Directory, FILES, ROOT, record};
use crate::overlay::OVERLAY;
use crate::sizes::Sizes;
use crate::template::{Content, Segment, Source, Template, around, check};
use iso9660::SECTOR;

/// Sectors of the directories. The files are behind them.
const DISK: u64 = FILES;
const BOOT: u64 = FILES + 1;
const GRUB: u64 = FILES + 2;
const CONTENT: u64 = FILES + 3;
/// Most bytes of a boot image that El Torito counts: sectors of 512, in 16 bits.
const COUNTED: u64 = 512 * u16::MAX as u64;
/// What a medium says of itself. GRUB searches for a file of this name where it finds no `/boot/grub`.
const INFO: &[u8] = b"Anneal boot medium\n";

/// Sizes in bytes of Debian's signed boot loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShimSizes {
    /// `shimx64.efi.signed` (package shim-signed).
    pub shim: u64,
    /// `gcdx64.efi.signed` (package grub-efi-amd64-signed).
    pub grub: u64,
}

impl Template {
    /// The medium that boots a kernel and archives of these sizes, with these kernel arguments, through a shim. The kernel has to be one
    /// that the shim accepts.
    ///
    /// # Errors
    /// Which part cannot be used.
    pub fn through_shim(loaders: ShimSizes, sizes: &Sizes, arguments: &str) -> Result<Self, TemplateError> {
        let configuration = configuration(arguments)?.into_bytes();
        let fat = fat::Layout::with_second(loaders.shim, loaders.grub);
        let archives: u64 = sizes.archives.iter().sum();
        let mut sector = CONTENT;
        let mut place = |length: u64| {
            let at = sector;
            sector += length.div_ceil(SECTOR);
            (at, length)
        };
        let info = place(INFO.len() as u64);
        let grub_cfg = place(configuration.len() as u64);
        let node = place(OVERLAY as u64);
        let (esp, _) = place(fat.length());
        let kernel = place(sizes.kernel);
        let initrd = place(archives);
        // It is not the last on the medium, so its length has to be one that El Torito counts.
        if fat.length() > COUNTED {
            return Err(TemplateError::TooLarge(fat.length()));
        }
        let file = |name: &'static [u8], (at, length): (u64, u64)| record(name, at, length, false);
        let directory = |name: &'static [u8], at: u64| record(name, at, SECTOR, true);
        let tables = [
            Directory::ROOT,
            Directory { name: b".DISK", at: DISK, parent: 1 },
            Directory { name: b"BOOT", at: BOOT, parent: 1 },
            Directory { name: b"GRUB", at: GRUB, parent: 3 },
        ];
        let mut parts =
            iso::descriptors(sector, iso::LABEL, &tables, iso::catalogue(None, esp, fat.length()));
        let root = [
            directory(b".DISK", DISK),
            directory(b"BOOT", BOOT),
            file(b"INITRD.IMG;1", initrd),
            file(b"NODE.CPIO;1", node),
            file(b"VMLINUZ.;1", kernel),
        ];
        parts.push((ROOT, iso::directory((ROOT, ROOT), root.into_iter())));
        for (of, only) in [
            ((DISK, ROOT), file(b"INFO.;1", info)),
            ((BOOT, ROOT), directory(b"GRUB", GRUB)),
            ((GRUB, BOOT), file(b"GRUB.CFG;1", grub_cfg)),
        ] {
            parts.push((of.0, iso::directory(of, std::iter::once(only))));
        }
        parts.push((info.0, INFO.to_vec()));
        parts.push((grub_cfg.0, configuration));
        let parts = parts.into_iter().map(|(at, bytes)| (at * SECTOR, bytes)).collect();

        let fat_at = esp * SECTOR;
        let mut segments = around(parts, fat_at, &fat);
        let mut put = |at: u64, content: Content| segments.push(Segment { at, content });
        put(fat_at + fat.file_at(), Content::Source(Source::Shim, loaders.shim));
        put(fat_at + fat.second_at(), Content::Source(Source::Grub, loaders.grub));
        put(node.0 * SECTOR, Content::Archive);
        put(kernel.0 * SECTOR, Content::Source(Source::Kernel, sizes.kernel));
        let mut at = initrd.0 * SECTOR;
        for (index, size) in sizes.archives.iter().enumerate() {
            put(at, Content::Source(Source::Archive(index), *size));
            at += size;
        }
        Ok(Self::of(segments, sector * SECTOR))
    }
}

/// What GRUB does. A kernel that it does not start leaves the node to its firmware.
fn configuration(arguments: &str) -> Result<String, TemplateError> {
    check(arguments)?;
    if arguments.contains(['\'', '"', '\\']) {
        return Err(TemplateError::GrubArguments);
    }
    let words: String = arguments.split_whitespace().map(|word| format!(" {}", quoted(word))).collect();
    Ok(format!("linux /vmlinuz{words}\ninitrd /initrd.img /node.cpio\nboot\nsleep 10\nexit\n"))
}

/// As one word that GRUB's script language leaves as it is.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._,:=/+%@".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_says_what_the_arguments_are() {
        let made = configuration("quiet console=ttyS0,115200 x=a;reboot y=$z\u{e4}").unwrap();
        assert!(
            made.starts_with("linux /vmlinuz quiet console=ttyS0,115200 'x=a;reboot' 'y=$z\u{e4}'\ninitrd"),
            "{made}"
        );
        for bad in ["x=\"a b\"", "x='a'", "x=a\\b"] {
            assert_eq!(configuration(bad), Err(TemplateError::GrubArguments), "{bad}");
        }
        assert_eq!(configuration("a\nreboot"), Err(TemplateError::Arguments));
    }
}
