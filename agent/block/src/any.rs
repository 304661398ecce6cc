//! Probes of every kind, and of whole nodes, for property tests.

use crate::ata::{self, HiddenArea, Security};
use crate::disk::{Disk, Holder, HolderKind, Partition};
use crate::mmc::{Emmc, ExtCsd};
use crate::nvme::Namespace;
use crate::nvme::log::{Reservation, Times};
use crate::opal::{Psid, Status};
use crate::probe::Probe;
use crate::sanitize::{State, Support};
use crate::scsi;
use crate::signature::{PartitionType, Signature, SignatureKind};
use proptest::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

fn support() -> impl Strategy<Value = Support> {
    let state = prop_oneof![
        Just(None),
        Just(Some(State::Idle)),
        any::<u16>().prop_map(|progress| Some(State::Running(progress))),
        Just(Some(State::Failed)),
        Just(Some(State::Frozen)),
    ];
    (any::<bool>(), any::<bool>(), any::<bool>(), state)
        .prop_map(|(crypto, block, overwrite, state)| Support { crypto, block, overwrite, state })
}

fn time() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of((0u64..100_000).prop_map(Duration::from_secs))
}

fn nvme() -> impl Strategy<Value = Namespace> {
    let flags = prop::collection::vec(any::<bool>(), 8);
    let reservation =
        prop::option::of((0u8..7, 0u16..3).prop_map(|(kind, registrants)| Reservation { kind, registrants }));
    (flags, support(), (time(), time(), time()), 0u32..2, reservation).prop_map(
        |(flags, sanitize, (overwrite, block, crypto), hidden, reservation)| Namespace {
            nsid: 1,
            deallocated_reads_zero: flags[0],
            format_supported: flags[1],
            format_is_global: flags[2],
            erase_is_global: flags[3],
            alone: flags[4],
            format_crypto: flags[5],
            sanitize,
            sanitize_times: Times { overwrite, block, crypto },
            write_protected: flags[6] && flags[7],
            hidden,
            reservation,
            ..Namespace::default()
        },
    )
}

fn ata() -> impl Strategy<Value = ata::Capabilities> {
    let flags = prop::collection::vec(any::<bool>(), 6);
    (flags, support(), time(), time(), prop_oneof![4 => Just(0u64), 1 => 1u64..9]).prop_map(
        |(flags, sanitize, time, enhanced_time, host_protected)| ata::Capabilities {
            sanitize,
            security: Security {
                supported: flags[0],
                enabled: flags[1],
                locked: flags[2],
                frozen: flags[3],
                expired: flags[4],
                enhanced: flags[5],
                time,
                enhanced_time,
            },
            sectors: 1 << 20,
            hidden: HiddenArea { host_protected, ..HiddenArea::default() },
        },
    )
}

fn scsi() -> impl Strategy<Value = scsi::Capabilities> {
    let flags = prop::collection::vec(any::<bool>(), 4);
    (flags, support(), 0u32..2, 0u8..2).prop_map(|(flags, sanitize, keys, kind)| scsi::Capabilities {
        sanitize,
        format_unit: flags[0],
        unmap: flags[1],
        write_same: flags[2],
        protection: 0,
        write_protected: flags[3],
        reservation: scsi::Reservation { keys, kind },
    })
}

/// What uses a disk or a partition: mounts, holders, swap.
type Uses = (Vec<PathBuf>, Vec<Holder>, bool);

/// Mostly nothing. Arrays have one of two names, so that several disks have parts of the same one.
fn uses() -> impl Strategy<Value = Uses> {
    let kind = prop_oneof![
        Just(HolderKind::Md("raid1".to_owned())),
        Just(HolderKind::Lvm("vg0-root".to_owned())),
        Just(HolderKind::Other),
    ];
    let holder = (prop::sample::select(vec!["md0", "md1"]), kind)
        .prop_map(|(name, kind)| vec![Holder { name: name.to_owned(), kind, ..Holder::default() }]);
    let mount = prop::sample::select(vec!["/", "/mnt"]).prop_map(|at| vec![PathBuf::from(at)]);
    prop_oneof![
        12 => Just((Vec::new(), Vec::new(), false)),
        1 => holder.prop_map(|holders| (Vec::new(), holders, false)),
        1 => mount.prop_map(|mounts| (mounts, Vec::new(), false)),
        1 => Just((Vec::new(), Vec::new(), true)),
    ]
}

fn partition() -> impl Strategy<Value = Partition> {
    (1u64..64, uses()).prop_map(|(mib, (mounts, holders, swap))| Partition {
        start: mib << 20,
        size: mib << 20,
        holders,
        mounts,
        swap,
        ..Partition::default()
    })
}

