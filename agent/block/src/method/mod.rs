//! Ways to erase a disk: what each is called, what it reaches, what it promises.

mod standard;

use crate::probe::Probe;
use crate::sanitize::Operation;
use std::num::NonZeroU8;

/// What is left for an attacker after an erase, in the words of NIST SP 800-88 and IEEE 2883.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing that the drive's own interface gives back.
    Clear,
    /// Nothing that a laboratory gets out of it, sectors included that the interface does not reach.
    Purge,
}

impl Level {
    /// All of them, ascending.
    pub const ALL: [Level; 2] = [Level::Clear, Level::Purge];

    /// The word for arguments and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Clear => "clear",
            Level::Purge => "purge",
        }
    }

    /// The level of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == word)
    }
}

/// Which family of sanitize commands a drive has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// NVMe Sanitize.
    Nvme,
    /// ATA SANITIZE DEVICE.
    Ata,
    /// SCSI SANITIZE.
    Scsi,
}

/// A way to erase a disk, in the order in which they are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The drive's sanitize operation. Its overwrite is not preferred: see [`Method::rank`].
    Sanitize(Family, Operation),
    /// TCG Opal revert with the PSID on the drive's label: the keys of all content are replaced.
    OpalRevert,
    /// NVMe Format with cryptographic erase.
    NvmeFormatCrypto,
    /// NVMe Format with user data erase.
    NvmeFormat,
    /// ATA SECURITY ERASE UNIT, enhanced.
    AtaEnhancedErase,
    /// ATA SECURITY ERASE UNIT.
    AtaErase,
    /// Erase of every group of an eMMC, and Sanitize.
    EmmcSanitize,
    /// Secure discard, by the kernel (eMMC).
    SecureDiscard,
    /// The device's own write of zeroes (NVMe Write Zeroes, SCSI WRITE SAME, virtio).
    ZeroOut,
    /// Discard (NVMe Dataset Management, ATA TRIM, SCSI UNMAP), on devices that say that discarded sectors read as
    /// zeroes.
    Discard,
    /// Zeroes written over everything.
    Overwrite,
    /// Other content written over everything, perhaps several times: only on request.
    OverwriteWith(Passes),
    /// SCSI FORMAT UNIT.
    ScsiFormat,
}

/// What is written over a disk, and how often. All passes but the last are random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Passes {
    /// How many.
    pub count: NonZeroU8,
    /// The content of the last one, which is read back.
    pub last: Fill,
}

/// Content of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fill {
    /// One byte, over and over.
    Byte(u8),
    /// Random bytes, others on each disk.
    Random,
}

/// What a method promises of the content afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedContent {
    /// Every byte is zero.
    Zeroes,
    /// No sector is as it was.
    Changed,
    /// Every byte is the one that was written.
    Pattern,
    /// Every byte is that of the random content that was written.
    Random,
}

impl Method {
    /// All of them; of those with passes one for each name.
    pub const ALL: [Method; 22] = {
        use Family::{Ata, Nvme, Scsi};
        use Operation::{Block, Crypto, Overwrite};
        [
            Method::Sanitize(Nvme, Crypto),
            Method::Sanitize(Ata, Crypto),
            Method::Sanitize(Scsi, Crypto),
            Method::Sanitize(Nvme, Block),
            Method::Sanitize(Ata, Block),
            Method::Sanitize(Scsi, Block),
            Method::Sanitize(Nvme, Overwrite),
            Method::Sanitize(Ata, Overwrite),
            Method::Sanitize(Scsi, Overwrite),
            Method::OpalRevert,
            Method::NvmeFormatCrypto,
            Method::NvmeFormat,
            Method::AtaEnhancedErase,
            Method::AtaErase,
            Method::EmmcSanitize,
            Method::SecureDiscard,
            Method::ZeroOut,
            Method::Discard,
            Method::Overwrite,
            Method::OverwriteWith(Passes { count: NonZeroU8::MIN, last: Fill::Byte(0) }),
            Method::OverwriteWith(Passes { count: NonZeroU8::MIN, last: Fill::Random }),
            Method::ScsiFormat,
        ]
    };

