//! Probes of every kind, for property tests.

use crate::ata::{self, HiddenArea, Security};
use crate::disk::{Disk, Holder, HolderKind};
use crate::mmc::{Emmc, ExtCsd};
use crate::nvme::Namespace;
use crate::nvme::log::{Reservation, Times};
use crate::opal::{Psid, Status};
use crate::probe::{PartitionType, Probe};
use crate::sanitize::{State, Support};
use crate::scsi;
use proptest::prelude::*;
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

/// A probe of any drive in any state; what it is and what it says need not fit together.
pub(crate) fn any_probe() -> impl Strategy<Value = Probe> {
    let flags = prop::collection::vec(any::<bool>(), 12);
    let kind = prop::sample::select(vec!["", "0x83", "0xfb", "AA31E02A-400F-11DB-9590-000C2911D1B8"]);
    let drive = prop_oneof![
        Just((None, None, None)),
        nvme().prop_map(|nvme| (Some(nvme), None, None)),
        ata().prop_map(|ata| (None, Some(ata), None)),
        scsi().prop_map(|scsi| (None, None, Some(scsi))),
    ];
    let unreadable = prop::option::weighted(0.1, Just("cannot open".to_owned()));
    (flags, drive, kind, 20u32..45, unreadable).prop_map(
        |(flags, (nvme, ata, scsi), kind, shift, unreadable)| {
            let holder =
                Holder { name: "md0".into(), kind: HolderKind::Md("raid1".into()), ..Holder::default() };
            Probe {
                disk: Disk {
                    name: "sda".into(),
                    path: "/dev/sda".into(),
                    size: 1 << shift,
                    logical_block: 512,
                    write_zeroes_max: u64::from(flags[0]) << 20,
                    discard_max: u64::from(flags[1]) << 20,
                    discard_reads_zero: flags[2],
                    rotational: flags[3],
                    read_only: flags[4] && flags[5],
                    holders: if flags[5] && flags[6] { vec![holder] } else { Vec::new() },
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
                opal: flags[8].then_some(Status {
                    supported: flags[9],
                    locked: flags[10],
                    ..Status::default()
                }),
                psid: Psid::parse("P").filter(|_| flags[11]),
                unreadable,
                ..Probe::default()
            }
        },
    )
}
