//! The image store against real HTTP servers on loopback, which the settings allow.

#[path = "../../../shared/image-source/tests/main/authority.rs"]
#[expect(dead_code, reason = "the tests of image-source use all of it")]
mod authority;
mod cache;
mod directory;
#[path = "../../../agent/image-writer/tests/main/mirror.rs"]
mod mirror;
#[path = "../../../shared/image-source/tests/main/mirror.rs"]
#[expect(dead_code, reason = "the tests of image-source use all of it")]
mod tls_mirror;
mod trust;

use image_source::{Algorithm, Checksum, ChecksumSource, Digest, Limits};
use images::{Endpoint, ImageStore, Origin, Ready, Settings, State, Wanted};
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

const MIB: usize = 1 << 20;
/// For what must happen soon.
const SOON: Duration = Duration::from_secs(60);

/// Content that differs by its seed.
fn content(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3] ^ seed).collect()
}

fn sha256(bytes: &[u8]) -> Checksum {
    let mut digest = Digest::new(Algorithm::Sha256);
    digest.update(bytes);
    Checksum { algorithm: Algorithm::Sha256, value: digest.finish() }
}

fn wanted(url: &str, checksum: Checksum) -> Wanted {
    let origin = Origin::parse(url).expect("a origin");
    Wanted { node: Uuid::new_v4(), origin, checksum: ChecksumSource::Value(checksum) }
}

/// The cache in `directory`, which may ask loopback.
fn settings(directory: &Path) -> Settings {
    Settings {
        hosts: vec!["127.0.0.1".into()],
        cache: true,
        cache_directory: directory.into(),
        cache_min_free_mib: 0,
        ..Settings::default()
    }
}

fn endpoint() -> Option<Endpoint> {
    Some(Endpoint { address: ([192, 0, 2, 9], 6385).into(), pin: Some(format!("sha256:{}", "0".repeat(64))) })
}

fn quick() -> Limits {
    let short = Duration::from_millis(20);
    Limits { pause: short, stall: Duration::from_secs(20), tries: 3, ..Limits::default() }
}

/// A store with these settings, of which no run uses an image.
fn store(settings: Settings) -> ImageStore {
    let opened = ImageStore::open(settings, Vec::new(), endpoint(), || Ok(Vec::new()));
    opened.expect("a store").with_limits(quick(), SOON)
}

/// Asks as the conductor does, until the image is here or fails.
fn ended(store: &ImageStore, wanted: &Wanted) -> Result<Ready, String> {
    let begun = Instant::now();
    store.begin(wanted);
    loop {
        match store.state(wanted) {
            State::Ready(ready) => return Ok(ready),
            State::Failed(why) => return Err(why),
            State::Waiting(what) => assert!(begun.elapsed() < SOON, "still waiting for {what}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn bytes_of(ready: Ready) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut { ready.file }, &mut bytes).expect("readable");
    bytes
}

fn names(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> =
        names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