    /// The word for arguments, records and progress.
    pub fn as_str(self) -> &'static str {
        use Family::{Ata, Nvme, Scsi};
        match self {
            Method::Sanitize(Nvme, Operation::Crypto) => "nvme-sanitize-crypto",
            Method::Sanitize(Nvme, Operation::Block) => "nvme-sanitize-block",
            Method::Sanitize(Nvme, Operation::Overwrite) => "nvme-sanitize-overwrite",
            Method::Sanitize(Ata, Operation::Crypto) => "ata-sanitize-crypto",
            Method::Sanitize(Ata, Operation::Block) => "ata-sanitize-block",
            Method::Sanitize(Ata, Operation::Overwrite) => "ata-sanitize-overwrite",
            Method::Sanitize(Scsi, Operation::Crypto) => "scsi-sanitize-crypto",
            Method::Sanitize(Scsi, Operation::Block) => "scsi-sanitize-block",
            Method::Sanitize(Scsi, Operation::Overwrite) => "scsi-sanitize-overwrite",
            Method::OpalRevert => "opal-psid-revert",
            Method::NvmeFormatCrypto => "nvme-format-crypto",
            Method::NvmeFormat => "nvme-format-user-data",
            Method::AtaEnhancedErase => "ata-secure-erase-enhanced",
            Method::AtaErase => "ata-secure-erase",
            Method::EmmcSanitize => "emmc-sanitize",
            Method::SecureDiscard => "secure-discard",
            Method::ZeroOut => "zero-out",
            Method::Discard => "discard",
            Method::Overwrite => "overwrite-zeroes",
            Method::OverwriteWith(Passes { last: Fill::Byte(_), .. }) => "overwrite-pattern",
            Method::OverwriteWith(Passes { last: Fill::Random, .. }) => "overwrite-random",
            Method::ScsiFormat => "scsi-format-unit",
        }
    }

    /// The method of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == word)
    }

    /// What it promises. Cryptographic erases leave noise; of a user data erase, a block erase and an enhanced
    /// erase the content is the vendor's choice (NVM Express Base Specification 2.0, 5.14, 5.24; ACS-4 7.36.2, 7.40;
    /// SBC-4 4.11).
    pub fn expected_content(self) -> ExpectedContent {
        match self {
            Method::Sanitize(_, Operation::Crypto | Operation::Block)
            | Method::OpalRevert
            | Method::NvmeFormatCrypto
            | Method::NvmeFormat
            | Method::AtaEnhancedErase
            | Method::EmmcSanitize
            | Method::SecureDiscard => ExpectedContent::Changed,
            Method::OverwriteWith(passes) => ExpectedContent::of(passes.last),
            Method::Sanitize(_, Operation::Overwrite)
            | Method::AtaErase
            | Method::ZeroOut
            | Method::Discard
            | Method::Overwrite
            | Method::ScsiFormat => ExpectedContent::Zeroes,
        }
    }

    /// What the drive's own log reports once it has succeeded; `None` where the end of the command is all that is known.
    pub fn device_status(self) -> Option<&'static str> {
        match self {
            Method::Sanitize(Family::Nvme, _) => Some("NVMe sanitize status log: completed successfully"),
            Method::Sanitize(Family::Ata, _) => Some("ATA SANITIZE STATUS EXT: completed without error"),
            Method::Sanitize(Family::Scsi, _) => Some("SCSI REQUEST SENSE: in progress, then ready"),
            Method::OpalRevert => Some("TCG Opal: neither owned nor locked after the revert"),
            _ => None,
        }
    }

    /// Whether it stops within two seconds of a request. A sanitize operation continues in the drive all the same, and
    /// the next run finds it running.
    pub fn abortable(self) -> bool {
        !matches!(
            self,
            Method::OpalRevert
                | Method::NvmeFormatCrypto
                | Method::NvmeFormat
                | Method::AtaEnhancedErase
                | Method::AtaErase
                | Method::EmmcSanitize
        )
    }

    /// Whether one command does it in seconds or minutes, whatever the size of the disk.
    pub fn is_express(self, rotational: bool) -> bool {
        match self {
            Method::Sanitize(_, Operation::Crypto) | Method::OpalRevert | Method::NvmeFormatCrypto => true,
            Method::Sanitize(_, Operation::Block) | Method::NvmeFormat => !rotational,
            _ => false,
        }
    }

    /// Whether it is the drive's own erase, by a command of its kind of drive: what Ironic calls a secure erase.
    pub fn is_secure_erase(self) -> bool {
        matches!(
            self,
            Method::Sanitize(..)
                | Method::OpalRevert
                | Method::NvmeFormatCrypto
                | Method::NvmeFormat
                | Method::AtaEnhancedErase
                | Method::AtaErase
                | Method::EmmcSanitize
        )
    }

    /// Place in the order of preference, smaller first. What the drive overwrites by itself takes as long as
    /// overwriting from outside, which can be stopped, shows its progress and names the bad sector: so it comes
    /// after it. A PSID was given to be used: what it does comes first.
    fn rank(self, rotational: bool) -> (u8, Method) {
        let late = match self {
            Method::OpalRevert => 0,
            Method::AtaEnhancedErase | Method::AtaErase if rotational => 2,
            Method::Sanitize(_, Operation::Overwrite) => 3,
            Method::ScsiFormat => 4,
            _ => 1,
        };
        (late, self)
    }
}

