//! Which entries stay, which go, and in which order they are tried.

use crate::bytes::{ESP, hex};
use boot_entries::device_path::file_on;
use boot_entries::plan::{Firmware, Plan, Reason, plan};
use boot_entries::{HardDrive, LoadOption, Signature};
use std::collections::BTreeSet;

const OTHER: [u8; 16] = [7; 16];
const GONE: [u8; 16] = [9; 16];

fn on(signature: Signature, label: &str) -> LoadOption {
    let drive = HardDrive { number: 15, start: 4096, sectors: 32768, signature };
    let path = file_on(&drive, r"\EFI\debian\shimx64.efi").expect("short");
    LoadOption { active: true, description: label.to_owned(), path, data: Vec::new() }
}

fn wanted() -> LoadOption {
    on(Signature::Gpt(ESP), "debian")
}

fn value(option: &LoadOption) -> Vec<u8> {
    option.bytes().expect("short")
}

/// Over the network: PciRoot(0)/MAC(…).
fn network(label: &str) -> Vec<u8> {
    let path = hex(
        "02010c00d041030a00000000030b250052540000000100000000000000000000000000000000000000000000000000000000017fff0400",
    );
    value(&LoadOption { active: true, description: label.to_owned(), path, data: Vec::new() })
}

fn machine() -> Firmware {
    Firmware {
        entries: vec![
            (0, network("UEFI PXEv4")),
            (1, value(&on(Signature::Gpt(GONE), "Fedora"))),
            (2, value(&on(Signature::Gpt(OTHER), "Windows Boot Manager"))),
            (3, value(&on(Signature::Gpt(GONE), "debian"))),
            (4, network("debian")),
            (5, value(&on(Signature::Mbr([1, 2, 3, 4]), "old"))),
            (6, b"no entry".to_vec()),
        ],
        order: vec![0, 9, 1, 2, 3, 4, 5],
        current: Some(0),
        next: None,
    }
}

fn planned(firmware: &Firmware, partitions: Option<&[[u8; 16]]>) -> Plan {
    let partitions: Option<BTreeSet<_>> = partitions.map(|all| all.iter().copied().collect());
    plan(firmware, &wanted(), &value(&wanted()), partitions.as_ref()).expect("a plan")
}

fn gone(plan: &Plan) -> Vec<(u16, Reason)> {
    plan.remove.iter().map(|removal| (removal.number, removal.why)).collect()
}

/// The firmware after it.
fn done(mut firmware: Firmware, plan: &Plan) -> Firmware {
    firmware.entries.retain(|(number, _)| plan.remove.iter().all(|removal| removal.number != *number));
    if plan.clear_next {
        firmware.next = None;
    }
    if let Some(value) = &plan.add {
        firmware.entries.push((plan.number, value.clone()));
        firmware.entries.sort();
    }
    firmware.order = plan.order.clone().unwrap_or(firmware.order);
    firmware
}

#[test]
fn ours_comes_first_and_what_earlier_deployments_left_goes() {
    let plan = planned(&machine(), Some(&[ESP, OTHER]));
    assert_eq!(gone(&plan), [(1, Reason::NoSuchPartition), (3, Reason::SameLabel)]);
    assert_eq!((plan.number, plan.add.clone()), (1, Some(value(&wanted()))));
    assert_eq!(plan.order, Some(vec![1, 0, 9, 2, 4, 5]));
}

#[test]
fn a_second_run_changes_nothing() {
    let firmware = machine();
    let after = done(firmware.clone(), &planned(&firmware, Some(&[ESP, OTHER])));
    let again = planned(&after, Some(&[ESP, OTHER]));
    let nothing = Plan { remove: vec![], clear_next: false, number: 1, add: None, order: None };
    assert_eq!(again, nothing);
}

#[test]
fn where_a_disk_cannot_be_read_no_entry_is_taken_for_dead() {
    assert_eq!(gone(&planned(&machine(), None)), [(3, Reason::SameLabel)]);
}

#[test]
fn network_firmware_and_removable_entries_stay() {
    let mut firmware = machine();
    // A file in the firmware, and USB(0,0)/HD(…) with a partition that is gone.
    let usb = [hex("030506000000"), on(Signature::Gpt(GONE), "").path].concat();
    let app = hex("0407140089a3c21a2d76a14b9bb3d7d1f9ff0a3e7fff0400");
    for (number, path) in [(20, usb), (21, app)] {
        let option = LoadOption { active: true, description: "debian".into(), path, data: vec![] };
        firmware.entries.push((number, value(&option)));
    }
    let plan = planned(&firmware, Some(&[]));
    assert_eq!(
        gone(&plan),
        [(1, Reason::NoSuchPartition), (2, Reason::NoSuchPartition), (3, Reason::SameLabel)]
    );
}

#[test]
fn what_the_ramdisk_was_started_from_is_not_dead() {
    let firmware = Firmware { current: Some(1), ..machine() };
    assert_eq!(gone(&planned(&firmware, Some(&[ESP, OTHER]))), [(3, Reason::SameLabel)]);
}

#[test]
fn an_inactive_entry_of_ours_is_written_again() {
    let mut firmware = machine();
    firmware.entries.push((8, value(&LoadOption { active: false, ..wanted() })));
    let plan = planned(&firmware, None);
    assert_eq!(gone(&plan), [(3, Reason::SameLabel), (8, Reason::SameLabel)]);
    assert!(plan.add.is_some());
}

#[test]
fn an_entry_that_is_there_is_only_moved_to_the_front() {
    let mut firmware = machine();
    firmware.entries.push((8, value(&wanted())));
    firmware.order.push(8);
    let plan = planned(&firmware, None);
    assert_eq!((plan.number, plan.add.is_none()), (8, true));
    assert_eq!(plan.order, Some(vec![8, 0, 9, 1, 2, 4, 5]));
}

#[test]
fn the_next_boot_is_not_that_of_an_entry_that_is_gone() {
    for (next, cleared) in [(None, false), (Some(0), false), (Some(3), true)] {
        let plan = planned(&Firmware { next, ..machine() }, None);
        assert_eq!(plan.clear_next, cleared, "{next:?}");
    }
}

#[test]
fn a_number_that_anything_names_is_not_free() {
    let network = network("PXE");
    let firmware = Firmware {
        entries: vec![(0, network.clone()), (3, network.clone())],
        order: vec![1, 0],
        current: Some(2),
        next: Some(4),
    };
    assert_eq!(planned(&firmware, None).number, 5);
    assert_eq!(planned(&Firmware::default(), None).number, 0);
    let full =
        Firmware { entries: (0..=u16::MAX).map(|number| (number, network.clone())).collect(), ..firmware };
    let error = plan(&full, &wanted(), &value(&wanted()), None).expect_err("full").to_string();
    assert!(error.contains("NVRAM has 65536 boot entries"), "{error}");
}
