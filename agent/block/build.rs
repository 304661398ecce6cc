//! Links Debian's `libblkid.a` statically, in every build: the agent in the ramdisk is one static file
//! (`-C target-feature=+crt-static`), and one way of linking means the tests run what the ramdisk runs.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-env-changed=LIBBLKID_DIR");
    println!("cargo:rerun-if-changed=build.rs");
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let candidates: Vec<PathBuf> = std::env::var_os("LIBBLKID_DIR")
        .map(PathBuf::from)
        .into_iter()
        .chain([format!("/usr/lib/{arch}-linux-gnu").into(), "/usr/lib64".into(), "/usr/lib".into()])
        .collect();
    let found = candidates.iter().find(|directory| Path::join(directory, "libblkid.a").exists());
    let Some(directory) = found else {
        eprintln!("libblkid.a not found in {candidates:?}: install libblkid-dev or set LIBBLKID_DIR");
        std::process::exit(1);
    };
    println!("cargo:rustc-link-search=native={}", directory.display());
    println!("cargo:rustc-link-lib=static=blkid");
}
