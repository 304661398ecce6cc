//! What of Debian is in the OCI image: the C library, ipmitool with its libraries, boot loaders and certificates of
//! authorities. Its packages' files, unmodified but for [`ENTERPRISES`]; no shell, no package manager.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::tree::Tree;
use crate::image::package::{self, Package};

/// The user of the controller in the image, as other images without a shell have it.
pub const USER: u32 = 65_532;

/// The names of manufacturers, of which ipmitool needs one to start. Debian's file of all is 1.6 MB of the image, and the controller
/// reads no manufacturer's name from ipmitool.
const ENTERPRISES: &str = "0\n  Reserved\n    Internet Assigned Numbers Authority\n      iana&iana.org\n";

/// Packages, with the files that are taken; the links among them become files.
const PACKAGES: [(&str, &[&str]); 12] = [
    (
        "libc6",
        &[
            "lib64/ld-linux-x86-64.so.2",
            "lib/x86_64-linux-gnu/libc.so.6",
            "lib/x86_64-linux-gnu/libm.so.6",
            "lib/x86_64-linux-gnu/libresolv.so.2",
        ],
    ),
    // The notices of libgcc-s1.
    ("gcc-12-base", &[]),
    ("libgcc-s1", &["lib/x86_64-linux-gnu/libgcc_s.so.1"]),
    ("ipmitool", &["usr/bin/ipmitool"]),
    ("libfreeipmi17", &["usr/lib/x86_64-linux-gnu/libfreeipmi.so.17"]),
    ("libgcrypt20", &["usr/lib/x86_64-linux-gnu/libgcrypt.so.20"]),
    ("libgpg-error0", &["lib/x86_64-linux-gnu/libgpg-error.so.0"]),
    ("libreadline8", &["lib/x86_64-linux-gnu/libreadline.so.8"]),
    ("libssl3", &["usr/lib/x86_64-linux-gnu/libcrypto.so.3"]),
    ("libtinfo6", &["lib/x86_64-linux-gnu/libtinfo.so.6"]),
    ("ipxe", &["usr/lib/ipxe/undionly.kpxe", "usr/lib/ipxe/snponly.efi"]),
    ("ca-certificates", &[]),
];

/// The files, and the packages that they are of. `work` keeps packages that were downloaded.
pub fn build(work: &Path) -> Result<(Tree, Vec<Package>)> {
    fs::create_dir_all(work)?;
    let packages: Vec<Package> =
        PACKAGES.iter().map(|(name, _)| package::fetch(work, name)).collect::<Result<_>>()?;
    let mut tree = Tree::default();
    for name in ["bin", "lib", "lib64", "sbin"] {
        tree.link(name, &format!("usr/{name}"));
    }
    for (package, (name, files)) in packages.iter().zip(PACKAGES) {
        for file in files {
            let is_data = file.contains("/share/") || file.contains("/ipxe/");
            let to = if file.starts_with("usr/") { (*file).to_owned() } else { format!("usr/{file}") };
            tree.copy(&to, if is_data { 0o644 } else { 0o755 }, &package.file(file)?)?;
        }
        let doc = format!("usr/share/doc/{name}");
        match fs::read_link(package.tree.join(&doc)) {
            Ok(of) => tree.link(&doc, of.to_str().context("a link to notices")?),
            Err(_) => tree.file(&format!("{doc}/copyright"), 0o644, package.copyright()?),
        }
    }
    let authorities = packages.last().context("no package")?;
    tree.file("etc/ssl/certs/ca-certificates.crt", 0o644, certificates(authorities)?);
    for (path, text) in [
        ("usr/share/misc/enterprise-numbers.txt", ENTERPRISES.to_owned()),
        ("etc/passwd", format!("root:x:0:0:root:/:/\nanneal:x:{USER}:{USER}:Anneal:/var/lib/anneal:/\n")),
        ("etc/group", format!("root:x:0:\nanneal:x:{USER}:\n")),
        ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n".to_owned()),
    ] {
        tree.file(path, 0o644, text.into_bytes());
    }
    tree.dir("tmp", 0o1777, 0);
    tree.dir("run/anneal", 0o750, USER);
    tree.dir("var/lib/anneal", 0o700, USER);
    Ok((tree, packages))
}

/// All authorities of the package in one file, as `update-ca-certificates` would write it.
fn certificates(package: &Package) -> Result<Vec<u8>> {
    let dir = package.tree.join("usr/share/ca-certificates/mozilla");
    let mut files = fs::read_dir(&dir)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()
        .context("certificates of authorities")?;
    files.sort();
    ensure!(files.len() > 50, "{} has {} certificates only", dir.display(), files.len());
    let mut all = Vec::new();
    for file in files {
        all.extend(fs::read(&file)?);
        if !all.ends_with(b"\n") {
            all.push(b'\n');
        }
    }
    Ok(all)
}
