//! Images that qemu-img makes, and images in an order that it does not make.

use super::{place, place_with};
use crate::error::ImageError;
use crate::format::{Ahead, Sink};
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;

/// A disk in memory.
#[derive(Default)]
struct Disk {
    bytes: Vec<u8>,
    covered: u64,
    /// Offsets in the order in which they came.
    named: Vec<u64>,
}

impl Sink for Disk {
    fn size(&mut self, bytes: u64, _: usize) -> Result<(), ImageError> {
        // What is not written must show.
        self.bytes = vec![0xee; usize::try_from(bytes.min(64 << 20)).expect("small")];
        if bytes > 64 << 20 { Err(ImageError::Format("too large for the test".into())) } else { Ok(()) }
    }

    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ImageError> {
        let at = usize::try_from(offset).expect("small");
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.covered += bytes.len() as u64;
        self.named.push(offset);
        Ok(())
    }

    fn zero(&mut self, offset: u64, length: u64) -> Result<(), ImageError> {
        let at = usize::try_from(offset).expect("small");
        self.bytes[at..at + usize::try_from(length).expect("small")].fill(0);
        self.covered += length;
        self.named.push(offset);
        Ok(())
    }
}

/// Serves ranges of a file, perhaps of another version than the one that arrives.
struct Ranges<'a>(&'a [u8]);

impl Ahead for Ranges<'_> {
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ImageError> {
        let at = usize::try_from(offset).expect("small");
        Ok(self.0[at..at + length].to_vec())
    }
}

fn read(image: &[u8], ahead: Option<&dyn Ahead>) -> Result<Vec<u8>, ImageError> {
    let mut disk = Disk::default();
    let failed = |error: std::io::Error| ImageError::Internal(error.to_string());
    place(&mut &image[..], &mut disk, ahead, &failed)?;
    assert_eq!(disk.covered, disk.bytes.len() as u64, "every byte comes once");
    let mut again = Disk::default();
    place_with(3, &mut &image[..], &mut again, ahead, &failed)?;
    // A checkpoint counts on the order.
    assert!(again.bytes == disk.bytes && again.named == disk.named, "with several decoders");
    Ok(disk.bytes)
}

/// Data that compresses, data that does not, and holes.
fn content() -> Vec<u8> {
    let mut bytes = vec![0; (20 << 20) + 512];
    let mut seed = 1u64;
    for (number, chunk) in bytes.chunks_mut(100_000).enumerate() {
        match number % 4 {
            0 => chunk.fill(u8::try_from(number % 251).expect("small")),
            1 => chunk.iter_mut().for_each(|byte| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = seed.to_le_bytes()[7];
            }),
            _ => {}
        }
    }
    bytes
}

