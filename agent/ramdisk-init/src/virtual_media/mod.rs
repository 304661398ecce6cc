//! What Ironic's boot interface `redfish-virtual-media` gives to the ramdisk besides kernel and initramfs: parameters on a drive of
//! their own (`ironic/common/images.py`, `create_vfat_image`), and the node's network on the CD, where Ironic itself has made that.
//!
//! ```text
//!   kernel command line: boot_method=vmedia [ir_pub_id=…] ─▶ wanted ─▶ (all disks are there) ─▶ read
//!     drive labelled ir-vfd-dev: parameters.txt, "key=value" ──────────────────────────────────┘
//!     CD of the publisher ir_pub_id: openstack/latest/network_data.json ───────────────────────┘
//! ```
//!
//! The file systems are read here and not mounted: a stranger may have written them.

mod drives;
mod fat;
mod iso;
mod source;
#[cfg(test)]
mod tests;

use fat::Fat;
use iso::Iso;
use source::Source;
use std::fs::File;
use std::path::Path;

/// Label of the drive with the parameters, whatever its case.
const DRIVE: &str = "ir-vfd-dev";
const PARAMETERS: &str = "parameters.txt";
/// Labels of a CD that Ironic has made: with the node's network, and without.
const CDS: [&str; 2] = ["config-2", "vmedia_boot_iso"];
const NETWORK: &str = "openstack/latest/network_data.json";
/// Most bytes of a file that is read.
const MOST: u32 = 64 << 10;

/// What the kernel command line says about virtual media.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The publisher of the CD that was booted, where Ironic has made it.
    pub publisher: Option<String>,
}

/// What the drives bring. Without `Debug`: the parameters have a token in them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct VirtualMedia {
    /// `key=value`, separated by white space; in the form of a kernel command line.
    pub parameters: String,
    /// `network_data.json`, as it is.
    pub network_data: Option<Vec<u8>>,
}

impl Wanted {
    /// Of these kernel parameters; `None` where they do not say that the machine was booted by virtual media.
    pub fn of<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let (mut is_wanted, mut publisher) = (false, None);
        for (key, value) in parameters {
            match key {
                "boot_method" => is_wanted = value == "vmedia",
                "ir_pub_id" => publisher = Some(value.to_owned()).filter(|id| !id.is_empty()),
                _ => {}
            }
        }
        is_wanted.then_some(Self { publisher })
    }

    /// Read them from the drives of this machine, which must all be there.
    ///
    /// # Errors
    /// Which drive has something else than it should, or which two drives have the same.
    pub fn read(&self) -> Result<VirtualMedia, String> {
        self.read_below(Path::new("/sys"), Path::new("/dev"))
    }

    fn read_below(&self, sys: &Path, dev: &Path) -> Result<VirtualMedia, String> {
        let mut media = VirtualMedia::default();
        let (mut drive, mut cd) = (None, None);
        for name in drives::virtual_drives(sys) {
            let file = match File::open(dev.join(&name)) {
                Ok(file) => file,
                Err(error) => {
                    tracing::info!(drive = name, %error, "a drive that may be virtual cannot be opened");
                    continue;
                }
            };
            let of = |why: String| format!("virtual media: {name}: {why}");
            let (parameters, network) = self.parts_of(&file).map_err(of)?;
            if let Some(parameters) = parameters {
                only(&mut drive, &name, DRIVE)?;
                media.parameters = parameters;
            }
            if let Some(network) = network {
                only(&mut cd, &name, NETWORK)?;
                media.network_data = Some(network);
            }
        }
        tracing::info!(?drive, ?cd, "virtual media: where the parameters and the network are");
        Ok(media)
    }

    /// What a drive with these bytes brings, as if it were the only one.
    ///
    /// # Errors
    /// What it has that is not as it should be.
    pub fn of_drive(&self, bytes: &[u8]) -> Result<VirtualMedia, String> {
        let (parameters, network_data) = self.parts_of(bytes)?;
        Ok(VirtualMedia { parameters: parameters.unwrap_or_default(), network_data })
    }

    /// The parameters and the network of one drive, if it has them.
    fn parts_of<S: Source + ?Sized>(&self, source: &S) -> Result<(Option<String>, Option<Vec<u8>>), String> {
        Ok((parameters_of(source)?, self.network_of(source)?))
    }

    /// The network on this medium, if it is the CD that was booted and has one.
    fn network_of<S: Source + ?Sized>(&self, source: &S) -> Result<Option<Vec<u8>>, String> {
        let Ok(Some(iso)) = Iso::of(source) else { return Ok(None) };
        let is_it = match &self.publisher {
            Some(publisher) => iso.publisher().eq_ignore_ascii_case(publisher),
            None => CDS.iter().any(|label| iso.label().eq_ignore_ascii_case(label)),
        };
        if is_it { iso.file(NETWORK, MOST) } else { Ok(None) }
    }
}

/// The parameters on this drive, if it has the label. What cannot be read has none.
fn parameters_of<S: Source + ?Sized>(source: &S) -> Result<Option<String>, String> {
    let content = match (Fat::of(source), Iso::of(source)) {
        (Ok(Some(fat)), _) if fat.label().eq_ignore_ascii_case(DRIVE) => fat.file(PARAMETERS, MOST)?,
        (_, Ok(Some(iso))) if iso.label().eq_ignore_ascii_case(DRIVE) => iso.file(PARAMETERS, MOST)?,
        _ => return Ok(None),
    };
    let content = content.ok_or_else(|| format!("it is labelled {DRIVE} and has no {PARAMETERS}"))?;
    // What is wrong with it stays unsaid: it may be the token.
    let text = String::from_utf8(content).map_err(|_| format!("{PARAMETERS} is no text"))?;
    Ok(Some(text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Take note of the one drive that has something; a second one is an error.
fn only(seen: &mut Option<String>, name: &str, what: &str) -> Result<(), String> {
    match seen.replace(name.to_owned()) {
        None => Ok(()),
        Some(other) => {
            Err(format!("virtual media: {other} and {name} both have {what}, and one of them is foreign"))
        }
    }
}
