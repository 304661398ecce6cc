//! Metadata of other tools, made by those tools where this machine has them, and gone afterwards: as we see it, as
//! wipefs and the tool itself see it, and byte by byte. Needs root, losetup, cryptsetup, make-bcache, mkfs.ocfs2,
//! mkfs.gfs2, sgdisk, sfdisk, vgcreate, wipefs, blkid.

use crate::common::{Loop, run};
use block::{Ending, Refusal, erase_metadata, judge};
use std::io::Write;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Erase the metadata; what was found before and after it, with wipefs as a witness.
fn erase(disk: &Loop) -> Vec<String> {
    let found = disk.probe().signatures.into_iter().map(|signature| signature.name).collect();
    let record = erase_metadata(&disk.open(), &());
    assert_eq!(record.ending, Ending::Erased, "{record:?}");
    assert!(record.verification.unwrap().passed);
    assert_eq!(run("wipefs", &["--no-act", disk.node()]), "");
    assert!(disk.probe().signatures.is_empty());
    found
}

fn fed(tool: &str, arguments: &[&str], input: &str) {
    let mut child = Command::new(tool)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{tool} cannot be run ({error}): this test needs it"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{tool} {arguments:?}");
}

#[test]
fn both_headers_of_luks2_go() {
    for (size, sector) in [(64 * MIB, "512"), (64 * MIB, "4096")] {
        let disk = Loop::sparse(size, &["--sector-size", sector]);
        let cheap = ["--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000"];
        let format = ["luksFormat", "--type", "luks2", "--luks2-metadata-size", "4m", "-q"];
        fed("cryptsetup", &[&format[..], &cheap, &[disk.node(), "-"]].concat(), "pass");
        assert_eq!(disk.part(4 * MIB, 6), b"SKUL\xba\xbe", "the second header");
        assert!(erase(&disk).contains(&"crypto_LUKS".to_owned()));
        assert_eq!((disk.part(0, 4096), disk.part(4 * MIB, 4096)), (vec![0; 4096], vec![0; 4096]));
        let repaired = Command::new("cryptsetup").args(["isLuks", disk.node()]).status().unwrap();
        assert!(!repaired.success(), "cryptsetup itself finds no header");
    }
}

#[test]
fn second_luks2_header_alone_goes() {
    let disk = Loop::sparse(64 * MIB, &[]);
    disk.write(MIB, b"SKUL\xba\xbe\0\x02");
    erase(&disk);
    assert_eq!(disk.part(MIB, 8), [0; 8]);
}

#[test]
fn bcache_goes() {
    for role in ["-B", "-C"] {
        let disk = Loop::sparse(64 * MIB, &[]);
        run("make-bcache", &[role, disk.node()]);
        assert_eq!(erase(&disk), ["bcache"], "{role}");
    }
}

#[test]
fn all_bluestore_labels_go() {
    let label = b"bluestore block device\n01234567-89ab-cdef-0123-456789abcdef\n";
    let disk = Loop::sparse(1001 * GIB, &[]);
    let places = [0, GIB, 10 * GIB, 100 * GIB, 1000 * GIB];
    for place in places {
        disk.write(place, label);
    }
    assert!(erase(&disk).contains(&"ceph_bluestore".to_owned()));
    for place in places {
        assert_eq!(disk.part(place, label.len()), vec![0; label.len()], "at {} GiB", place / GIB);
    }
}

#[test]
fn every_place_of_a_second_copy_goes() {
    // Second headers of LUKS2 and VMFS, three superblocks of btrfs after the first, labels of BlueStore.
    let mib = [1, 2, 4, 64].map(|at| at * MIB);
    let places = [&mib[..], &[1, 10, 100, 256, 1000].map(|at| at * GIB)].concat();
    let disk = Loop::sparse(1001 * GIB, &[]);
    for place in &places {
        disk.write(*place, &[0xa5; 4096]);
    }
    erase(&disk);
    for place in places {
        assert_eq!(disk.part(place, 4096), vec![0; 4096], "at byte {place}");
    }
}

#[test]
fn all_four_zfs_labels_go() {
    // Uberblocks (magic 00bab10ch) fill the second half of each label of 256 KiB; OpenZFS, vdev_impl.h.
    let (size, label) = (64 * MIB + 100 * 1024, 256 * 1024);
    let end = size / label * label;
    let disk = Loop::sparse(size, &[]);
    let mut uberblock = vec![0u8; 1024];
    uberblock[0..8].copy_from_slice(&0x00ba_b10c_u64.to_le_bytes());
    uberblock[8] = 28;
    let places = [0, label, end - 2 * label, end - label];
    for place in places {
        disk.write(place + label / 2, &uberblock.repeat(128));
    }
    assert!(erase(&disk).contains(&"zfs_member".to_owned()));
    for place in places {
        let after = disk.part(place, usize::try_from(label).unwrap());
        assert!(after.iter().all(|&byte| byte == 0), "label at {place}");
    }
}