fn qemu_img(arguments: &[&str]) {
    let done = Command::new("qemu-img").args(arguments).output().expect("qemu-img runs (cargo xtask deps)");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn converted(dir: &Path, raw: &[u8], options: &[&str]) -> Vec<u8> {
    let (from, to) = (dir.join("raw"), dir.join("qcow2"));
    std::fs::write(&from, raw).expect("written");
    let mut all = vec!["convert", "-f", "raw", "-O", "qcow2"];
    all.extend(options);
    all.extend([from.to_str().expect("utf-8"), to.to_str().expect("utf-8")]);
    qemu_img(&all);
    std::fs::read(to).expect("an image")
}

#[test]
fn images_of_qemu_img_give_back_their_disk() {
    let (dir, raw) = (tempfile::tempdir().expect("a directory"), content());
    for options in [
        &[][..],
        &["-c"],
        &["-W", "-c"],
        &["-W"],
        &["-o", "compat=0.10"],
        &["-c", "-o", "compat=0.10"],
        &["-c", "-o", "compression_type=zstd"],
        &["-o", "cluster_size=512"],
        &["-c", "-o", "cluster_size=4096"],
        &["-o", "cluster_size=2M"],
        &["-c", "-o", "cluster_size=2M,compression_type=zstd"],
        &["-o", "preallocation=metadata"],
        &["-S", "0"],
    ] {
        let image = converted(dir.path(), &raw, options);
        let read = read(&image, None).unwrap_or_else(|error| panic!("{options:?}: {error}"));
        assert!(read == raw, "{options:?}");
    }
}

#[test]
fn an_image_that_was_written_to_and_has_snapshots_gives_its_last_state() {
    let (dir, mut raw) = (tempfile::tempdir().expect("a directory"), content());
    converted(dir.path(), &raw, &[]);
    let path = dir.path().join("qcow2").to_str().expect("utf-8").to_owned();
    qemu_img(&["snapshot", "-c", "before", &path]);
    let io = |command: &str| {
        let done = Command::new("qemu-io").args(["-f", "qcow2", "-c", command, &path]).output();
        assert!(done.expect("qemu-io runs").status.success(), "{command}");
    };
    io("write -P 7 1M 2M");
    io("write -z 5M 1M");
    raw[1 << 20..3 << 20].fill(7);
    raw[5 << 20..6 << 20].fill(0);
    let image = std::fs::read(&path).expect("an image");
    let read = read(&image, Some(&Ranges(&image))).expect("read ahead");
    assert!(read == raw);
}

#[test]
fn what_qemu_img_makes_and_cannot_be_written_is_refused_by_name() {
    let (dir, raw) = (tempfile::tempdir().expect("a directory"), content());
    let path = |name: &str| dir.path().join(name).to_str().expect("utf-8").to_owned();
    let (base, image, data) = (path("base"), path("image"), path("data"));
    std::fs::write(&base, &raw).expect("written");
    let data_file = format!("data_file={data}");
    for (options, expected) in [
        (vec!["-F", "raw", "-b", &base], "backing file"),
        (vec!["-o", &data_file], "another file"),
        (vec!["-o", "extended_l2=on"], "extended L2"),
    ] {
        let mut all = vec!["create", "-q", "-f", "qcow2"];
        all.extend(options);
        all.extend([image.as_str(), "21M"]);
        qemu_img(&all);
        let error = read(&std::fs::read(&image).expect("an image"), None).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

const CLUSTER: usize = 65536;

/// An image whose tables come after its `clusters` clusters of data: header, data, second table, first table.
fn backwards(clusters: usize) -> (Vec<u8>, Vec<u8>) {
    let raw: Vec<u8> =
        (0..clusters).flat_map(|n| vec![u8::try_from(n % 250 + 1).expect("small"); CLUSTER]).collect();
    let at = |place: usize| ((place * CLUSTER) as u64).to_be_bytes();
    let mut header = vec![0; CLUSTER];
    header[..4].copy_from_slice(super::MAGIC);
    header[4..8].copy_from_slice(&2u32.to_be_bytes());
    header[20..24].copy_from_slice(&16u32.to_be_bytes());
    header[24..32].copy_from_slice(&(raw.len() as u64).to_be_bytes());
    header[36..40].copy_from_slice(&1u32.to_be_bytes());
    header[40..48].copy_from_slice(&at(clusters + 2));
    let mut second: Vec<u8> = (0..clusters).flat_map(|number| at(number + 1)).collect();
    second.resize(CLUSTER, 0);
    let mut first = at(clusters + 1).to_vec();
    first.resize(CLUSTER, 0);
    (raw.clone(), [header, raw, second, first].concat())
}

#[test]
fn tables_that_come_late_are_waited_for_read_ahead_or_refused() {
    for late in [120, 300] {
        let (raw, image) = backwards(late);
        assert!(read(&image, None).expect("within the window") == raw, "{late}");
    }
    let (raw, image) = backwards(500);
    let refused = read(&image, None).expect_err("out of order").to_string();
    assert!(refused.contains("long after the clusters") && refused.contains("qemu-img convert"), "{refused}");
    assert!(read(&image, Some(&Ranges(&image))).expect("read ahead") == raw);
}

#[test]
fn a_table_that_is_read_ahead_must_be_the_one_that_passes() {
    let (_, image) = backwards(300);
    let mut other = image.clone();
    let table = 301 * CLUSTER;
    other.copy_within(table..table + 8, table + 8);
    let error = read(&image, Some(&Ranges(&other))).expect_err("two versions").to_string();
    assert!(error.contains("two versions"), "{error}");
}

#[test]
fn a_corrupt_cluster_in_the_middle_fails_with_its_cause() {
    let dir = tempfile::tempdir().expect("a directory");
    let raw: Vec<u8> = (0..5u32 << 20).flat_map(|number| (number / 3).to_le_bytes()).collect();
    for options in [&["-c"][..], &["-c", "-o", "compression_type=zstd"]] {
        let mut image = converted(dir.path(), &raw, options);
        // Longer than a cluster, so that the beginning of one is among it: that is no deflate and no Zstandard.
        let at = image.len() / 2;
        image[at..at + 2 * CLUSTER].fill(0xff);
        let failed = |error: std::io::Error| ImageError::Internal(error.to_string());
        let error = place_with(3, &mut &image[..], &mut Disk::default(), None, &failed).expect_err("corrupt");
        assert!(error.to_string().contains("corrupt: a compressed cluster"), "{options:?}: {error}");
    }
}

#[test]
fn an_image_that_is_cut_off_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let image = converted(dir.path(), &content(), &["-c"]);
    for cut in [10, 600, CLUSTER + 1, 4 * CLUSTER, image.len() / 2, image.len() - 2000] {
        let error = read(&image[..cut], None).expect_err("cut off").to_string();
        assert!(error.contains("corrupt"), "{cut}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_change_of_a_table_breaks_it(changes in prop::collection::vec((0usize..2, 0usize..1000, any::<u8>()), 1..6)) {
        let (raw, mut image) = backwards(10);
        for (table, at, byte) in changes {
            image[(11 + table) * CLUSTER + at] = byte;
        }
        let mut disk = Disk::default();
        let failed = |error: std::io::Error| ImageError::Internal(error.to_string());
        if place(&mut &image[..], &mut disk, None, &failed).is_ok() {
            prop_assert_eq!(disk.bytes.len(), raw.len());
            prop_assert_eq!(disk.covered, raw.len() as u64);
        }
    }
}
