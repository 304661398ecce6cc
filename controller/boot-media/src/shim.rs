//! The medium that boots by UEFI through Debian's signed shim and systemd-boot, for a firmware with Secure Boot and Microsoft's keys.
//! systemd-boot reads its configuration, the kernel, the archives and the overlay from the file system that it was started from
//! (Boot Loader Specification, type 1; loader.conf(5)), and from no disk.

use crate::error::{COMMAND_LINE, TemplateError};
use crate::fat::{self, Name};
use crate::iso;
use crate::sizes::Sizes;
use crate::template::{Content, Segment, Source, Template, around, check};

/// The program that a shim starts, whichever it is.
const SECOND: Name = Name::short(b"GRUBX64 EFI");
/// It starts its only entry at once, and shows no prompt at which its command line could be changed.
const CONFIGURATION: &str = "timeout 0\neditor no\nauto-entries no\nauto-firmware no\n";
/// What systemd-boot puts before the kernel arguments of that entry.
const ARCHIVES: &str = "initrd=\\initrd.img initrd=\\node.img ";

/// systemd-boot puts the overlay behind the archives at a multiple of this many bytes, with zeros between them: what the kernel gets, and a
/// TPM measures.
pub const SHIM_OVERLAY_ALIGNMENT: usize = 4;

/// Sizes in bytes of Debian's signed boot loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShimSizes {
    /// `shimx64.efi.signed` (package shim-signed).
    pub shim: u64,
    /// `systemd-bootx64.efi.signed` (package systemd-boot-efi-amd64-signed).
    pub systemd_boot: u64,
}

impl Template {
    /// The medium that boots a kernel and archives of these sizes, with these kernel arguments, through a shim. The kernel has to be one
    /// that the shim accepts.
    ///
    /// # Errors
    /// Which part cannot be used.
    pub fn through_shim(loaders: ShimSizes, sizes: &Sizes, arguments: &str) -> Result<Self, TemplateError> {
        let entry = entry(arguments)?;
        let mut content = fat::Content::new();
        let loader = content.directory(fat::ROOT, Name::short(b"LOADER     "));
        let entries = content.directory(loader, Name::short(b"ENTRIES    "));
        let files = [
            (fat::BOOT, fat::STARTED, Content::Source(Source::Shim, loaders.shim)),
            (fat::BOOT, SECOND, Content::Source(Source::SystemdBoot, loaders.systemd_boot)),
            (loader, Name::long("loader.conf", b"LOADER~1CON"), Content::Bytes(CONFIGURATION.into())),
            (entries, Name::long("anneal.conf", b"ANNEAL~1CON"), Content::Bytes(entry.into_bytes())),
            (fat::ROOT, Name::short(b"NODE    IMG"), Content::Archive),
            (fat::ROOT, Name::short(b"VMLINUZ    "), Content::Source(Source::Kernel, sizes.kernel)),
        ];
        let files = files.map(|(place, name, holds)| (content.file(place, name, holds.length()), holds));
        let archives = content.file(fat::ROOT, Name::short(b"INITRD  IMG"), sizes.archives.iter().sum());
        let fat = fat::Layout::new(content);
        let iso = iso::Layout::new(&iso::Efi { fat: fat.length() }, None)?;
        let mut segments = around(iso.parts, iso.fat_at, &fat);
        segments.extend(files.map(|(file, content)| Segment { at: iso.fat_at + fat.file_at(file), content }));
        let mut at = iso.fat_at + fat.file_at(archives);
        for (index, size) in sizes.archives.iter().enumerate() {
            segments.push(Segment { at, content: Content::Source(Source::Archive(index), *size) });
            at += size;
        }
        Ok(Self::of(segments, iso.length))
    }
}

/// What systemd-boot makes of the kernel arguments of a medium: the command line that the kernel gets and measures.
pub fn shim_command_line(arguments: &str) -> String {
    format!("{ARCHIVES}{}", arguments.trim())
}

/// The entry of systemd-boot's menu. It passes the arguments on as they are, but for blanks at both ends.
fn entry(arguments: &str) -> Result<String, TemplateError> {
    check(arguments)?;
    if shim_command_line(arguments).len() > COMMAND_LINE {
        return Err(TemplateError::Arguments);
    }
    Ok(format!("title Anneal\nlinux /vmlinuz\ninitrd /initrd.img\ninitrd /node.img\noptions {arguments}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_says_what_the_arguments_are() {
        let made = entry("quiet x=\"a b\" y=$z\\").unwrap();
        assert!(made.ends_with("\ninitrd /node.img\noptions quiet x=\"a b\" y=$z\\\n"), "{made}");
        assert_eq!(entry("a\nlinux /other"), Err(TemplateError::Arguments));
        // The kernel would cut what does not fit, without a word.
        let longest = COMMAND_LINE - ARCHIVES.len();
        assert!(entry(&"x".repeat(longest)).is_ok());
        assert_eq!(entry(&"x".repeat(longest + 1)), Err(TemplateError::Arguments));
    }
}
