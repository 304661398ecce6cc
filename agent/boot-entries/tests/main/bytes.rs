//! Load options byte by byte. The expected values were made by libefivar and libefiboot 37-6, the libraries of efibootmgr:
//! `efidp_make_hd`, `efidp_make_file`, `efi_loadopt_create`.

use boot_entries::device_path::{file, file_on, partition};
use boot_entries::{HardDrive, LoadOption, Signature};
use proptest::prelude::*;

/// 5CA1AB1E-0000-4000-8000-00000000C0DE
pub const ESP: [u8; 16] = [0x1e, 0xab, 0xa1, 0x5c, 0, 0, 0, 0x40, 0x80, 0, 0, 0, 0, 0, 0xc0, 0xde];

const DEBIAN: &str = "010000006200640065006200690061006e00000004012a000f0000000010000000000000008000000000000\
                      01eaba15c00000040800000000000c0de0202040434005c004500460049005c006400650062006900610\
                      06e005c007300680069006d007800360034002e0065006600690000007fff0400";
const OF_AN_MBR: &str = "010000005e0061006e006e00650061006c00000004012a0002000000000800000000000000100000000\
                         000004d3c2b1a0000000000000000000000000101040430005c004500460049005c0042004f004f0054\
                         005c0042004f004f0054005800360034002e0045004600490000007fff040078003d003100";

pub fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex")).collect()
}

fn option(label: &str, drive: &HardDrive, path: &str, data: &[u8]) -> LoadOption {
    let path = file_on(drive, path).expect("short");
    LoadOption { active: true, description: label.to_owned(), path, data: data.to_vec() }
}

#[test]
fn entries_are_those_of_efibootmgr() {
    let on_gpt = HardDrive { number: 15, start: 4096, sectors: 32768, signature: Signature::Gpt(ESP) };
    let debian = option("debian", &on_gpt, r"\EFI\debian\shimx64.efi", b"");
    let id = [0x4d, 0x3c, 0x2b, 0x1a];
    let on_mbr = HardDrive { number: 2, start: 2048, sectors: 4096, signature: Signature::Mbr(id) };
    let anneal = option("anneal", &on_mbr, r"\EFI\BOOT\BOOTX64.EFI", b"x\0=\x001\0");
    for (ours, drive, expected) in [(debian, on_gpt, DEBIAN), (anneal, on_mbr, OF_AN_MBR)] {
        assert_eq!(ours.bytes().expect("short"), hex(expected));
        let read = LoadOption::parse(&hex(expected)).expect("an entry");
        assert_eq!(partition(&read.path), Some(drive));
        assert!(file(&read.path).is_some_and(|file| file.starts_with(r"\EFI\")));
        assert_eq!(read, ours);
    }
}

#[test]
fn only_what_begins_with_a_partition_is_on_a_disk() {
    // PciRoot(0)/Pci(3,0)/MAC(…)/IPv4, a file in the firmware, USB(0,0)/HD(…).
    let network = "02010c00d041030a0000000001010600000303";
    let firmware = "0407140089a3c21a2d76a14b9bb3d7d1f9ff0a3e7fff0400";
    let usb = format!("030506000000{}", &DEBIAN[40..]);
    for path in [network, firmware, &usb, "7fff0400", ""] {
        assert_eq!(partition(&hex(path)), None, "{path}");
    }
    assert!(partition(&hex(&DEBIAN[40..])).is_some());
}

#[test]
fn what_does_not_fit_is_no_entry() {
    let drive = HardDrive { number: 1, start: 1, sectors: 1, signature: Signature::Other };
    assert_eq!(file_on(&drive, &"x".repeat(40_000)), None);
    let long = LoadOption { active: false, description: String::new(), path: vec![0; 70_000], data: vec![] };
    assert_eq!(long.bytes(), None);
    for cut in [0, 3, 5, 6, 19, 60] {
        assert_eq!(LoadOption::parse(&hex(DEBIAN)[..cut]), None, "{cut}");
    }
}

proptest! {
    #[test]
    fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..118, byte: u8) {
        let mut entry = hex(DEBIAN);
        entry[at] = byte;
        for bytes in [bytes, entry] {
            if let Some(option) = LoadOption::parse(&bytes) {
                let _ = (partition(&option.path), file(&option.path));
                prop_assert!(option.path.len() + option.data.len() <= bytes.len());
            }
        }
    }
}
