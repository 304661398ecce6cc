//! The drive's own state machines, by the bytes of the standards.

use drive::clock::Clock;
use drive::medium::{Medium, Private};
use drive::{Answer, Drive, Spec};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Time that passes when the test says so.
#[derive(Default, Clone)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Acquire))
    }

    fn sleep(&self, duration: Duration) {
        self.0.fetch_add(u64::try_from(duration.as_millis()).unwrap(), Ordering::AcqRel);
    }
}

/// A drive that can lose its power.
struct Bench {
    spec: Spec,
    medium: Private,
    kept: Private,
    clock: Hand,
    drive: Drive,
}

impl Bench {
    fn new(spec: &str) -> Self {
        let spec = Spec::parse(spec).unwrap();
        let (medium, kept, clock) =
            (Private(Arc::new(Mutex::new(vec![0xcc; 1 << 20]))), Private::new(64), Hand::default());
        let drive = Self::power_on(&spec, &medium, &kept, &clock);
        Bench { spec, medium, kept, clock, drive }
    }

    fn power_on(spec: &Spec, medium: &Private, kept: &Private, clock: &Hand) -> Drive {
        Drive::new(spec.clone(), Box::new(medium.clone()), Box::new(kept.clone()), Box::new(clock.clone()))
    }

    fn power_cycle(&mut self) {
        self.drive = Self::power_on(&self.spec, &self.medium, &self.kept, &self.clock);
    }

    fn pass(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds));
    }

    /// ATA PASS-THROUGH (16) with data out, or without data.
    fn ata(&mut self, code: u8, out: &[u8]) -> bool {
        let protocol = if out.is_empty() { 3 << 1 } else { 5 << 1 };
        self.drive.execute(&[0x85, protocol, 0x06, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, code, 0], out).status == 0
    }

    fn identify(&mut self, word: usize) -> u16 {
        let data = self.drive.execute(&[0x85, 8, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0], &[]).data;
        assert_eq!(data.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)), 0, "the checksum");
        u16::from_le_bytes([data[word * 2], data[word * 2 + 1]])
    }

    /// READ CAPACITY (16): blocks.
    fn capacity(&mut self) -> u64 {
        let cdb = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0];
        u64::from_be_bytes(self.drive.execute(&cdb, &[]).data[..8].try_into().unwrap()) + 1
    }

    /// Sense key, code and qualifier of a read of the first block.
    fn read(&mut self) -> Result<u8, (u8, u8, u8)> {
        let answer = self.drive.execute(&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[]);
        if answer.status == 0 { Ok(answer.data[0]) } else { Err(sense(&answer)) }
    }

    /// SANITIZE STATUS EXT, or another feature: status, COUNT, LBA 15:0.
    fn sanitize(&mut self, feature: u8, count: u8, lba: [u8; 4]) -> (u8, u16, u16) {
        let [l3, l2, l1, l0] = lba;
        let cdb = [0x85, 7, 0x20, 0, feature, 0, count, l3, l0, 0, l1, 0, l2, 0x40, 0xb4, 0];
        let sense = self.drive.execute(&cdb, &[]).sense;
        let &[0x72, _, _, _, 0, 0, 0, 14, 0x09, 12, 1, _, c1, c0, _, l0, _, l1, _, _, _, status] = &sense[..]
        else {
            panic!("{sense:02x?}");
        };
        (status, u16::from_be_bytes([c1, c0]), u16::from_be_bytes([l1, l0]))
    }
}

fn sense(answer: &Answer) -> (u8, u8, u8) {
    assert_eq!((answer.status, answer.sense[0]), (2, 0x70));
    (answer.sense[2], answer.sense[12], answer.sense[13])
}

fn secret(password: &[u8], control: u8) -> [u8; 512] {
    let mut data = [0; 512];
    data[0] = control;
    data[2..2 + password.len()].copy_from_slice(password);
    data
}

const SET: u8 = 0xf1;
const UNLOCK: u8 = 0xf2;
const PREPARE: u8 = 0xf3;
const ERASE: u8 = 0xf4;
const FREEZE: u8 = 0xf5;
const DISABLE: u8 = 0xf6;

