//! What a boot of the ramdisk measures, predicted from its files: a signed ramdisk, or one that signed loaders start.

use crate::authenticode::Program;
use crate::digest::Digest;

/// Sections that systemd's stub measures into PCR 11, in its order: each by its name and its content (systemd 252,
/// `src/fundamental/tpm-pcr.h`). Later ones measure more.
const MEASURED: [&[u8]; 7] =
    [b".linux", b".osrel", b".cmdline", b".initrd", b".splash", b".dtb", b".pcrpkey"];
const STUB: &str = "systemd-stub ";
/// The version of the stub whose order that is.
const VERSION: &str = "252";

/// What the measurements of a boot must show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prediction {
    /// Digests of the programs that are started, which PCR 4 shows: the signed ramdisk or the loaders, and the kernel.
    pub programs: Vec<Digest>,
    /// SHA-256 of the kernel command line as UTF-16LE with a NUL, which the kernel measures into PCR 9 first.
    pub command_line: Digest,
    /// Its initramfs.
    pub initramfs: Initramfs,
}

/// What shows that the initramfs is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initramfs {
    /// PCR 11 has this value: all parts of a signed ramdisk, which systemd's stub measures.
    Parts(Digest),
    /// What the kernel measures into PCR 9 after its command line: SHA-256 of all that loaders have given to it as its initrd. Nothing
    /// is measured into PCR 11.
    Initrd(Digest),
}

impl Prediction {
    /// The programs that PCR 4 has to show. The kernel of a signed ramdisk is among its parts, which PCR 11 shows.
    pub(crate) fn required(&self) -> &[Digest] {
        match self.initramfs {
            Initramfs::Parts(_) => self.programs.get(..1).unwrap_or_default(),
            Initramfs::Initrd(_) => &self.programs,
        }
    }
}

/// Why nothing can be predicted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No program, or not one of the parts has its place.
    #[error("the signed ramdisk cannot be read: {0}")]
    Malformed(&'static str),
    /// It has no such section.
    #[error("the signed ramdisk has no {0}")]
    Missing(&'static str),
    /// Another version measures other sections.
    #[error("the signed ramdisk begins with {0:?}; what it measures is known of {STUB}{VERSION} only")]
    Stub(String),
}

/// Predict the measurements of a ramdisk that `cargo xtask image --sign` made: systemd's stub with kernel, initramfs and command
/// line, all bytes of the file.
///
/// # Errors
/// See [`ProgramError`].
pub fn predict(file: &[u8]) -> Result<Prediction, ProgramError> {
    use ProgramError::{Malformed, Missing};
    let program = Program::parse(file).map_err(Malformed)?;
    let section = |name: &[u8]| program.section(name).map_err(Malformed);
    check_stub(section(b".sdmagic")?.ok_or(Missing("mark of systemd's stub"))?)?;
    let kernel = section(b".linux")?.ok_or(Missing("kernel"))?;
    let line = section(b".cmdline")?.ok_or(Missing("kernel command line"))?;
    let line = std::str::from_utf8(line).map_err(|_| Malformed("its command line is no text"))?;
    if section(b".initrd")?.is_none() {
        return Err(Missing("initramfs"));
    }
    let mut parts = Digest::ZERO;
    for name in MEASURED {
        if let Some(content) = section(name)? {
            parts = parts.extended(Digest::of_all(&[name, &[0]])).extended(Digest::of(content));
        }
    }
    Ok(Prediction {
        programs: vec![program.digest().map_err(Malformed)?, started(kernel)?],
        command_line: measured_line(line),
        initramfs: Initramfs::Parts(parts),
    })
}

/// Predict the measurements of a ramdisk that loaders start: the firmware the first, each the next one, and the last the kernel. `initrd`:
/// SHA-256 of all that the kernel gets as its initrd.
///
/// # Errors
/// One of the files is no program.
pub fn predict_loaded(
    loaders: &[&[u8]],
    kernel: &[u8],
    line: &str,
    initrd: Digest,
) -> Result<Prediction, ProgramError> {
    let programs =
        loaders.iter().chain([&kernel]).map(|program| started(program)).collect::<Result<_, _>>()?;
    Ok(Prediction { programs, command_line: measured_line(line), initramfs: Initramfs::Initrd(initrd) })
}

/// What the start of a program is measured as.
fn started(program: &[u8]) -> Result<Digest, ProgramError> {
    Program::parse(program).and_then(|program| program.digest()).map_err(ProgramError::Malformed)
}

/// The stub replaces control characters and cuts blanks at the end, and gives the line to the kernel with a NUL.
fn measured_line(line: &str) -> Digest {
    let line = line.replace(|letter: char| letter <= '\x1f', " ");
    let units = line.trim_end_matches(' ').encode_utf16().chain([0]);
    Digest::of(&units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
}

fn check_stub(mark: &[u8]) -> Result<(), ProgramError> {
    let mark = String::from_utf8_lossy(mark);
    let version = mark.split_once(STUB).map_or("", |(_, rest)| rest);
    let number = version.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    if number == VERSION {
        return Ok(());
    }
    let shown: String = mark.chars().filter(|letter| !letter.is_control()).take(60).collect();
    Err(ProgramError::Stub(shown))
}
