//! Every format in every packing, on loop devices, compared byte for byte.

use crate::disks::{Loop, MIB, image, packed, qcow2, request, run, sha256};
use crate::mirror::Mirror;
use configdrive::Drive;
use image_writer::{Record, write};
use serde_json::json;
use std::path::Path;
use uuid::Uuid;

const SIZE: usize = 20 * MIB;

/// What is on the disk is the image, but for what the record says.
fn check(disk: &Loop, raw: &[u8], record: &Record) {
    let content = disk.content();
    let mut expected = raw.to_vec();
    for edit in &record.edits {
        let at = usize::try_from(edit.offset).expect("small");
        let end = at + usize::try_from(edit.length).expect("small");
        assert_eq!(sha256(&content[at..end]), edit.sha256, "{}", edit.what);
        if end <= expected.len() {
            expected[at..end].copy_from_slice(&content[at..end]);
        }
    }
    assert!(content[..raw.len()] == expected, "the disk has the image");
    assert_eq!(record.read_back_sha256, sha256(raw));
    assert_eq!(record.size, raw.len() as u64);
    let verdict = sgdisk(&["-v"], disk.backing());
    assert!(verdict.contains("No problems found"), "{verdict}");
}

fn sgdisk(arguments: &[&str], path: &Path) -> String {
    let mut all = arguments.to_vec();
    all.push(path.to_str().expect("utf-8"));
    String::from_utf8_lossy(&run("sgdisk", &all)).into_owned()
}

#[test]
fn every_format_and_packing_arrives_on_the_disk() {
    let raw = image(SIZE);
    let plain = qcow2(&[], &raw);
    let files = [
        ("raw", raw.clone()),
        ("gz", packed(&["gzip", "-1"], &raw)),
        ("xz", packed(&["xz", "-0"], &raw)),
        ("zst", packed(&["zstd", "-1"], &raw)),
        ("zst, frames", packed(&["pzstd", "-q", "-1", "-p", "2", "-c"], &raw)),
        ("bz2", packed(&["bzip2", "-1"], &raw)),
        ("qcow2", plain.clone()),
        ("qcow2 -c", qcow2(&["-c"], &raw)),
        ("qcow2 zstd", qcow2(&["-c", "-o", "compression_type=zstd"], &raw)),
        ("qcow2.gz", packed(&["gzip", "-1"], &plain)),
    ];
    for (name, file) in files {
        let disk = Loop::old(40 * MIB, 512);
        let mirror = Mirror::good(file.clone());
        let record = write(&request(&mirror, &file), &disk.open(), &())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&disk, &raw, &record);
        assert_eq!(record.downloaded, file.len() as u64, "{name}");
        assert_eq!(record.download_digest, sha256(&file), "{name}");
        let whats: Vec<&str> = record.edits.iter().map(|edit| edit.what.as_str()).collect();
        assert_eq!(whats, ["backup GPT entries", "backup GPT header", "GPT entries", "GPT header"], "{name}");
        // What was at the end of the disk is gone; what is between belongs to no partition.
        let content = disk.content();
        assert!(content[39 * MIB..40 * MIB - 40 * 512].iter().all(|&byte| byte == 0), "{name}");
        assert!(content[SIZE..39 * MIB].iter().all(|&byte| byte == 0xa5), "{name}");
    }
}

#[test]
fn a_configdrive_becomes_the_last_partition() {
    let raw = image(SIZE);
    let disk = Loop::old(120 * MIB, 512);
    let mirror = Mirror::good(raw.clone());
    let dir = tempfile::tempdir().expect("a directory");
    let iso = dir.path().join("iso");
    std::fs::write(dir.path().join("user_data"), "#cloud-config\n").expect("written");
    let (out, from) = (iso.to_str().expect("utf-8"), dir.path().join("user_data"));
    let from = from.to_str().expect("utf-8");
    run("xorrisofs", &["-quiet", "-J", "-r", "-V", "config-2", "-o", out, from]);
    let iso = std::fs::read(iso).expect("an ISO");
    let mut request = request(&mirror, &raw);
    request.configdrive = Some(iso.clone());
    let record = write(&request, &disk.open(), &()).expect("written");
    check(&disk, &raw, &record);
    let edit = record.edits.iter().find(|edit| edit.what == "configdrive").expect("an edit");
    let at = usize::try_from(edit.offset).expect("small");
    assert!(disk.content()[at..at + iso.len()] == iso);
    let shown = sgdisk(&["-i", "2"], disk.backing());
    assert!(shown.contains("'config-2'"), "{shown}");
    assert!(shown.contains(&format!("First sector: {}", at / 512)), "{shown}");
}

#[test]
fn an_image_for_other_sectors_is_refused_before_its_first_mebibyte_is_passed() {
    let raw = image(SIZE);
    let disk = Loop::old(40 * MIB, 4096);
    let mirror = Mirror::good(raw.clone());
    let error = write(&request(&mirror, &raw), &disk.open(), &()).expect_err("other sectors").to_string();
    assert!(error.contains("sectors of 512 bytes") && error.contains("sectors of 4096"), "{error}");
    let content = disk.content();
    assert!(content[..MIB].iter().all(|&byte| byte == 0), "nothing can be booted");
    assert!(content[MIB..39 * MIB].iter().all(|&byte| byte == 0xa5), "nothing else was written");
}

