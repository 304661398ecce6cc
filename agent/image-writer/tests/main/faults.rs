//! Bad mirrors, bad images, bad disks: the cause in one sentence, and nothing that can be booted.

use crate::disks::{Loop, MIB, image, old, packed, qcow2, request, request_for, sha256};
use crate::mirror::{Behaviour, Mirror};
use block::fake::{FakeDisk, FakeFault};
use image_writer::source::Host;
use image_writer::{ChecksumSource, Format, Hosts, Request, write};

const SIZE: usize = 6 * MIB;
const DISK: usize = 12 * MIB;

fn disk(faults: Vec<FakeFault>) -> FakeDisk {
    FakeDisk::new(old(DISK), 512, faults)
}

/// Fails with `expected`, and the disk cannot be booted: it is as it was, or its ends are zero.
fn fails(request: &Request, disk: &FakeDisk, expected: &str) {
    let error = write(request, disk, &()).expect_err(expected).to_string();
    assert!(error.contains(expected), "{expected:?} in: {error}");
    assert!(!error.contains("word") && !error.contains("secret"), "{error}");
    let content = disk.content();
    let untouched = content.iter().all(|&byte| byte == 0xa5);
    let unbootable = content[..MIB].iter().all(|&byte| byte == 0)
        && content[DISK - 33 * 512..].iter().all(|&byte| byte == 0);
    assert!(untouched || unbootable, "{error}");
}

#[test]
fn bad_mirrors_are_named() {
    let raw = image(SIZE);
    let with = |behaviour: Behaviour| Mirror::new(raw.clone(), move |_, _| behaviour.clone());
    let b = Behaviour::default;
    for (behaviour, expected) in [
        (Behaviour { status: Some(404), ..b() }, "answered 404"),
        (Behaviour { status: Some(403), ..b() }, "answered 403"),
        (Behaviour { status: Some(503), ..b() }, "answered 503"),
        (Behaviour { stall: Some(500), ..b() }, "stalled"),
        (Behaviour { stall: Some(2 * MIB), no_range: true, ..b() }, "stalled"),
        (Behaviour { cut: Some(0), ..b() }, "cannot be fetched"),
        (Behaviour { lie: 100, ..b() }, "instead of 6291556"),
        (Behaviour { lie: 100, no_range: true, ..b() }, "instead of 6291556"),
        (Behaviour { lie: 100 * MIB, ..b() }, "/dev/fake (serial FAKE) holds"),
        (Behaviour { swapped_from: Some(3 * MIB), ..b() }, "the sha256 of http"),
        (
            Behaviour { status: Some(302), headers: vec!["location: /again".into()], ..b() },
            "more than 5 redirects",
        ),
        (
            Behaviour {
                status: Some(302),
                headers: vec!["location: http://192.0.2.1:1/?secret".into()],
                ..b()
            },
            "[images] hosts",
        ),
        (Behaviour { status: Some(302), headers: vec!["location: ftp://x/secret".into()], ..b() }, "ftp"),
    ] {
        let mirror = with(behaviour);
        fails(&request(&mirror, &raw), &disk(vec![]), expected);
    }
}

/// A byte now and then is no progress.
#[test]
fn a_mirror_that_sends_next_to_nothing_is_given_up() {
    let raw = image(SIZE);
    let trickles = |_: usize, _: &_| Behaviour { trickles: Some(MIB / 2), ..Behaviour::default() };
    let (mirror, disk) = (Mirror::new(raw.clone(), trickles), Loop::old(DISK, 512));
    let error = write(&request(&mirror, &raw), &disk.open(), &()).expect_err("next to nothing").to_string();
    assert!(error.contains("stalled: ") && !error.contains("stalled: 0 bytes"), "{error}");
    let content = disk.content();
    let ends = [&content[..MIB], &content[DISK - 33 * 512..]];
    assert!(ends.iter().all(|end| end.iter().all(|&byte| byte == 0)), "it can be booted");
}

#[test]
fn a_name_that_cannot_be_resolved_is_named() {
    let raw = image(SIZE);
    let mirror = Mirror::good(raw.clone());
    let mut request = request(&mirror, &raw);
    // No name has a part of more than 63 characters (RFC 1035, 2.3.4): no server is asked for it.
    let host = format!("{}.example", "m".repeat(64));
    request.source.hosts.rules.push(Host::parse(&host).expect("a host"));
    request.source.url = format!("http://{host}/image").parse().expect("a URL");
    let disk = disk(vec![]);
    fails(&request, &disk, &format!("the name {host} cannot be resolved"));
    assert_eq!(disk.written(), 0);
}

#[test]
fn secrets_go_to_the_mirror_and_nowhere_else() {
    let raw = image(SIZE);
    let mirror = Mirror::new(raw.clone(), |_, _| Behaviour { status: Some(404), ..Behaviour::default() });
    let url = format!("http://me:word@{}/image?key=secret", mirror.address);
    fails(&request_for(&url, &sha256(&raw)), &disk(vec![]), "http://******@127.0.0.1");
    let seen = mirror.seen();
    assert_eq!(seen[0].path, "/image?key=secret");
    assert_eq!(seen[0].authorization.as_deref(), Some("Basic bWU6d29yZA=="));
}