#[test]
fn a_password_locks_the_drive_when_the_power_was_off_and_five_wrong_ones_close_it() {
    let mut bench = Bench::new("ata,S1,security");
    assert_eq!(bench.identify(128), 0x21, "supported, enhanced");
    assert!(bench.ata(SET, &secret(b"right", 0)));
    assert_eq!((bench.identify(128), bench.read()), (0x23, Ok(0xcc)), "enabled and open");
    bench.power_cycle();
    assert_eq!((bench.identify(128), bench.read()), (0x27, Err((7, 0x74, 0x79))));
    assert!(!bench.ata(SET, &secret(b"another", 0)) && !bench.ata(DISABLE, &secret(b"right", 0)), "locked");
    for _ in 0..5 {
        assert!(!bench.ata(UNLOCK, &secret(b"wrong", 0)));
    }
    assert_eq!(bench.identify(128), 0x37, "expired");
    assert!(!bench.ata(UNLOCK, &secret(b"right", 0)));
    bench.power_cycle();
    assert!(bench.ata(UNLOCK, &secret(b"right", 0)) && bench.ata(DISABLE, &secret(b"right", 0)));
    assert_eq!((bench.identify(128), bench.read()), (0x21, Ok(0xcc)));
}

#[test]
fn an_erase_needs_its_preparation_directly_before_it_and_a_frozen_drive_takes_nothing() {
    let mut bench = Bench::new("ata,S1,security");
    assert!(bench.ata(SET, &secret(b"p", 0)) && bench.ata(PREPARE, &[]));
    bench.identify(0);
    assert!(!bench.ata(ERASE, &secret(b"p", 0)), "IDENTIFY came between");
    assert!(bench.ata(PREPARE, &[]) && !bench.ata(ERASE, &secret(b"q", 0)), "a wrong password");
    assert!(bench.ata(PREPARE, &[]) && bench.ata(ERASE, &secret(b"p", 0)));
    assert_eq!((bench.identify(128), bench.read()), (0x21, Ok(0)));
    assert!(bench.ata(FREEZE, &[]));
    assert_eq!(bench.identify(128), 0x29);
    assert!(!bench.ata(SET, &secret(b"p", 0)) && !bench.ata(PREPARE, &[]));
    bench.power_cycle();
    assert!(bench.ata(SET, &secret(b"p", 0)));
}

#[test]
fn an_ata_sanitize_goes_on_after_a_loss_of_power_and_a_failure_stays_until_it_is_cleared() {
    const CRYP: [u8; 4] = [0x43, 0x72, 0x79, 0x70];
    let mut bench = Bench::new("ata,S1,crypto,fails,takes=4");
    assert_eq!(
        bench.sanitize(0x11, 0, [0; 4]),
        (0x51, 0, 2),
        "without what keeps it from being sent by chance"
    );
    assert_eq!(bench.sanitize(0x12, 0, [0x42, 0x6b, 0x45, 0x72]), (0x51, 0, 2), "not supported");
    assert_eq!(bench.sanitize(0x11, 0, CRYP), (0x50, 0x4000, 0));
    assert_eq!(bench.read(), Err((2, 0x04, 0x1b)));
    bench.pass(2);
    assert_eq!(bench.sanitize(0, 0, [0; 4]), (0x50, 0x4000, 0x8000));
    bench.power_cycle();
    assert_eq!(bench.sanitize(0, 0, [0; 4]), (0x50, 0x4000, 0x8000), "half of it is done");
    bench.pass(2);
    assert_eq!(bench.sanitize(0, 0, [0; 4]), (0x51, 0, 1));
    assert_eq!(bench.read(), Err((3, 0x31, 0x03)));
    assert_eq!(bench.sanitize(0, 1, [0; 4]).0, 0x50);
    assert_eq!(bench.sanitize(0x11, 0, CRYP), (0x50, 0x4000, 0));
    bench.pass(4);
    assert_eq!(bench.sanitize(0, 0, [0; 4]), (0x50, 0x8000, 0xffff));
    assert_ne!(bench.read(), Ok(0xcc));
    assert_eq!(bench.sanitize(0x20, 0, [0x46, 0x72, 0x4c, 0x6b]).1, 0xa000, "frozen");
    assert_eq!(bench.sanitize(0x11, 0, CRYP), (0x51, 0, 3));
}

