//! What differs from boot to boot: an archive of files that the kernel unpacks behind the initramfs (cpio, "newc";
//! Documentation/driver-api/early-userspace/buffer-format.rst of Linux), or under a signed program a file next to it.

use agent_protocol::boot_medium::{NETWORK, OverlayFile, PARAMETERS, StaticNetwork};
use std::collections::BTreeSet;

/// Bytes that every medium keeps for it.
pub const OVERLAY: usize = 16 << 10;

/// Which agent reads the overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Ours.
    Anneal,
    /// ironic-python-agent.
    IronicPythonAgent,
}

/// The parameters and the network of one boot, in each form, filled up. It contains the nonce of its boot.
#[derive(Clone, PartialEq, Eq)]
pub struct Overlay {
    reader: Reader,
    archive: Vec<u8>,
    file: Vec<u8>,
    text: Vec<u8>,
}

/// More than a medium has room for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the parameters and the network of the node need {0} bytes of at most {OVERLAY} on a boot medium")]
pub struct OverlayError(usize);

impl Overlay {
    /// With these parameters, in the form of a kernel command line, and this network, if it has one of its own.
    ///
    /// # Errors
    /// They need more than [`OVERLAY`] bytes.
    pub fn new(parameters: &str, network: Option<&StaticNetwork>) -> Result<Self, OverlayError> {
        let content = OverlayFile { parameters: parameters.to_owned(), network: network.cloned() };
        let network = network.map(|network| serde_json::to_vec(network).unwrap_or_default());
        let mut files = vec![(PARAMETERS, parameters.as_bytes())];
        files.extend(network.as_deref().map(|text| (NETWORK, text)));
        // Blanks behind it are JSON, too.
        let file = filled(serde_json::to_vec(&content).unwrap_or_default(), b' ')?;
        let (archive, text) = (filled(archive(&files), 0)?, filled(Vec::new(), b'\n')?);
        Ok(Self { reader: Reader::Anneal, archive, file, text })
    }

    /// With these parameters, in the form of a kernel command line, for ironic-python-agent, which reads them as a text, and no
    /// network from where they are.
    ///
    /// # Errors
    /// They need more than [`OVERLAY`] bytes.
    pub fn for_ironic_python_agent(parameters: &str) -> Result<Self, OverlayError> {
        let lines: Vec<&str> = parameters.split_whitespace().collect();
        let text = filled(lines.join("\n").into_bytes(), b'\n')?;
        let (archive, file) = (filled(Vec::new(), 0)?, filled(Vec::new(), b' ')?);
        Ok(Self { reader: Reader::IronicPythonAgent, archive, file, text })
    }

    /// Whom it is for.
    pub fn reader(&self) -> Reader {
        self.reader
    }

    /// The archive behind the initramfs.
    pub fn archive(&self) -> &[u8] {
        &self.archive
    }

    /// The file next to a signed program.
    pub(crate) fn file(&self) -> &[u8] {
        &self.file
    }

    /// The file on the medium of ironic-python-agent.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Overlay(******)")
    }
}

fn filled(mut bytes: Vec<u8>, with: u8) -> Result<Vec<u8>, OverlayError> {
    if bytes.len() > OVERLAY {
        return Err(OverlayError(bytes.len()));
    }
    bytes.resize(OVERLAY, with);
    Ok(bytes)
}

/// These files, each readable by root alone, with the directories that they are in.
fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directories = BTreeSet::new();
    for (path, content) in files {
        for (at, _) in path.match_indices('/') {
            if directories.insert(&path[..at]) {
                member(&mut out, &path[..at], 0o040_755, &[]);
            }
        }
        member(&mut out, path, 0o100_400, content);
    }
    member(&mut out, "TRAILER!!!", 0, &[]);
    out
}

fn member(out: &mut Vec<u8>, path: &str, mode: u32, content: &[u8]) {
    let (links, size, name) = (1, content.len(), path.len() + 1);
    out.extend(b"070701");
    // Inode, mode, owner, group, links, time, size, device, device of a device file, length of the name, checksum.
    for number in [0, mode as usize, 0, 0, links, 0, size, 0, 0, 0, 0, name, 0] {
        out.extend(format!("{number:08X}").as_bytes());
    }
    out.extend(path.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(content);
    out.resize(out.len().next_multiple_of(4), 0);
}