#[test]
fn hosts_that_no_rule_names_are_not_asked() {
    let raw = image(SIZE);
    let mirror = Mirror::good(raw.clone());
    let mut request = request(&mirror, &raw);
    request.source.hosts = Hosts::default();
    let disk = disk(vec![]);
    fails(&request, &disk, "127.0.0.1 is a loopback address");
    assert_eq!((disk.written(), mirror.seen().len()), (0, 0), "no server was asked");
    let https: image_writer::ImageUrl = mirror.url("/x").replace("http:", "https:").parse().expect("a URL");
    request.source.hosts = crate::disks::request(&mirror, &raw).source.hosts;
    request.source.url = https;
    fails(&request, &disk, "TLS with 127.0.0.1: ");
}

#[test]
fn bad_images_are_named() {
    let raw = image(SIZE);
    let zst = packed(&["zstd", "-1"], &raw);
    let gz = packed(&["gzip", "-1"], &raw);
    let cut = |file: &[u8]| file[..file.len() / 2].to_vec();
    let broken = |mut file: Vec<u8>| {
        let middle = file.len() / 2;
        file[middle..middle + 64].fill(0xff);
        file
    };
    let large = image(16 * MIB);
    let bomb = vec![0; 64 * MIB];
    for (file, expected) in [
        (cut(&zst), "zstd stream"),
        (cut(&gz), "gzip stream"),
        (broken(zst.clone()), "zstd stream"),
        (broken(gz.clone()), "gzip stream"),
        (cut(&qcow2(&["-c"], &raw)), "corrupt"),
        (large.clone(), "the image has 16777216 bytes"),
        (qcow2(&[], &large), "the image has 16777216 bytes"),
        (packed(&["gzip", "-1"], &bomb), "the image has more bytes"),
        (packed(&["xz", "-0"], &bomb), "the image has more bytes"),
        (packed(&["bzip2"], &bomb), "the image has more bytes"),
        (packed(&["zstd"], &bomb), "bytes, /dev/fake (serial FAKE) holds"),
        (vec![], "empty"),
        (vec![1; SIZE], "there is none: no GPT and no MBR"),
        (b"KDMV and more".to_vec(), "VMDK is not supported"),
        (raw[..5 * MIB].to_vec(), "outside of the image"),
    ] {
        let mirror = Mirror::good(file.clone());
        fails(&request(&mirror, &file), &disk(vec![]), expected);
    }
    let mirror = Mirror::good(raw.clone());
    let mut other = request(&mirror, &raw);
    other.format = Some(Format::Qcow2);
    fails(&other, &disk(vec![]), "it is raw, and was said to be qcow2");
}

#[test]
fn what_does_not_fit_is_refused_before_the_first_byte() {
    let large = image(16 * MIB);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    std::fs::write(&path, &large).expect("written");
    let zst = crate::disks::run("zstd", &["-q", "-c", path.to_str().expect("utf-8")]);
    for file in [large.clone(), qcow2(&["-c"], &large), zst] {
        let (disk, mirror) = (disk(vec![]), Mirror::good(file.clone()));
        fails(&request(&mirror, &file), &disk, "the image has 16777216 bytes");
        assert_eq!(disk.written(), 0);
    }
}

#[test]
fn a_wrong_checksum_leaves_nothing_that_boots() {
    let raw = image(SIZE);
    let mirror = Mirror::good(raw.clone());
    let disk = disk(vec![]);
    fails(&request_for(&mirror.url("/image"), &"0".repeat(64)), &disk, "the sha256 of http://127.0.0.1");
    assert!(disk.written() > 0, "it was found at the end");
}

#[test]
fn disks_that_lie_or_fail_are_found_out() {
    let raw = image(SIZE);
    let mirror = Mirror::good(raw.clone());
    let (size, disk_size) = (SIZE as u64, DISK as u64);
    for (fault, expected) in [
        (FakeFault::IgnoresWrites(2 << 20..(2 << 20) + 512), "does not return what was written"),
        (FakeFault::IgnoresZeroOut, "does not return what was written"),
        (FakeFault::WriteError(2 << 20..(2 << 20) + 1), "write of"),
        (FakeFault::ReadError(size - 512..size), "read of"),
        (FakeFault::VanishesAfter(3 << 20), "write of"),
        (FakeFault::IgnoresWrites(disk_size - 512..disk_size), "does not return what was written"),
    ] {
        let disk = disk(vec![fault.clone()]);
        let error = write(&request(&mirror, &raw), &disk, &()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{fault:?}: {error}");
        if fault != FakeFault::IgnoresZeroOut {
            assert!(disk.content()[..MIB].iter().all(|&byte| byte == 0), "{fault:?}");
        }
    }
    let refuses = disk(vec![FakeFault::RefusesZeroOut, FakeFault::ShortWrites(4096)]);
    write(&request(&mirror, &raw), &refuses, &()).expect("zeroes are written, in many writes");
    let small = FakeDisk::new(old(MIB), 512, vec![]);
    assert!(write(&request(&mirror, &raw), &small, &()).is_err());
    assert_eq!(small.written(), 0);
}

#[test]
fn a_file_of_checksums_is_fetched_and_must_name_the_image() {
    let raw = image(SIZE);
    let sums = format!("{}  other.raw\n{} *image\n", "0".repeat(64), sha256(&raw));
    let (mirror, server) = (Mirror::good(raw.clone()), Mirror::good(sums.into_bytes()));
    let mut request = request(&mirror, &raw);
    let sums = ChecksumSource::of(None, None, Some(&server.url("/SHA256SUMS")), false);
    request.checksum = sums.expect("a URL");
    write(&request, &disk(vec![]), &()).expect("written");
    request.source.url = mirror.url("/strange").parse().expect("a URL");
    let nothing = disk(vec![]);
    fails(&request, &nothing, "no digest of \"strange\"");
    assert_eq!(nothing.written(), 0);
}