#[test]
fn an_image_for_sectors_of_4096_bytes_is_written_to_such_a_disk() {
    // sgdisk takes the sectors of a device as they are.
    let origin = Loop::old(20 * MIB, 4096);
    sgdisk(&["-Z"], &origin.path);
    sgdisk(&["-n", "1:0:0", "-c", "1:root"], &origin.path);
    let raw = origin.content();
    let disk = Loop::old(40 * MIB, 4096);
    let file = packed(&["zstd", "-1"], &raw);
    let mirror = Mirror::good(file.clone());
    let record = write(&request(&mirror, &file), &disk.open(), &()).expect("written");
    assert_eq!(record.read_back_sha256, sha256(&raw));
    let verdict = sgdisk(&["-v"], &disk.path);
    assert!(verdict.contains("No problems found"), "{verdict}");
}

/// Linux mounts no ISO 9660 from such a disk (the scenario `configdrive` of tests/machines mounts what is there instead).
#[test]
fn on_a_disk_with_sectors_of_4096_bytes_a_configdrive_becomes_fat_with_the_same_files() {
    let origin = Loop::old(20 * MIB, 4096);
    sgdisk(&["-Z"], &origin.path);
    sgdisk(&["-n", "1:0:0", "-c", "1:root"], &origin.path);
    let raw = origin.content();
    let user_data = format!("#cloud-config\n{}", "x".repeat(300_000));
    let parts = json!({"network_data": {"links": []}, "vendor_data": {"v": 1}, "user_data": user_data});
    let drive = Drive::of(parts.as_object().expect("an object"), Uuid::from_u128(7), Some("rack-1"));
    let disk = Loop::old(120 * MIB, 4096);
    let mirror = Mirror::good(raw.clone());
    let mut request = request(&mirror, &raw);
    request.configdrive = Some(drive.expect("a drive").iso());
    let record = write(&request, &disk.open(), &()).expect("written");

    let edit = record.edits.iter().find(|edit| edit.what == "configdrive").expect("an edit");
    let (at, length) =
        (usize::try_from(edit.offset).expect("small"), usize::try_from(edit.length).expect("small"));
    let written = &disk.content()[at..at + length];
    assert_eq!(sha256(written), edit.sha256);
    let dir = tempfile::tempdir().expect("a directory");
    let (file, out) = (dir.path().join("fat"), dir.path().join("out"));
    std::fs::write(&file, written).expect("written");
    let (file, out) = (file.to_str().expect("utf-8"), out.to_str().expect("utf-8"));
    // It looks at the whole partition; behind what is written nothing belongs to a file.
    let whole = std::fs::OpenOptions::new().write(true).open(file).expect("opened");
    let sectors = u64::from(u16::from_le_bytes([written[19], written[20]]));
    assert!((60 * MIB as u64..70 * MIB as u64).contains(&(sectors * 4096)), "{sectors}");
    whole.set_len(sectors * 4096).expect("extended");
    run("fsck.vfat", &["-n", file]);
    let said = |tag| String::from_utf8(run("blkid", &["-p", "-s", tag, "-o", "value", file])).expect("utf-8");
    assert_eq!((said("LABEL").trim(), said("TYPE").trim()), ("CONFIG-2", "vfat"));
    assert_eq!(written[11..13], 4096_u16.to_le_bytes());
    std::fs::create_dir(out).expect("made");
    run("mcopy", &["-s", "-i", file, "::openstack", out]);
    for version in ["2012-08-10", "latest"] {
        let read = |name: &str| {
            let path = Path::new(out).join("openstack").join(version).join(name);
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        assert_eq!(read("user_data"), user_data);
        assert_eq!(read("network_data.json"), r#"{"links":[]}"#);
        assert_eq!(read("vendor_data2.json"), r#"{"v":1}"#);
        assert!(read("meta_data.json").contains("rack-1"));
    }
}

#[test]
fn a_configdrive_that_such_a_disk_cannot_have_is_refused_before_anything_is_written() {
    let raw = image(SIZE);
    let disk = Loop::old(40 * MIB, 4096);
    let mirror = Mirror::good(raw.clone());
    let mut request = request(&mirror, &raw);
    // A volume descriptor without a root directory.
    let mut hostile = vec![0; 40_000];
    hostile[32768..32774].copy_from_slice(b"\x01CD001");
    for drive in [hostile, b"something else".to_vec()] {
        request.configdrive = Some(drive);
        let error = write(&request, &disk.open(), &()).expect_err("no file system").to_string();
        assert!(error.contains("sectors of 4096 bytes"), "{error}");
        assert!(disk.content().iter().all(|&byte| byte == 0xa5), "nothing was written");
    }
}

#[test]
fn an_image_as_large_as_the_disk_is_held_at_both_ends() {
    let raw = image(SIZE);
    let disk = Loop::old(SIZE, 512);
    let mirror = Mirror::good(raw.clone());
    let record = write(&request(&mirror, &raw), &disk.open(), &()).expect("written");
    check(&disk, &raw, &record);
}
