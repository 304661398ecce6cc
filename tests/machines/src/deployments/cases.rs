//! Which deployments there are. Pure.

use lab::disk::Bus;
use lab::node::Firmware;
use lab::packing::Packing;

/// The head of the table.
pub const HEAD: &str = "| case | firmware | bus | format | s | outcome |\n|---|---|---|---|---|---|";

/// What happens in a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// Nothing else.
    Written,
    /// The node loses power while the image is written.
    Cut,
    /// The node loses power while the ramdisk boots, or soon after.
    CutInBoot,
    /// The controller is killed, from the writing on.
    Killed,
    /// The mirror drops the connection, again and again.
    MirrorDies,
    /// The mirror sends nothing more, twice.
    MirrorStalls,
    /// The mirror sends other bytes at the second request.
    MirrorLies,
    /// The mirror has another file at the second request, for a moment.
    MirrorChanges,
    /// There is no room for one more boot entry.
    FullNvram,
    /// It begins in the ramdisk of the cleaning, without a boot.
    FastTrack,
}

/// One deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    pub name: String,
    pub firmware: Firmware,
    pub bus: Bus,
    pub packing: Packing,
    pub story: Story,
}

impl Case {
    /// A row of the table.
    pub fn row(&self, seconds: &str, outcome: &str) -> String {
        let firmware = if self.firmware.is_uefi() { "UEFI" } else { "BIOS" };
        let (bus, format) = (self.bus.as_str(), self.packing.as_str());
        format!("| {} | {firmware} | {bus} | {format} | {seconds} | {outcome} |", self.name)
    }
}

/// All of them; so many have their power cut, and so many their controller killed.
pub fn all(times: u64) -> Vec<Case> {
    let mut all: Vec<Case> =
        (0..COLUMNS * Packing::ALL.len()).map(|number| of(number, Story::Written)).collect();
    for story in [Story::Cut, Story::Killed] {
        // Beginning elsewhere, so that a bus and format has another firmware than above.
        all.extend((0..usize::try_from(times).unwrap_or(usize::MAX)).map(|number| {
            let in_boot = story == Story::Cut && number % 3 == 2;
            of(number * 7 + 1, if in_boot { Story::CutInBoot } else { story })
        }));
    }
    let mirrors = [Story::MirrorDies, Story::MirrorStalls, Story::MirrorLies, Story::MirrorChanges];
    all.extend(mirrors.into_iter().enumerate().map(|(number, story)| {
        // Of a compressed image a decoder could find the lie before the digest does, and a qcow2 file is read ahead.
        let packing = if story == Story::MirrorStalls { Packing::Gzip } else { Packing::Raw };
        Case { packing, ..of(number * 7, story) }
    }));
    let nvram = Case { firmware: Firmware::Uefi, ..of(1, Story::FullNvram) };
    all.push(nvram);
    for firmware in [Firmware::Bios, Firmware::Uefi] {
        all.push(Case { firmware, ..of(all.len(), Story::FastTrack) });
    }
    for (number, case) in (1..).zip(&mut all) {
        let word = match case.story {
            Story::Written => "written",
            Story::Cut => "cut",
            Story::CutInBoot => "cut-in-boot",
            Story::Killed => "killed",
            Story::MirrorDies => "mirror-dies",
            Story::MirrorStalls => "mirror-stalls",
            Story::MirrorLies => "mirror-lies",
            Story::MirrorChanges => "mirror-changes",
            Story::FullNvram => "nvram-full",
            Story::FastTrack => "fast-track",
        };
        case.name = format!("{number:02}-{word}");
    }
    all
}

/// NVMe, SATA, and what virtio has.
const COLUMNS: usize = 3;

/// Bus and format by counting through both; firmware so that each bus and each format meets both.
fn of(number: usize, story: Story) -> Case {
    let (column, row) = (number % COLUMNS, number / COLUMNS % Packing::ALL.len());
    let bus = match (column, row % 2) {
        (0, _) => Bus::Nvme,
        (1, _) => Bus::Sata,
        (_, 0) => Bus::Scsi,
        (_, _) => Bus::Virtio,
    };
    // Rows come in twos for SCSI and virtio, so that each of them meets both.
    let firmware = if (column + row + row / 2).is_multiple_of(2) { Firmware::Bios } else { Firmware::Uefi };
    Case { name: String::new(), firmware, bus, packing: Packing::ALL[row], story }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_firmware_bus_and_format_is_there() {
        let written: Vec<Case> = all(1).into_iter().filter(|case| case.story == Story::Written).collect();
        assert_eq!(written.len(), 18);
        let is = |case: &Case, bus: Bus| case.bus == bus;
        let virtio = |case: &Case| is(case, Bus::Scsi) || is(case, Bus::Virtio);
        let buses: [&dyn Fn(&Case) -> bool; 3] =
            [&|case| is(case, Bus::Nvme), &|case| is(case, Bus::Sata), &virtio];
        for packing in Packing::ALL {
            for bus in buses {
                assert!(written.iter().any(|case| bus(case) && case.packing == packing), "{packing:?}");
            }
            for firmware in [Firmware::Bios, Firmware::Uefi] {
                let met = written.iter().any(|case| case.firmware == firmware && case.packing == packing);
                assert!(met, "{firmware:?} {packing:?}");
            }
        }
        for bus in [Bus::Nvme, Bus::Sata, Bus::Scsi, Bus::Virtio] {
            for firmware in [Firmware::Bios, Firmware::Uefi] {
                let met = written.iter().any(|case| case.firmware == firmware && case.bus == bus);
                assert!(met, "{firmware:?} {bus:?}");
            }
        }
    }

    #[test]
    fn names_are_of_one_case_each_and_interruptions_are_counted() {
        let all = all(10);
        let names: std::collections::BTreeSet<&str> = all.iter().map(|case| case.name.as_str()).collect();
        assert_eq!((names.len(), all.len()), (18 + 20 + 7, 18 + 20 + 7));
        for (story, count) in
            [(Story::Cut, 7), (Story::CutInBoot, 3), (Story::Killed, 10), (Story::FastTrack, 2)]
        {
            let of_it: Vec<&Case> = all.iter().filter(|case| case.story == story).collect();
            assert_eq!(of_it.len(), count);
            assert!(
                of_it.iter().any(|case| case.firmware.is_uefi())
                    && of_it.iter().any(|case| !case.firmware.is_uefi())
            );
        }
        let nvram = all.iter().find(|case| case.story == Story::FullNvram).unwrap();
        assert!(nvram.firmware.is_uefi());
        assert!(nvram.row("7", "fine").contains("nvram-full | UEFI |"), "{}", nvram.row("7", "fine"));
    }
}
