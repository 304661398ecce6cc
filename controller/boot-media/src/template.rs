//! Where each byte of the medium comes from.

use crate::error::{COMMAND_LINE, TemplateError};
use crate::overlay::{OVERLAY, Overlay, Reader};
use crate::sizes::Sizes;
use crate::{fat, iso, uki};
use std::ops::Range;

/// The boot loaders, as Debian's packages have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaders {
    /// `isolinux.bin` (package isolinux).
    pub isolinux: Vec<u8>,
    /// `ldlinux.c32` for BIOS (package syslinux-common), which isolinux loads.
    pub ldlinux: Vec<u8>,
    /// `linuxx64.efi.stub` (package systemd-boot-efi).
    pub stub: Vec<u8>,
}

/// A file whose bytes are in the medium, and not in the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The kernel.
    Kernel,
    /// The archive with this index in [`Sizes::archives`].
    Archive(usize),
    /// The signed program.
    Program,
    /// Debian's signed shim.
    Shim,
    /// Debian's signed systemd-boot, which the shim starts.
    SystemdBoot,
}

/// Where systemd's stub looks for what it passes to the kernel, next to its program (systemd-stub(7)), and the overlay there.
const OVERLAY_DIRECTORY: fat::Name = fat::Name::long("BOOTX64.EFI.extra.d", b"BOOTX6~1D  ");
const OVERLAY_NAME: fat::Name = fat::Name::long("anneal.cred", b"ANNEAL~1CRE");

/// A medium without kernel, archives and overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// In the order of their places, without overlaps. Between them are zeros.
    segments: Vec<Segment>,
    length: u64,
    /// The EFI program with the overlay in it.
    program: Option<Range<u64>>,
}

/// Something at a place, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) at: u64,
    pub(crate) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Source(Source, u64),
    /// The overlay as an archive.
    Archive,
    /// The overlay as a file.
    File,
    /// The overlay as a text.
    Text,
}

/// Some bytes of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These.
    Bytes(&'a [u8]),
    /// So many zeros.
    Zeros(u64),
    /// `count` bytes of a file from `offset` on.
    Source {
        /// The file.
        source: Source,
        /// Its first byte that is meant.
        offset: u64,
        /// How many.
        count: u64,
    },
}

impl Template {
    /// The medium with these loaders that boots a kernel and archives of these sizes with these kernel arguments.
    ///
    /// # Errors
    /// Which part cannot be used.
    pub fn new(loaders: &Loaders, sizes: &Sizes, arguments: &str) -> Result<Self, TemplateError> {
        Self::read_by(Reader::Anneal, loaders, sizes, arguments)
    }

    /// The same for the agent that reads the overlay. ironic-python-agent takes it from a file on the medium, which it finds by its
    /// label.
    ///
    /// # Errors
    /// Which part cannot be used.
    pub fn read_by(
        reader: Reader,
        loaders: &Loaders,
        sizes: &Sizes,
        arguments: &str,
    ) -> Result<Self, TemplateError> {
        check(arguments)?;
        let program = uki::Layout::new(&loaders.stub, sizes, arguments)?;
        let mut content = fat::Content::new();
        let file = content.file(fat::BOOT, fat::STARTED, program.length);
        let fat = fat::Layout::new(content);
        let configuration = isolinux_configuration(arguments);
        let bios = iso::Bios {
            isolinux: &loaders.isolinux,
            configuration: configuration.as_bytes(),
            ldlinux: &loaders.ldlinux,
            kernel: (fat.file_at(file) + program.kernel_at, sizes.kernel),
            initrd: (fat.file_at(file) + program.initrd_at, program.initrd_length()),
            parameters: (reader == Reader::IronicPythonAgent).then_some(OVERLAY as u64),
        };
        let iso = iso::Layout::new(&iso::Efi { fat: fat.length() }, Some(&bios))?;
        let program_at = iso.fat_at + fat.file_at(file);
        let mut segments = around(iso.parts, iso.fat_at, &fat);
        let mut put = |at: u64, content: Content| segments.push(Segment { at, content });
        for (at, bytes) in program.parts {
            put(program_at + at, Content::Bytes(bytes));
        }
        put(program_at + program.kernel_at, Content::Source(Source::Kernel, sizes.kernel));
        let mut at = program_at + program.initrd_at;
        for (index, size) in sizes.archives.iter().enumerate() {
            put(at, Content::Source(Source::Archive(index), *size));
            at += size;
        }
        let Some(at) = iso.parameters_at else {
            put(program_at + program.overlay_at, Content::Archive);
            let program = program_at..program_at + program.length;
            return Ok(Self { program: Some(program), ..Self::of(segments, iso.length) });
        };
        put(at, Content::Text);
        Ok(Self::of(segments, iso.length))
    }