impl ExpectedContent {
    /// The word for records.
    pub fn as_str(self) -> &'static str {
        match self {
            ExpectedContent::Zeroes => "zeroes",
            ExpectedContent::Changed => "changed",
            ExpectedContent::Pattern => "pattern",
            ExpectedContent::Random => "random",
        }
    }
}

/// The methods that a disk truly supports, best first. Overwriting is always among them: every disk can be written,
/// unless the drive has a failed sanitize to make good. Of a locked TCG Opal drive nothing can be read back that was
/// erased otherwise, so that its PSID is all there is. With other
/// content than zeroes only on demand: see [`crate::EraseRequest`].
///
/// Discard is taken only where the device itself says that discarded sectors read as zeroes, and even then a
/// device may ignore parts of a discard: reading back decides.
pub fn methods(probe: &Probe) -> Vec<Method> {
    let disk = &probe.disk;
    let nvme = probe.nvme.as_ref();
    let reaches_only_this = nvme.is_none_or(|nvme| nvme.may_sanitize());
    let sanitize = [
        (Family::Nvme, nvme.map(|nvme| nvme.sanitize).filter(|_| reaches_only_this)),
        (Family::Ata, probe.ata.map(|ata| ata.sanitize)),
        (Family::Scsi, probe.scsi.map(|scsi| scsi.sanitize)),
    ];
    let takes = |family: Family, operation: Operation| {
        sanitize.iter().any(|(has, support)| *has == family && support.is_some_and(|s| s.takes(operation)))
    };
    let security = probe.ata.map(|ata| ata.security).filter(|s| s.supported && !s.frozen && !s.expired);
    let discard_zeroes = disk.discard_reads_zero || nvme.is_some_and(|nvme| nvme.deallocated_reads_zero);
    // Before another sanitize succeeded the drive takes no write at all.
    let writable = !failed(probe);
    let revert = probe.psid.is_some() && probe.opal.is_some_and(|opal| opal.supported);
    if probe.is_locked() {
        return if revert && reaches_only_this { vec![Method::OpalRevert] } else { Vec::new() };
    }
    let supported = |method: Method| match method {
        Method::Sanitize(family, operation) => takes(family, operation),
        Method::OpalRevert => revert && reaches_only_this && writable,
        Method::NvmeFormatCrypto => {
            nvme.is_some_and(|nvme| nvme.may_format() && nvme.format_crypto) && writable
        }
        Method::NvmeFormat => nvme.is_some_and(|nvme| nvme.may_format()) && writable,
        Method::AtaEnhancedErase => security.is_some_and(|security| security.enhanced) && writable,
        Method::AtaErase => security.is_some() && writable,
        Method::EmmcSanitize => probe.mmc.is_some_and(|mmc| mmc.registers.can_sanitize()),
        Method::SecureDiscard => probe.secure_discard,
        Method::ZeroOut => disk.write_zeroes_max > 0 && writable,
        Method::Discard => disk.discard_max > 0 && discard_zeroes && writable,
        Method::Overwrite => writable,
        Method::OverwriteWith(_) => false,
        Method::ScsiFormat => probe.scsi.is_some_and(|scsi| scsi.format_unit) && writable,
    };
    let mut found: Vec<Method> = Method::ALL.into_iter().filter(|&method| supported(method)).collect();
    found.sort_by_key(|method| method.rank(disk.rotational));
    found
}

