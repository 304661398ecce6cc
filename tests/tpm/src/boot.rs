//! What firmware, stub and kernel measure, and the firmware's log of it.

use crate::ramdisk::Ramdisk;
use crate::server::SoftwareTpm;
use tpm::Digest;

/// `EV_SEPARATOR`.
pub const SEPARATOR: u32 = 4;
/// `EV_EVENT_TAG`.
pub const TAG: u32 = 6;
/// `EV_EFI_BOOT_SERVICES_APPLICATION`.
pub const APPLICATION: u32 = 0x8000_0003;
/// `EV_EFI_ACTION`.
pub const ACTION: u32 = 0x8000_0007;
/// `EV_S_CRTM_VERSION`, `EV_EFI_VARIABLE_DRIVER_CONFIG`, `EV_IPL`.
const VERSION: u32 = 8;
const VARIABLE: u32 = 0x8000_0001;
const LOADER: u32 = 13;

/// A measurement.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Into which PCR.
    pub pcr: u8,
    /// `TCG_EVENTTYPE`.
    pub kind: u32,
    /// What extends the PCR.
    pub digest: Digest,
    /// `event`.
    pub data: Vec<u8>,
}

impl Measured {
    /// Whose digest is that of its data.
    pub fn data(pcr: u8, kind: u32, data: &[u8]) -> Self {
        Self { pcr, kind, digest: Digest::of(data), data: data.to_vec() }
    }
}

/// A boot: what is measured, oldest first.
#[derive(Debug, Clone)]
pub struct Boot {
    /// May be changed before it is measured, or between that and the log.
    pub events: Vec<Measured>,
}

impl Boot {
    /// The boot of this ramdisk, with its own kernel command line and with `overlay` next to it.
    ///
    /// # Panics
    /// When it is none.
    pub fn of(ramdisk: &Ramdisk, overlay: &[u8]) -> Self {
        let predicted = tpm::predict(&ramdisk.file).expect("a ramdisk");
        let mut events = of_firmware();
        events.push(application(predicted.programs[0]));
        for (name, content) in &ramdisk.parts {
            let name = [name.as_bytes(), &[0]].concat();
            events.push(Measured::data(11, LOADER, &name));
            events.push(Measured { pcr: 11, kind: LOADER, digest: Digest::of(content), data: name });
        }
        events.push(application(predicted.programs[1]));
        events.extend(of_kernel(&ramdisk.line, &[&ramdisk.parts[3].1, overlay]));
        Self { events }
    }

    /// A boot in which loaders start a kernel with this command line and this initrd. `started`: digests of the loaders and the kernel.
    pub fn loaded(started: &[Digest], line: &str, initrd: &[u8]) -> Self {
        let mut events = of_firmware();
        events.extend(started.iter().map(|digest| application(*digest)));
        events.extend(of_kernel(line, &[initrd]));
        Self { events }
    }

    /// Extend the PCRs.
    pub fn measure(&self, tpm: &SoftwareTpm) {
        for event in &self.events {
            tpm.extend(event.pcr, event.digest);
        }
    }

    /// The log, with the banks SHA-1 and SHA-256.
    pub fn log(&self) -> Vec<u8> {
        let mut log = [&[0; 4][..], &3_u32.to_le_bytes(), &[0; 20], &37_u32.to_le_bytes()].concat();
        log.extend(b"Spec ID Event03\0");
        log.extend([0, 0, 0, 0, 0, 2, 0, 2]);
        log.extend([2, 0, 0, 0, 4, 0, 20, 0, 0x0b, 0, 32, 0, 0]);
        for event in &self.events {
            log.extend(u32::from(event.pcr).to_le_bytes());
            log.extend(event.kind.to_le_bytes());
            log.extend([2, 0, 0, 0, 4, 0]);
            log.extend([0; 20]);
            log.extend([0x0b, 0]);
            log.extend(event.digest.0);
            log.extend(u32::try_from(event.data.len()).expect("short").to_le_bytes());
            log.extend(&event.data);
        }
        log
    }
}

/// Before anything is started.
fn of_firmware() -> Vec<Measured> {
    let mut events = vec![
        Measured::data(0, VERSION, b"firmware 1"),
        Measured::data(2, VERSION, b"option ROM"),
        Measured::data(3, VERSION, b"its settings"),
        Measured::data(7, VARIABLE, b"SecureBoot is on"),
        Measured::data(4, ACTION, b"Calling EFI Application from Boot Option"),
    ];
    events.extend((0..8).map(|pcr| Measured::data(pcr, SEPARATOR, &[0; 4])));
    events
}

/// The start of a program.
fn application(digest: Digest) -> Measured {
    Measured { pcr: 4, kind: APPLICATION, digest, data: b"device path".to_vec() }
}

/// What a kernel measures that got this.
fn of_kernel(line: &str, initrd: &[&[u8]]) -> [Measured; 2] {
    let line: Vec<u8> = line.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    [
        Measured { pcr: 9, kind: TAG, digest: Digest::of(&line), data: b"LoadOptions".to_vec() },
        Measured { pcr: 9, kind: TAG, digest: Digest::of_all(initrd), data: b"Linux initrd".to_vec() },
    ]
}
