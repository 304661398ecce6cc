//! Loop devices, and requests for them. They need root; a test that cannot have its device fails.

use crate::mirror::Mirror;
use image_writer::source::{Host, Proxies, RequestHeaders, Source};
use image_writer::{CHECKPOINT_BYTES, ChecksumSource, DiskIdentity, Hosts, Limits, Request, Trust};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub const MIB: usize = 1 << 20;

pub fn run(program: &str, arguments: &[&str]) -> Vec<u8> {
    let done = Command::new(program).args(arguments).output();
    let done = done.unwrap_or_else(|error| panic!("{program}: {error} (cargo xtask deps)"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {said}");
    done.stdout
}

/// A loop device over a temporary file; detached when dropped.
pub struct Loop {
    pub path: PathBuf,
    file: tempfile::NamedTempFile,
}

impl Loop {
    /// Of `size` bytes, full of an old system's.
    pub fn old(size: usize, sector: usize) -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&old(size)).expect("written");
        let backing = file.path().to_str().expect("utf-8").to_owned();
        let sector = sector.to_string();
        let node = run("losetup", &["--find", "--show", "--sector-size", &sector, &backing]);
        Loop { path: PathBuf::from(String::from_utf8_lossy(&node).trim()), file }
    }

    pub fn open(&self) -> block::Device {
        let filter = block::Filter::Only(vec![self.path.clone()]);
        let disks = block::list(&block::Roots::default(), &filter).expect("listed");
        let probe = block::probe(&disks[0]).expect("probed");
        block::Device::open(&block::Roots::default(), &probe).expect("opened")
    }

    /// What is on it, from outside.
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(self.file.path()).expect("read")
    }

    pub fn backing(&self) -> &std::path::Path {
        self.file.path()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("-d").arg(&self.path).status();
        if !std::thread::panicking() {
            assert!(detached.expect("losetup runs").success(), "losetup -d {}", self.path.display());
        }
    }
}

/// What was on a disk before: nothing of it is zero.
pub fn old(size: usize) -> Vec<u8> {
    vec![0xa5; size]
}

/// A disk image with a partition table, an ESP and a root partition, some data, and holes.
pub fn image(size: usize) -> Vec<u8> {
    let mut content = vec![0; size];
    let mut seed = 7u64;
    for (number, chunk) in content.chunks_mut(300_000).enumerate() {
        match number % 3 {
            0 => chunk.iter_mut().for_each(|byte| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = seed.to_le_bytes()[7];
            }),
            1 => chunk.fill(u8::try_from(number % 250).expect("small")),
            _ => {}
        }
    }
    content[..MIB].fill(0);
    content[3 * MIB..5 * MIB].fill(0);
    content[size - 34 * 512..].fill(0);
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&content).expect("written");
    let path = file.path().to_str().expect("utf-8").to_owned();
    run("sgdisk", &["-n", "15:2048:+2M", "-t", "15:ef00", "-n", "1:0:0", "-c", "1:root", &path]);
    std::fs::read(&path).expect("read")
}

/// `content` through a program that packs its standard input.
pub fn packed(command: &[&str], content: &[u8]) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), content).expect("written");
    let input = file.reopen().expect("opened");
    let done = Command::new(command[0]).args(&command[1..]).stdin(input).output().expect(command[0]);
    assert!(done.status.success(), "{command:?}");
    done.stdout
}

/// `content` as a file that qemu-img makes.
pub fn qcow2(options: &[&str], content: &[u8]) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("raw"), dir.path().join("qcow2"));
    std::fs::write(&from, content).expect("written");
    let mut all = vec!["convert", "-f", "raw", "-O", "qcow2"];
    all.extend(options);
    all.extend([from.to_str().expect("utf-8"), to.to_str().expect("utf-8")]);
    run("qemu-img", &all);
    std::fs::read(to).expect("an image")
}

/// A qcow2 file whose tables lie behind all data, as a snapshot's copy of them, and its content of `size` bytes.
pub fn with_tables_at_its_end(size: usize) -> (Vec<u8>, Vec<u8>) {
    let mut content = image(size);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("image");
    std::fs::write(&path, qcow2(&["-S", "0"], &content)).expect("written");
    let path = path.to_str().expect("utf-8");
    run("qemu-img", &["snapshot", "-c", "before", path]);
    run("qemu-io", &["-f", "qcow2", "-c", "write -P 7 12M 64k", path]);
    content[12 * MIB..12 * MIB + 65536].fill(7);
    (std::fs::read(path).expect("read"), content)
}

pub fn sha256(bytes: &[u8]) -> String {
    let text = packed(&["sha256sum"], bytes);
    String::from_utf8_lossy(&text[..64]).into_owned()
}

/// A request for what `mirror` serves, which must be `file`.
pub fn request(mirror: &Mirror, file: &[u8]) -> Request {
    request_for(&mirror.url("/image"), &sha256(file))
}

pub fn request_for(url: &str, checksum: &str) -> Request {
    let hosts =
        Hosts { rules: vec![Host::Net("127.0.0.0/8".parse().expect("a network"))], never: Vec::new() };
    let limits = Limits {
        stall: Duration::from_millis(600),
        stall_bytes: 1000,
        tries: 3,
        pause: Duration::from_millis(5),
        ..Limits::default()
    };
    let url = url.parse().expect("a URL");
    Request {
        source: Source {
            url,
            copies: Vec::new(),
            trust: Trust::default(),
            hosts,
            proxies: Proxies::default(),
            limits,
            headers: RequestHeaders::default(),
        },
        checksum: ChecksumSource::of(None, None, Some(checksum), false).expect("a checksum"),
        allow_md5: false,
        format: None,
        configdrive: None,
        disk: DiskIdentity::of(Some("FAKE"), None),
        checkpoint_every: CHECKPOINT_BYTES,
        checkpoint: None,
    }
}