/// Whether the drive waits for a sanitize to succeed after one that failed.
fn failed(probe: &Probe) -> bool {
    let states = [
        probe.nvme.and_then(|nvme| nvme.sanitize.state),
        probe.ata.and_then(|ata| ata.sanitize.state),
        probe.scsi.and_then(|scsi| scsi.sanitize.state),
    ];
    states.contains(&Some(crate::sanitize::State::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any::any_probe;
    use crate::sanitize::{State, Support};
    use proptest::prelude::*;

    #[test]
    fn words_are_unique_and_lead_back() {
        for method in Method::ALL {
            assert_eq!(Method::of(method.as_str()), Some(method));
            assert_eq!(Method::ALL.iter().filter(|other| **other == method).count(), 1);
        }
        assert_eq!(Method::of("shred"), None);
        assert!(Level::ALL.iter().all(|level| Level::of(level.as_str()) == Some(*level)));
    }

    #[test]
    fn a_discard_never_counts_as_purge() {
        for rotational in [false, true] {
            for method in [
                Method::Discard,
                Method::SecureDiscard,
                Method::EmmcSanitize,
                Method::ZeroOut,
                Method::Overwrite,
            ] {
                assert_eq!(method.level(rotational), Level::Clear, "{method:?}");
            }
            assert_eq!(Method::AtaErase.level(rotational), Level::Clear);
        }
        assert_eq!(Method::AtaEnhancedErase.level(true), Level::Purge);
        assert_eq!(
            Method::AtaEnhancedErase.level(false),
            Level::Clear,
            "NIST table A-8: flash is only cleared by it"
        );
    }

    #[test]
    fn the_log_of_each_kind_of_drive_is_named() {
        for (method, log) in [
            (Method::Sanitize(Family::Nvme, Operation::Block), Some("NVMe sanitize status log")),
            (Method::Sanitize(Family::Ata, Operation::Crypto), Some("ATA SANITIZE STATUS EXT")),
            (Method::Sanitize(Family::Scsi, Operation::Block), Some("SCSI REQUEST SENSE")),
            (Method::OpalRevert, Some("TCG Opal")),
            (Method::NvmeFormatCrypto, None),
            (Method::AtaEnhancedErase, None),
            (Method::ScsiFormat, None),
        ] {
            let status = method.device_status().map(|status| status.split(": ").next().unwrap_or_default());
            assert_eq!(status, log, "{method:?}");
        }
    }

    #[test]
    fn what_the_drive_does_in_one_command_cannot_be_stopped() {
        for method in Method::ALL {
            let goes_on = matches!(
                method.as_str(),
                "opal-psid-revert"
                    | "nvme-format-crypto"
                    | "nvme-format-user-data"
                    | "ata-secure-erase-enhanced"
                    | "ata-secure-erase"
                    | "emmc-sanitize"
            );
            assert_eq!(method.abortable(), !goes_on, "{method:?}");
        }
    }

    #[test]
    fn what_takes_minutes_and_what_the_drive_does_itself_are_two_things() {
        for method in Method::ALL {
            // On flash, and on a disk that turns.
            let express = match method.as_str() {
                "nvme-sanitize-crypto"
                | "ata-sanitize-crypto"
                | "scsi-sanitize-crypto"
                | "opal-psid-revert"
                | "nvme-format-crypto" => (true, true),
                "nvme-sanitize-block"
                | "ata-sanitize-block"
                | "scsi-sanitize-block"
                | "nvme-format-user-data" => (true, false),
                _ => (false, false),
            };
            assert_eq!((method.is_express(false), method.is_express(true)), express, "{method:?}");
            let from_outside = [
                "secure-discard",
                "zero-out",
                "discard",
                "overwrite-zeroes",
                "overwrite-pattern",
                "overwrite-random",
            ];
            let other = method == Method::ScsiFormat || from_outside.contains(&method.as_str());
            assert_eq!(method.is_secure_erase(), !other, "{method:?}");
        }
    }

    /// A drive of each kind that has everything that its kind can have, and the words of its methods.
    fn able(kind: &str, state: State) -> Probe {
        let sanitize = Support { crypto: true, block: true, overwrite: true, state: Some(state) };
        let mut probe = Probe { psid: crate::opal::Psid::parse("P"), ..Probe::default() };
        (probe.disk.write_zeroes_max, probe.disk.discard_max) = (1 << 20, 1 << 20);
        match kind {
            "nvme" => {
                let drive = crate::nvme::Namespace {
                    sanitize,
                    alone: true,
                    format_supported: true,
                    format_crypto: true,
                    deallocated_reads_zero: true,
                    ..Default::default()
                };
                probe.nvme = Some(drive);
                probe.opal = Some(crate::opal::Status { supported: true, ..Default::default() });
            }
            "ata" => {
                let mut drive = crate::ata::Capabilities { sanitize, ..Default::default() };
                (drive.security.supported, drive.security.enhanced) = (true, true);
                probe.ata = Some(drive);
            }
            "scsi" => {
                let drive = crate::scsi::Capabilities { sanitize, format_unit: true, ..Default::default() };
                probe.scsi = Some(drive);
            }
            other => panic!("no kind {other}"),
        }
        probe
    }

    fn words(probe: &Probe) -> String {
        methods(probe).into_iter().map(Method::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_drive_that_can_do_everything_does_the_best_first() {
        let sanitizes = |kind: &str| format!("{kind}-sanitize-crypto {kind}-sanitize-block");
        let (nvme, ata, scsi) = (sanitizes("nvme"), sanitizes("ata"), sanitizes("scsi"));
        let security = "ata-secure-erase-enhanced ata-secure-erase";
        for (kind, rotational, expected) in [
            (
                "nvme",
                false,
                format!(
                    "opal-psid-revert {nvme} nvme-format-crypto nvme-format-user-data zero-out discard \
                     overwrite-zeroes nvme-sanitize-overwrite"
                ),
            ),
            ("ata", false, format!("{ata} {security} zero-out overwrite-zeroes ata-sanitize-overwrite")),
            ("ata", true, format!("{ata} zero-out overwrite-zeroes {security} ata-sanitize-overwrite")),
            (
                "scsi",
                true,
                format!("{scsi} zero-out overwrite-zeroes scsi-sanitize-overwrite scsi-format-unit"),
            ),
        ] {
            let mut probe = able(kind, State::Idle);
            probe.disk.rotational = rotational;
            assert_eq!(words(&probe), expected, "{kind} {rotational}");
            let failed = Probe { disk: probe.disk, ..able(kind, State::Failed) };
            let only = format!("{} {kind}-sanitize-overwrite", sanitizes(kind));
            assert_eq!(words(&failed), only, "after a failed sanitize it takes nothing else");
        }
    }

    #[test]
    fn what_reaches_its_neighbours_or_is_not_there_is_not_taken() {
        let of = |change: fn(&mut Probe)| {
            let mut probe = able("nvme", State::Idle);
            change(&mut probe);
            words(&probe)
        };
        let rest = "zero-out discard overwrite-zeroes";
        let format = format!("nvme-format-crypto nvme-format-user-data {rest}");
        assert_eq!(of(|probe| probe.nvme.as_mut().unwrap().alone = false), format);
        assert_eq!(of(|probe| probe.nvme.as_mut().unwrap().hidden = 1), format);
        let global = |probe: &mut Probe| {
            let nvme = probe.nvme.as_mut().unwrap();
            (nvme.alone, nvme.erase_is_global) = (false, true);
        };
        assert_eq!(of(global), rest);
        assert_eq!(
            of(|probe| *probe = Probe { disk: std::mem::take(&mut probe.disk), ..Probe::default() }),
            "zero-out overwrite-zeroes"
        );
        let discards = |probe: &mut Probe| {
            *probe = Probe { secure_discard: true, ..Probe::default() };
            (probe.disk.discard_max, probe.disk.discard_reads_zero) = (1, true);
        };
        assert_eq!(of(discards), "secure-discard discard overwrite-zeroes");
        for change in [
            |probe: &mut Probe| probe.psid = None,
            |probe: &mut Probe| probe.opal = Some(crate::opal::Status::default()),
        ] {
            assert!(of(change).starts_with("nvme-sanitize-crypto"), "without PSID or Opal");
        }
        let locked = |probe: &mut Probe| probe.opal.as_mut().unwrap().locked = true;
        assert_eq!(of(locked), "opal-psid-revert");
        let mut frozen = able("ata", State::Frozen);
        frozen.ata.as_mut().unwrap().security.frozen = true;
        assert_eq!(words(&frozen), "zero-out overwrite-zeroes");
        let mut expired = able("ata", State::Frozen);
        expired.ata.as_mut().unwrap().security.expired = true;
        assert_eq!(words(&expired), "zero-out overwrite-zeroes");
    }

    proptest! {
        #[test]
        fn only_supported_methods_in_order_and_overwrite_among_them(probe in any_probe()) {
            let found = methods(&probe);
            let (disk, nvme) = (&probe.disk, probe.nvme);
            let ranks: Vec<_> = found.iter().map(|method| method.rank(disk.rotational)).collect();
            prop_assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
            let has = |method| found.contains(&method);
            // Of every drive, locked or not: a revert and a sanitize reach all of its namespaces.
            prop_assert!(!has(Method::OpalRevert) || probe.psid.is_some()
                && probe.opal.is_some_and(|opal| opal.supported)
                && nvme.is_none_or(|nvme| nvme.alone && nvme.hidden == 0));
            let sanitizes = found.iter().any(|method| matches!(method, Method::Sanitize(Family::Nvme, _)));
            prop_assert!(!sanitizes || nvme.is_some_and(|nvme| nvme.alone && nvme.hidden == 0));
            prop_assert!(!probe.is_locked() || found.iter().all(|&method| method == Method::OpalRevert));
            // What is promised of drives that give their content.
            if probe.is_locked() {
                return Ok(());
            }
            let waits = failed(&probe);
            prop_assert_eq!(has(Method::Overwrite), !waits);
            prop_assert_eq!(has(Method::ZeroOut), disk.write_zeroes_max > 0 && !waits);
            prop_assert!(!has(Method::Discard) || disk.discard_max > 0
                && (disk.discard_reads_zero || nvme.is_some_and(|nvme| nvme.deallocated_reads_zero)));
            let format = has(Method::NvmeFormat) || has(Method::NvmeFormatCrypto);
            prop_assert!(!format || nvme.is_some_and(|nvme| nvme.format_supported
                && (nvme.alone || !nvme.format_is_global && !nvme.erase_is_global)));
            prop_assert!(!has(Method::NvmeFormatCrypto) || nvme.is_some_and(|nvme| nvme.format_crypto));
            let security = probe.ata.map(|ata| ata.security).unwrap_or_default();
            prop_assert!(!has(Method::AtaErase) || security.supported && !security.frozen && !security.expired);
            prop_assert!(!has(Method::AtaEnhancedErase) || has(Method::AtaErase) && security.enhanced);
            prop_assert!(!has(Method::ScsiFormat) || probe.scsi.is_some_and(|scsi| scsi.format_unit));
            prop_assert!(!has(Method::EmmcSanitize)
                || probe.mmc.is_some_and(|mmc| mmc.registers.sanitize && mmc.registers.erase_group.is_some()));
            prop_assert!(!has(Method::SecureDiscard) || probe.secure_discard);
            for method in &found {
                if let Method::Sanitize(family, operation) = method {
                    let support = match family {
                        Family::Nvme => nvme.filter(|nvme| nvme.alone && nvme.hidden == 0).map(|nvme| nvme.sanitize),
                        Family::Ata => probe.ata.map(|ata| ata.sanitize),
                        Family::Scsi => probe.scsi.map(|scsi| scsi.sanitize),
                    };
                    let support = support.unwrap_or_default();
                    prop_assert!(support.state.is_some_and(|state| state != State::Frozen));
                    let has = match operation {
                        Operation::Crypto => support.crypto,
                        Operation::Block => support.block,
                        Operation::Overwrite => support.overwrite,
                    };
                    prop_assert!(has);
                }
            }
        }
    }
}