fn signature() -> impl Strategy<Value = Signature> {
    let name = prop::sample::select(vec!["iso9660", "udf", "vfat", "LVM2_member", "gpt"]);
    let label = prop::option::of(prop::sample::select(vec!["ir-vfd-dev", "config-2"]));
    (name, label).prop_map(|(name, label)| Signature {
        kind: SignatureKind::Other,
        name: name.to_owned(),
        label: label.map(str::to_owned),
        uuid: None,
        offset: Some(0),
        length: 4,
        range: (0, 1 << 20),
    })
}

/// How a disk is attached, and whether it can be taken out.
fn attached() -> impl Strategy<Value = (Option<String>, bool)> {
    let transports = ["sata", "sas", "scsi", "nvme", "virtio", "mmc", "fc", "iscsi", "usb", "usb"];
    (prop::option::of(prop::sample::select(transports.to_vec())), prop::bool::weighted(0.2))
        .prop_map(|(transport, removable)| (transport.map(str::to_owned), removable))
}

/// A probe of any disk, attached in any way, with any partitions and uses. One of a whole node: see [`any_node`].
pub(crate) fn any_probe() -> impl Strategy<Value = Probe> {
    let partitions = prop::collection::vec(partition(), 0..3);
    let signatures = prop::collection::vec(signature(), 0..3);
    (any_drive(), attached(), partitions, uses(), signatures, prop::bool::weighted(0.1)).prop_map(
        |(mut probe, (transport, removable), partitions, (mounts, holders, swap), signatures, two_paths)| {
            let disk = &mut probe.disk;
            (disk.transport, disk.removable, disk.partitions) = (transport, removable, partitions);
            (disk.mounts, disk.holders, disk.swap) = (mounts, holders, swap);
            disk.other_paths = if two_paths { vec!["sdz".to_owned()] } else { Vec::new() };
            Probe { signatures, ..named(0, probe) }
        },
    )
}

/// The disks of a node, under names of their own.
pub(crate) fn any_node() -> impl Strategy<Value = Vec<Probe>> {
    let numbered = |probes: Vec<Probe>| probes.into_iter().enumerate().map(|(at, p)| named(at, p)).collect();
    prop::collection::vec(any_probe(), 0..5).prop_map(numbered)
}

/// The probe of the node's disk with this number.
fn named(at: usize, mut probe: Probe) -> Probe {
    let disk = &mut probe.disk;
    disk.name = format!("sd{at}");
    disk.path = format!("/dev/sd{at}").into();
    disk.other_paths.iter_mut().for_each(|path| *path = format!("sd{at}path"));
    for (number, partition) in (1..).zip(&mut disk.partitions) {
        (partition.number, partition.name) = (number, format!("sd{at}p{number}"));
    }
    probe
}

/// A probe of any drive in any state; what it is and what it says need not fit together.
fn any_drive() -> impl Strategy<Value = Probe> {
    let flags = prop::collection::vec(any::<bool>(), 12);
    // A type of a partition, which need not be in the kernel's list.
    let kind = prop::sample::select(vec!["", "0x83", "0xfb", "AA31E02A-400F-11DB-9590-000C2911D1B8"]);
    let drive = prop_oneof![
        Just((None, None, None)),
        nvme().prop_map(|nvme| (Some(nvme), None, None)),
        ata().prop_map(|ata| (None, Some(ata), None)),
        scsi().prop_map(|scsi| (None, None, Some(scsi))),
    ];
    let unreadable = prop::option::weighted(0.1, Just("cannot open".to_owned()));
    (flags, drive, kind, 20u32..45, unreadable).prop_map(
        |(flags, (nvme, ata, scsi), kind, shift, unreadable)| Probe {
            disk: Disk {
                size: 1 << shift,
                logical_block: 512,
                write_zeroes_max: u64::from(flags[0]) << 20,
                discard_max: u64::from(flags[1]) << 20,
                discard_reads_zero: flags[2],
                rotational: flags[3],
                read_only: flags[4] && flags[5],
                ..Disk::default()
            },
            partition_types: vec![PartitionType { start: 1 << 20, kind: kind.to_owned() }],
            nvme,
            ata,
            scsi,
            secure_discard: flags[7],
            mmc: (flags[7] && nvme.is_none() && flags[9]).then(|| {
                let registers = ExtCsd {
                    sanitize: flags[0],
                    erase_group: flags[1].then_some(1024),
                    sectors: 1 << 24,
                    ..ExtCsd::default()
                };
                Emmc { registers, protected: u32::from(flags[4]) }
            }),
            opal: flags[8].then_some(Status { supported: flags[9], locked: flags[10], ..Status::default() }),
            psid: Psid::parse("P").filter(|_| flags[11]),
            unreadable,
            ..Probe::default()
        },
    )
}