#[test]
fn anchors_of_ddf_and_imsm_go() {
    // SNIA DDF 2.0, 5.5: the anchor header is in the last sector; IMSM's (mdadm, super-intel.c) in the last but one.
    let disk = Loop::sparse(64 * MIB, &[]);
    let mut anchor = vec![0u8; 512];
    anchor[0..4].copy_from_slice(&0xde11_de11_u32.to_be_bytes());
    anchor[8..32].copy_from_slice(b"ANNEALTEST0123456789ABCD");
    anchor[32..40].copy_from_slice(b"01.02.00");
    disk.write(64 * MIB - 512, &anchor);
    assert!(erase(&disk).contains(&"ddf_raid_member".to_owned()));
    let disk = Loop::sparse(64 * MIB, &[]);
    disk.write(64 * MIB - 1024, b"Intel Raid ISM Cfg Sig. 1.3.00");
    assert!(erase(&disk).contains(&"isw_raid_member".to_owned()));
}

#[test]
fn a_gpt_written_for_other_sectors_than_the_disks_goes() {
    // A table that a controller wrote for 4 KiB sectors: libblkid does not look there on a disk of 512.
    let disk = Loop::sparse(64 * MIB, &[]);
    for place in [4096, 64 * MIB - 4096] {
        disk.write(place, b"EFI PART\0\0\x01\0");
    }
    erase(&disk);
    for place in [4096, 64 * MIB - 4096] {
        assert_eq!(disk.part(place, 8), [0; 8]);
    }
}

fn shared(disk: &Loop) -> String {
    match &judge(&disk.probe())[..] {
        [Refusal::Shared { what }] => what.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn shared_disks_are_recognised_by_what_real_tools_write() {
    for (kind, expected) in [
        ("1:AA31E02A-400F-11DB-9590-000C2911D1B8", "a VMFS partition"),
        ("1:37affc90-ef7d-4e96-91c3-2d7ae055b174", "a GPFS partition"),
    ] {
        for sector in ["512", "4096"] {
            let disk = Loop::sparse(64 * MIB, &["--sector-size", sector]);
            run("sgdisk", &["-n", "1:0:+16M", "-t", kind, disk.node()]);
            assert_eq!(shared(&disk), expected);
        }
    }
    let disk = Loop::sparse(64 * MIB, &[]);
    fed(
        "sfdisk",
        &["--no-reread", "-q", disk.node()],
        "label: dos\nstart=2048, size=20480, type=83\nstart=40960, type=fb\n",
    );
    assert_eq!(shared(&disk), "a VMFS partition", "the second partition of an MBR");
    let disk = Loop::sparse(300 * MIB, &[]);
    run("mkfs.ocfs2", &["-F", "-q", "-M", "local", "-N", "1", disk.node()]);
    assert_eq!(shared(&disk), "an OCFS2 file system");
    let disk = Loop::sparse(64 * MIB, &[]);
    run("mkfs.gfs2", &["-O", "-q", "-p", "lock_nolock", "-j", "1", "-J", "8", disk.node()]);
    assert_eq!(shared(&disk), "a GFS2 file system");
    // Inside of a partition too.
    let disk = Loop::sparse(128 * MIB, &[]);
    run("sgdisk", &["-n", "1:2048:+64M", disk.node()]);
    disk.add_partitions(&[(2048, 64 * MIB / 512)]);
    run("mkfs.gfs2", &["-O", "-q", "-p", "lock_nolock", "-j", "1", "-J", "8", &disk.partition(1)]);
    assert_eq!(shared(&disk), "a GFS2 file system");
}

#[test]
fn a_clustered_volume_group_is_distinguished_from_a_local_one() {
    let disk = Loop::sparse(64 * MIB, &[]);
    let filter = format!("devices {{ use_devicesfile=0 filter=[\"a|^{}$|\",\"r|.*|\"] }}", disk.node());
    let group = format!("vg_{}", disk.name());
    run("vgcreate", &["--config", &filter, "-y", &group, disk.node()]);
    assert_eq!(judge(&disk.probe()), []);
    // The same text as clvmd leaves it; vgchange --clustered needs a running cluster.
    let (local, clustered) = (b"[\"RESIZEABLE\", \"READ\"", b"[\"CLUSTERED\",  \"READ\"");
    let area = disk.part(0, 1 << 20);
    let at = area.windows(local.len()).position(|window| window == local).unwrap();
    disk.write(at as u64, clustered);
    assert_eq!(shared(&disk), format!("the clustered LVM volume group {group}"));
}
