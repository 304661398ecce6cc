//! What a firmware measures when it starts a signed ramdisk: predicted from its file alone.

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
    /// Digest of the signed program, which the firmware measures into PCR 4.
    pub program: Digest,
    /// Digest of the kernel in it, which the firmware measures there, too.
    pub kernel: Digest,
    /// SHA-256 of the kernel command line as UTF-16LE with a NUL, which the kernel measures into PCR 9 first.
    pub command_line: Digest,
    /// Value of PCR 11: all parts of the program.
    pub parts: Digest,
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
        program: program.digest().map_err(Malformed)?,
        kernel: Program::parse(kernel).and_then(|kernel| kernel.digest()).map_err(Malformed)?,
        command_line: measured_line(line),
        parts,
    })
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