    /// The medium that boots a signed program of this size by UEFI, unchanged. The overlay is a file next to it.
    ///
    /// # Errors
    /// The program is too large.
    pub fn signed(program: u64) -> Result<Self, TemplateError> {
        let mut content = fat::Content::new();
        let next_to_it = content.directory(fat::BOOT, OVERLAY_DIRECTORY);
        let overlay_file = content.file(next_to_it, OVERLAY_NAME, OVERLAY as u64);
        let program_file = content.file(fat::BOOT, fat::STARTED, program);
        let fat = fat::Layout::new(content);
        let iso = iso::Layout::new(&iso::Efi { fat: fat.length() }, None)?;
        let mut segments = around(iso.parts, iso.fat_at, &fat);
        segments.extend([
            Segment { at: iso.fat_at + fat.file_at(overlay_file), content: Content::File },
            Segment {
                at: iso.fat_at + fat.file_at(program_file),
                content: Content::Source(Source::Program, program),
            },
        ]);
        Ok(Self::of(segments, iso.length))
    }

    /// Of these segments, in any order.
    pub(crate) fn of(mut segments: Vec<Segment>, length: u64) -> Self {
        segments.sort_by_key(|segment| segment.at);
        Self { segments, length, program: None }
    }

    /// The bytes of the medium that are an EFI program which boots by itself; `None` where the overlay is not in a program.
    pub fn program(&self) -> Option<Range<u64>> {
        self.program.clone()
    }

    /// Bytes of the medium.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The `count` bytes from `first` on; less at the end of the medium.
    pub fn pieces<'a>(&'a self, overlay: &'a Overlay, first: u64, count: u64) -> Vec<Piece<'a>> {
        let end = first.saturating_add(count).min(self.length);
        let mut pieces = Vec::new();
        let mut at = first;
        for segment in &self.segments {
            let segment_end = segment.at + segment.content.length();
            if segment_end <= at {
                continue;
            }
            if segment.at >= end {
                break;
            }
            if segment.at > at {
                pieces.push(Piece::Zeros(segment.at - at));
                at = segment.at;
            }
            let (from, until) = (at - segment.at, segment_end.min(end) - segment.at);
            pieces.push(match &segment.content {
                Content::Bytes(bytes) => Piece::Bytes(part(bytes, from, until)),
                Content::Archive => Piece::Bytes(part(overlay.archive(), from, until)),
                Content::File => Piece::Bytes(part(overlay.file(), from, until)),
                Content::Text => Piece::Bytes(part(overlay.text(), from, until)),
                Content::Source(source, _) => {
                    Piece::Source { source: *source, offset: from, count: until - from }
                }
            });
            at = segment.at + until;
        }
        if at < end {
            pieces.push(Piece::Zeros(end - at));
        }
        pieces
    }
}

impl Content {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Source(_, length) => *length,
            Self::Archive | Self::File | Self::Text => OVERLAY as u64,
        }
    }
}

/// Whether a kernel takes these arguments, and a loader passes them on as one line.
pub(crate) fn check(arguments: &str) -> Result<(), TemplateError> {
    if arguments.len() > COMMAND_LINE || arguments.chars().any(char::is_control) {
        return Err(TemplateError::Arguments);
    }
    Ok(())
}

/// Both file systems, without the files.
pub(crate) fn around(iso: Vec<(u64, Vec<u8>)>, fat_at: u64, fat: &fat::Layout) -> Vec<Segment> {
    let fat = fat.parts().into_iter().map(|(at, bytes)| (fat_at + at, bytes));
    iso.into_iter().chain(fat).map(|(at, bytes)| Segment { at, content: Content::Bytes(bytes) }).collect()
}

fn part(bytes: &[u8], from: u64, until: u64) -> &[u8] {
    let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    &bytes[place(from)..place(until)]
}

/// isolinux starts the only entry at once.
fn isolinux_configuration(arguments: &str) -> String {
    format!(
        "DEFAULT anneal\nPROMPT 0\nLABEL anneal\n  LINUX /VMLINUZ\n  INITRD /INITRD.IMG\n  APPEND {arguments}\n"
    )
}
