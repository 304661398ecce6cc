//! The EFI program for firmware that starts signed programs alone: kernel, initramfs and command line are all signed. So is the
//! list of the controllers that the ramdisk obeys, which stands on the command line.
//!
//! What is signed is all that is loaded: the sections lie without gaps, since a firmware hashes sections and not what is
//! between them (Windows Authenticode Portable Executable Signature Format 1.0, "Calculating the PE Image Hash").

use crate::error::{COMMAND_LINE, TemplateError};
use crate::program_headers::{self, Headers};
use crate::uki::{OS_RELEASE, add_sections, place};
use agent_protocol::boot_medium::OBEYS;

/// Alignment of sections in the file.
const FILE_ALIGNMENT: u64 = 512;
/// Of the table of certificates, among the data directories of a PE32+ program.
const CERTIFICATES_AT: usize = 112 + 4 * 8;
const PE32_PLUS: u16 = 0x20b;

/// The program, not signed yet: systemd's stub (`linuxx64.efi.stub`) with this kernel, initramfs and kernel command line.
///
/// # Errors
/// The stub is none, or the command line is too long.
pub fn program(stub: &[u8], kernel: &[u8], initrd: &[u8], arguments: &str) -> Result<Vec<u8>, TemplateError> {
    if arguments.len() > COMMAND_LINE || arguments.chars().any(char::is_control) {
        return Err(TemplateError::Arguments);
    }
    let contents = [OS_RELEASE.as_bytes(), arguments.as_bytes(), kernel, initrd];
    let [release, line, linux, initramfs] = contents.map(|content| content.len() as u64);
    let lengths =
        [(b".osrel\0\0", release), (b".cmdline", line), (b".linux\0\0", linux), (b".initrd\0", initramfs)];
    let stub = without_symbols(stub).map_err(TemplateError::Stub)?;
    let sections = place(stub.len() as u64, FILE_ALIGNMENT, lengths);
    let mut program = add_sections(&stub, &sections, FILE_ALIGNMENT)?;
    for (section, content) in sections.iter().zip(contents) {
        let at = usize::try_from(section.at).unwrap_or(usize::MAX);
        program.resize(at, 0);
        program.extend(content);
    }
    program.resize(program.len().next_multiple_of(512), 0);
    Ok(program)
}

/// The kernel command line of a ramdisk that obeys only controllers with these certificates (`sha256:` and 64 hexadecimal
/// digits each). `more` comes last.
///
/// # Errors
/// None is given, or one of them is something else; or `more` names controllers, too.
pub fn arguments(pins: &[String], more: &str) -> Result<String, TemplateError> {
    if pins.is_empty() || !pins.iter().all(|pin| is_pin(pin)) || obeyed_of(more).is_some() {
        return Err(TemplateError::Pins);
    }
    let line = format!("{OBEYS}={} {RAMDISK} quiet {KERNEL} {more}", pins.join(","));
    Ok(line.trim_end().to_owned())
}

/// Says that the machine is the agent's.
pub const RAMDISK: &str = "anneal.ramdisk";
/// Arguments of every ramdisk. The first two save seconds of boot time. As ramfs, the root may take more than half of what memory
/// the firmware leaves to the kernel at first: of 256 MiB, OVMF keeps up to half until the ramdisk is unpacked. The last restarts
/// a ramdisk whose init died instead of leaving the node hung.
pub const KERNEL: &str = "cryptomgr.notests random.trust_cpu=on rootfstype=ramfs panic=-1";

/// How many bytes from the beginning of a signed program [`obeyed`] needs.
pub const HEAD: u64 = 1 << 20;

/// The certificates of the controllers that a signed program obeys, of its first [`HEAD`] bytes. That the signature is good is
/// the firmware's to say.
///
/// # Errors
/// It is not signed, or names no controllers.
pub fn obeyed(head: &[u8]) -> Result<Vec<String>, TemplateError> {
    use TemplateError::Program;
    let headers = Headers::of(head).map_err(Program)?;
    let optional = headers.optional_at();
    if program_headers::read16(head, optional) != Some(PE32_PLUS) {
        return Err(Program("it is no program for a 64-bit machine"));
    }
    if program_headers::read32(head, optional + CERTIFICATES_AT + 4).is_none_or(|size| size == 0) {
        return Err(Program("it is not signed"));
    }
    let sections = headers.sections(head).map_err(Program)?;
    let line = sections.iter().find(|section| section.name == *b".cmdline");
    let line = line.ok_or(Program("it has no command line"))?;
    let bytes = line.at.checked_add(line.length).and_then(|end| head.get(line.at..end));
    let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
    let pins = obeyed_of(text.ok_or(Program("its command line cannot be read"))?).unwrap_or_default();
    if pins.is_empty() {
        Err(Program("its command line names no controllers that it obeys"))
    } else {
        Ok(pins)
    }
}

/// The pins on a kernel command line; `None` without a list.
fn obeyed_of(line: &str) -> Option<Vec<String>> {
    let lists: Vec<&str> =
        line.split_whitespace().filter_map(|word| word.strip_prefix(OBEYS)?.strip_prefix('=')).collect();
    let pins = lists.iter().flat_map(|list| list.split(',')).map(str::to_ascii_lowercase);
    (!lists.is_empty()).then(|| pins.collect())
}

fn is_pin(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// The stub without what lies behind its sections, its symbols: they are not loaded, so nothing would sign them.
fn without_symbols(stub: &[u8]) -> Result<Vec<u8>, &'static str> {
    let headers = Headers::of(stub)?;
    let ends = headers.sections(stub)?.into_iter().map(|section| section.at.saturating_add(section.raw));
    let end = ends.max().ok_or("it has no sections")?;
    let mut kept = stub.get(..end).ok_or(program_headers::TOO_SHORT)?.to_vec();
    // Place and number of the symbols.
    program_headers::write32(&mut kept, headers.at + 12, 0);
    program_headers::write32(&mut kept, headers.at + 16, 0);
    Ok(kept)
}
