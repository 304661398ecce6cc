//! Specification of a drive, as a parameter of the kernel's command line.

use anyhow::{Context, Result, bail};
use std::time::Duration;

/// How a drive speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// SATA, behind a translation (SAT).
    Ata,
    /// SAS.
    Scsi,
}

/// A drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// How it speaks.
    pub kind: Kind,
    /// Serial number, at most 16 characters.
    pub serial: String,
    /// It has platters.
    pub spins: bool,
    /// SANITIZE: crypto scramble or cryptographic erase.
    pub crypto: bool,
    /// SANITIZE: block erase.
    pub block: bool,
    /// SANITIZE: overwrite.
    pub overwrite: bool,
    /// ATA: security feature set, with enhanced erase unless `plain`.
    pub security: bool,
    /// ATA: no enhanced erase.
    pub plain: bool,
    /// Firmware froze its security, as firmware does; counts from power-on.
    pub frozen: bool,
    /// SCSI: FORMAT UNIT.
    pub format: bool,
    /// SCSI: another host holds a persistent reservation, write exclusive.
    pub reserved: bool,
    /// ATA: sectors that SET MAX hides, from power-on.
    pub hidden: u64,
    /// ATA: they are hidden by the accessible max address configuration, and there is no host protected area.
    pub amac: bool,
    /// The first erase is taken, lasts as long, succeeds, and changes nothing.
    pub lies: bool,
    /// The first sanitize operation fails half-way.
    pub fails: bool,
    /// Another host begins a sanitize operation whenever this one asks what there is, until it begins its own.
    pub busy: bool,
    /// How long each erase takes.
    pub takes: Duration,
}

impl Spec {
    /// From `ata,S1,crypto,block,takes=6`: kind, serial number, then the fields of this struct that are set.
    ///
    /// # Errors
    /// An unknown word.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = text.split(',');
        let kind = match words.next() {
            Some("ata") => Kind::Ata,
            Some("scsi") => Kind::Scsi,
            _ => bail!("drive {text:?}: it begins with neither ata nor scsi"),
        };
        let serial = words.next().filter(|serial| (1..=16).contains(&serial.len()));
        let serial =
            serial.with_context(|| format!("drive {text:?}: no serial number of 1 to 16 letters"))?;
        let mut spec = Spec::new(kind, serial);
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, "1"));
            let number =
                || -> Result<u64> { value.parse().with_context(|| format!("drive {text:?}: {word}")) };
            let flag = match name {
                "hidden" => {
                    spec.hidden = number()?;
                    continue;
                }
                "takes" => {
                    spec.takes = Duration::from_secs(number()?);
                    continue;
                }
                "spins" => &mut spec.spins,
                "crypto" => &mut spec.crypto,
                "block" => &mut spec.block,
                "overwrite" => &mut spec.overwrite,
                "security" => &mut spec.security,
                "plain" => &mut spec.plain,
                "frozen" => &mut spec.frozen,
                "format" => &mut spec.format,
                "reserved" => &mut spec.reserved,
                "amac" => &mut spec.amac,
                "lies" => &mut spec.lies,
                "fails" => &mut spec.fails,
                "busy" => &mut spec.busy,
                _ => bail!("drive {text:?}: no word {word:?}"),
            };
            *flag = true;
        }
        Ok(spec)
    }

    /// A drive of flash that can read and write.
    pub fn new(kind: Kind, serial: &str) -> Self {
        Spec {
            kind,
            serial: serial.to_owned(),
            spins: false,
            crypto: false,
            block: false,
            overwrite: false,
            security: false,
            plain: false,
            frozen: false,
            format: false,
            reserved: false,
            hidden: 0,
            amac: false,
            lies: false,
            fails: false,
            busy: false,
            takes: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_command_line() {
        let spec = Spec::parse("ata,S1,spins,security,hidden=64,takes=6").unwrap();
        let expected = Spec {
            spins: true,
            security: true,
            hidden: 64,
            takes: Duration::from_secs(6),
            ..Spec::new(Kind::Ata, "S1")
        };
        assert_eq!(spec, expected);
        for wrong in ["nvme,S1", "ata", "ata,", "scsi,S1,cryptic", "ata,S1,takes=x"] {
            assert!(Spec::parse(wrong).is_err(), "{wrong}");
        }
    }
}