#[test]
fn a_scsi_sanitize_rejects_what_is_not_the_standards_and_reports_its_progress() {
    let mut bench = Bench::new("scsi,S1,overwrite,format,takes=2");
    let overwrite = [0x48, 0x81, 0, 0, 0, 0, 0, 0, 8, 0];
    let wrong = [
        (&[0x48, 0x82, 0, 0, 0, 0, 0, 0, 0, 0], &[][..], (5, 0x24, 0)),
        (&overwrite, &[0, 0, 0, 4, 7, 7, 7, 7][..], (5, 0x26, 0)),
        (&overwrite, &[1, 0, 0, 5, 7, 7, 7, 7][..], (5, 0x26, 0)),
    ];
    for (cdb, out, expected) in wrong {
        assert_eq!(sense(&bench.drive.execute(cdb, out)), expected, "{cdb:02x?} {out:?}");
    }
    assert_eq!(bench.drive.execute(&overwrite, &[1, 0, 0, 4, 7, 7, 7, 7]).status, 0);
    bench.pass(1);
    let asked = bench.drive.execute(&[0x03, 0, 0, 0, 252, 0], &[]).data;
    assert_eq!((asked[2], asked[12], asked[13], &asked[15..18]), (2, 0x04, 0x1b, &[0x80, 0x80, 0][..]));
    assert_eq!(sense(&bench.drive.execute(&[0; 6], &[])), (2, 0x04, 0x1b));
    bench.pass(1);
    assert_eq!(bench.read(), Ok(7));
    let mut byte = [0];
    bench.medium.read((1 << 20) - 1, &mut byte);
    assert_eq!(byte, [7]);
}

#[test]
fn sectors_are_hidden_until_set_max_directly_after_the_question_shows_them() {
    let mut bench = Bench::new("ata,S1,hidden=48");
    let native = [0x85, 7, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x27, 0];
    // LBA 2047.
    let set_max = [0x85, 7, 0, 0, 0, 0, 0, 0, 0xff, 0, 0x07, 0, 0, 0x40, 0x37, 0];
    assert_eq!(bench.capacity(), 2000);
    assert_eq!(bench.drive.execute(&set_max, &[]).status, 2, "not directly after the question");
    assert_eq!(bench.drive.execute(&native, &[]).sense[1], 1);
    assert_eq!(bench.drive.execute(&set_max, &[]).status, 0);
    assert_eq!(bench.capacity(), 2048);
}

#[test]
fn the_accessible_max_address_is_set_until_it_is_frozen_and_excludes_the_host_protected_area() {
    let mut bench = Bench::new("ata,S1,hidden=48,amac");
    let command = |feature: u8, lba: [u8; 2]| {
        [0x85, 7, 0x20, 0, feature, 0, 0, 0, lba[1], 0, lba[0], 0, 0, 0x40, 0x78, 0]
    };
    assert_eq!((bench.identify(119), bench.identify(82), bench.capacity()), (0x4100, 0, 2000));
    assert!(!bench.ata(0x27, &[]), "no host protected area");
    let native = bench.drive.execute(&command(0, [0, 0]), &[]).sense;
    assert_eq!((native[1], native[15], native[17]), (1, 0xff, 0x07));
    bench.drive.execute(&command(1, [0x07, 0xff]), &[]);
    assert_eq!(bench.capacity(), 2048);
    bench.drive.execute(&command(2, [0, 0]), &[]);
    assert_eq!(bench.drive.execute(&command(1, [0, 0x0f]), &[]).sense[1], 0xb, "frozen");
    assert_eq!(bench.capacity(), 2048);
    bench.power_cycle();
    assert_eq!(bench.capacity(), 2000);
}
