//! `image/out/rescue`: an archive to be put behind the initramfs, with the login of a rescued node. Only rescue boots get
//! it. What is in it is Debian's, apart from `image/rescue/login`, which the agent starts.

use std::path::Path;

use anyhow::{Result, ensure};
use fs_err as fs;

use super::cpio::Archive;
use super::package::{self, Package};
use crate::sh;

/// The packed archive stays below this many bytes.
const BUDGET: usize = 2_500_000;

/// Where the agent looks for it (`agentd::login::ADD_ON`).
const LOGIN: &str = "usr/lib/anneal/rescue-login";

/// Packages, with the files that are taken: programs, and what they are linked with.
const PACKAGES: [(&str, &[&str]); 8] = [
    ("busybox", &["bin/busybox"]),
    ("dropbear-bin", &["usr/sbin/dropbear", "usr/bin/dropbearkey"]),
    (
        "libc6",
        &[
            "lib64/ld-linux-x86-64.so.2",
            "lib/x86_64-linux-gnu/libc.so.6",
            "lib/x86_64-linux-gnu/libresolv.so.2",
        ],
    ),
    ("libcrypt1", &["lib/x86_64-linux-gnu/libcrypt.so.1"]),
    ("libgmp10", &["usr/lib/x86_64-linux-gnu/libgmp.so.10"]),
    ("libtomcrypt1", &["usr/lib/x86_64-linux-gnu/libtomcrypt.so.1"]),
    ("libtommath1", &["usr/lib/x86_64-linux-gnu/libtommath.so.1"]),
    ("zlib1g", &["lib/x86_64-linux-gnu/libz.so.1"]),
];

/// The archive, its size when unpacked, and the notices of what is in it.
pub struct Rescue {
    pub packed: Vec<u8>,
    pub unpacked: usize,
    pub notices: String,
}

/// Makes the archive, and fails above [`BUDGET`].
pub fn build(work: &Path) -> Result<Rescue> {
    let packages: Vec<Package> =
        PACKAGES.iter().map(|(name, _)| package::fetch(work, name)).collect::<Result<_>>()?;
    let mut archive = Archive::default();
    archive.dir("root")?;
    for (package, (_, files)) in packages.iter().zip(PACKAGES) {
        for file in files {
            let path = package.file(file)?;
            archive.file(file, 0o755, &fs::read(&path)?)?;
        }
    }
    let login = sh::root().join("image/rescue/login");
    archive.file(LOGIN, 0o755, &fs::read(&login)?)?;
    let archive = archive.finish();
    let packed = super::compress(work, "rescue", &archive)?;
    ensure!(packed.len() < BUDGET, "the rescue archive has {} bytes, allowed are {BUDGET}", packed.len());
    Ok(Rescue { packed, unpacked: archive.len(), notices: notices(&packages)? })
}

/// `image/rescue/NOTICES`, the versions, and the packages' own notices.
fn notices(packages: &[Package]) -> Result<String> {
    let mut text = fs::read_to_string(sh::root().join("image/rescue/NOTICES"))?;
    text.push('\n');
    for package in packages {
        text.push_str(&format!("{} {} (sha256 {})\n", package.name, package.version, package.sha256));
    }
    for package in packages {
        let copyright = package.copyright()?;
        let line = "=".repeat(80);
        text.push_str(&format!("\n{line}\n{}\n\n{}", package.name, String::from_utf8_lossy(&copyright)));
    }
    Ok(text)
}
