//! `image --firmware PKG…`: `image/out/firmware/`, the add-on firmware of network cards and storage controllers out of Debian's packages.
//!
//! ```text
//!  modules of image/modules.txt ─ modinfo ─▶ files that they name ─┐
//!  apt: firmware-… ──dpkg -x──▶ lib/firmware ─────────────────────┴▶ MODULE.cpio.zst, one for each module
//!  modules.alias ─▶ devices whose modules load that one ────────────▶ index.json
//! ```
//!
//! The controller puts the pieces that a node needs behind the initramfs, which stays as it is. Same inputs, same bytes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;
use serde::Serialize;

use super::cpio::Archive;
use super::modules::{Module, Selection};
use super::package::{Lists, Package};
use super::{kernel, modules};
use crate::sh;

/// Where it goes below `image/out`.
pub const DIR: &str = "firmware";
/// Where the kernel looks for firmware, in an archive.
const IN_ARCHIVE: &str = "lib/firmware";
/// Where packages have it.
const IN_PACKAGE: [&str; 2] = ["lib/firmware", "usr/lib/firmware"];
/// How a file may be packed; the kernel tries the same (CONFIG_FW_LOADER_COMPRESS).
const PACKED: [&str; 3] = ["", ".xz", ".zst"];
/// Files that a module asks for without naming them in its information (Linux 6.1).
const NOT_NAMED: [(&str, &[&str]); 1] = [(
    "cxgb4",
    &[
        "cxgb4/t4-config.txt",
        "cxgb4/t5-config.txt",
        "cxgb4/t6-config.txt",
        "cxgb4/aq1202_fw.cld",
        "cxgb4/bcm8483.bin",
    ],
)];
/// A boot carries at most this many bytes (`boot::firmware::MOST`).
const MOST: usize = 6 << 20;

/// `index.json`.
#[derive(Serialize)]
struct Index {
    /// The kernel whose modules ask for it.
    kernel: String,
    packages: Vec<Origin>,
    pieces: Vec<Piece>,
}

/// A package.
#[derive(Serialize)]
struct Origin {
    name: String,
    version: String,
    sha256: String,
}

/// The firmware of one module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Piece {
    module: String,
    /// Name of the archive next to the index.
    file: String,
    bytes: usize,
    /// Bytes of memory that it takes on the node.
    unpacked: usize,
    sha256: String,
    /// What is in it, as the module names it.
    firmware: Vec<String>,
    /// Patterns of the devices for which the module is loaded.
    modaliases: Vec<String>,
}

/// A module that asks for firmware which a package has.
struct Wanted {
    module: String,
    /// What the module names, and where it is.
    files: BTreeMap<String, PathBuf>,
    modaliases: Vec<String>,
}

/// Makes the directory of these packages' firmware below `out`, in the place of an earlier one.
pub fn build(work: &Path, out: &Path, names: &[String]) -> Result<()> {
    for name in names {
        ensure!(is_package(name), "--firmware {name}: that is no name of a package");
    }
    let kernel = kernel::fetch(work)?;
    let list = fs::read_to_string(sh::root().join("image/modules.txt"))?;
    let selection = modules::select(work, &kernel, &list)?;
    let lists = Lists::with_firmware(work)?;
    let fetch = |name: &String| lists.fetch(work, name).with_context(|| format!("--firmware {name}"));
    let packages: Vec<Package> = names.iter().map(fetch).collect::<Result<_>>()?;
    let wanted = wanted(&selection, &packages)?;
    for package in &packages {
        let is_used = wanted
            .iter()
            .flat_map(|module| module.files.values())
            .any(|file| file.starts_with(&package.tree));
        ensure!(is_used, "--firmware {}: no module of image/modules.txt asks for a file of it", package.name);
    }
    let part = out.join(format!("{DIR}.part"));
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    fs::create_dir_all(&part)?;
    let pieces = wanted.iter().map(|module| module.write(work, &part)).collect::<Result<Vec<_>>>()?;
    report(&pieces);
    let origin = |package: &Package| Origin {
        name: package.name.clone(),
        version: package.version.clone(),
        sha256: package.sha256.clone(),
    };
    let index =
        Index { kernel: kernel.release.clone(), packages: packages.iter().map(origin).collect(), pieces };
    fs::write(part.join("index.json"), format!("{:#}\n", serde_json::to_value(&index)?))?;
    fs::write(part.join("NOTICES"), notices(&packages)?)?;
    let dir = out.join(DIR);
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    Ok(fs::rename(&part, &dir)?)
}

/// All pieces of the directory below `out`, one behind the other in the order of their names; for a signed ramdisk.
pub fn all(out: &Path) -> Result<Vec<u8>> {
    let dir = out.join(DIR);
    let mut files: Vec<PathBuf> =
        fs::read_dir(&dir)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "zst"));
    files.sort();
    let pieces: Vec<Vec<u8>> = files.into_iter().map(fs::read).collect::<std::io::Result<_>>()?;
    Ok(pieces.concat())
}

impl Wanted {
    fn write(&self, work: &Path, dir: &Path) -> Result<Piece> {
        let mut archive = Archive::default();
        for (name, path) in &self.files {
            let packed = PACKED.iter().find(|end| !end.is_empty() && path.to_string_lossy().ends_with(**end));
            let to =
                format!("{IN_ARCHIVE}/{name}{}", packed.filter(|end| !name.ends_with(**end)).unwrap_or(&""));
            archive.file(&to, 0o644, &fs::read(path)?)?;
        }
        let archive = archive.finish();
        let packed = super::compress(work, &self.module, &archive)?;
        let file = format!("{}.cpio.zst", self.module.to_lowercase());
        fs::write(dir.join(&file), &packed)?;
        Ok(Piece {
            module: self.module.clone(),
            file,
            bytes: packed.len(),
            unpacked: archive.len(),
            sha256: sh::sha256(&packed),
            firmware: self.files.keys().cloned().collect(),
            modaliases: self.modaliases.clone(),
        })
    }
}

/// The modules that ask for a file of these packages, with the devices for which they are loaded: also those of modules that need them,
/// as `qede` needs `qed`.
fn wanted(selection: &Selection, packages: &[Package]) -> Result<Vec<Wanted>> {
    let modules = selection.modules()?;
    let aliases = selection.aliases()?;
    let mut all = Vec::new();
    for Module { name, file, .. } in &modules {
        let named = sh::output(sh::admin_tool("modinfo").args(["-F", "firmware"]).arg(file))?;
        let not_named = NOT_NAMED.iter().filter(|(module, _)| module == name).flat_map(|(_, files)| *files);
        let mut files = BTreeMap::new();
        let named = named.lines().map(str::trim).filter(|line| !line.is_empty());
        for firmware in named.chain(not_named.copied()) {
            if let Some(path) = find(packages, firmware)? {
                files.insert(firmware.to_owned(), path);
            }
        }
        if !files.is_empty() {
            let modaliases = devices(name, &modules, &aliases);
            all.push(Wanted { module: name.clone(), files, modaliases });
        }
    }
    all.sort_by(|one, other| one.module.cmp(&other.module));
    Ok(all)
}

/// Patterns of the devices for which a module is loaded, in order. Pure.
fn devices(name: &str, modules: &[Module], aliases: &[(String, String)]) -> Vec<String> {
    let loads_it = |of: &str| modules.iter().any(|module| module.name == of && module.loads.contains(name));
    let mut found: Vec<String> =
        aliases.iter().filter(|(_, module)| loads_it(module)).map(|(pattern, _)| pattern.clone()).collect();
    found.sort();
    found.dedup();
    found
}

/// The file of this firmware; the first package that has it counts.
fn find(packages: &[Package], firmware: &str) -> Result<Option<PathBuf>> {
    if Path::new(firmware).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        bail!("a module asks for the firmware {firmware:?}, which is no path below {IN_ARCHIVE}");
    }
    for package in packages {
        for (dir, end) in IN_PACKAGE.iter().flat_map(|dir| PACKED.map(|end| (dir, end))) {
            let file = format!("{dir}/{firmware}{end}");
            if package.tree.join(&file).symlink_metadata().is_ok() {
                // Links in a package lead to other files of it.
                return package.file(&file).map(Some);
            }
        }
    }
    Ok(None)
}

fn is_package(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    name.len() > 1 && name.bytes().all(is_plain) && name.as_bytes()[0].is_ascii_alphanumeric()
}

/// Prints what was made.
fn report(pieces: &[Piece]) {
    for piece in pieces {
        println!("  {:<12} {:>9}   {} when unpacked", piece.module, piece.bytes, piece.unpacked);
    }
    let total: usize = pieces.iter().map(|piece| piece.bytes).sum();
    println!("firmware of {} modules, {total} bytes", pieces.len());
    if total > MOST {
        println!("a boot carries at most {MOST} bytes: a node without an inventory gets none of it");
    }
}

/// The versions, and the packages' own notices, which belong to every copy.
fn notices(packages: &[Package]) -> Result<String> {
    let mut text = "Licence notices of the add-on firmware\n\nThe archives next to this file hold files of these packages of Debian, \
                    unmodified:\n\n"
        .to_owned();
    for Package { name, version, sha256, .. } in packages {
        text.push_str(&format!("{name} {version} (sha256 {sha256})\n"));
    }
    for package in packages {
        let copyright = package.copyright()?;
        let line = "=".repeat(80);
        text.push_str(&format!("\n{line}\n{}\n\n{}", package.name, String::from_utf8_lossy(&copyright)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(tree: &Path) -> Package {
        Package { name: "firmware-x".into(), version: "1".into(), sha256: String::new(), tree: tree.into() }
    }

    #[test]
    fn a_file_is_found_plain_packed_and_through_a_link_and_never_outside() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |tree: &Path, path: &str| {
            let path = tree.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "blob").unwrap();
        };
        write(one.path(), "lib/firmware/e100/a.bin");
        write(one.path(), "lib/firmware/intel/ice/ddp/ice-1.3.30.0.pkg");
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, one.path().join("lib/firmware").join(name)).unwrap();
        };
        link("ice-1.3.30.0.pkg", "intel/ice/ddp/ice.pkg");
        link("/etc/hostname", "outside.bin");
        write(other.path(), "usr/lib/firmware/b.bin.xz");
        let packages = [package(one.path()), package(other.path())];
        let found =
            |name: &str| find(&packages, name).unwrap().map(|path| path.file_name().unwrap().to_owned());
        assert_eq!(found("e100/a.bin").unwrap(), "a.bin");
        assert_eq!(found("b.bin").unwrap(), "b.bin.xz");
        assert_eq!(found("intel/ice/ddp/ice.pkg").unwrap(), "ice-1.3.30.0.pkg");
        assert_eq!(found("missing.bin"), None);
        for outside in ["../a.bin", "/a.bin"] {
            assert!(find(&packages, outside).unwrap_err().to_string().contains(outside));
        }
        assert!(find(&packages, "outside.bin").is_err());
    }

    #[test]
    fn the_devices_are_those_of_all_modules_that_load_it() {
        let module = |name: &str, loads: &[&str]| Module {
            name: name.to_owned(),
            file: PathBuf::new(),
            loads: loads.iter().map(|name| (*name).to_owned()).collect(),
        };
        let modules =
            [module("qed", &["qed"]), module("qede", &["qede", "qed"]), module("e100", &["e100", "mii"])];
        let alias = |pattern: &str, module: &str| (pattern.to_owned(), module.to_owned());
        let aliases =
            [alias("pci:2", "qede"), alias("pci:1", "qede"), alias("pci:3", "e100"), alias("pci:1", "qede")];
        assert_eq!(devices("qed", &modules, &aliases), ["pci:1", "pci:2"]);
        assert_eq!(devices("e100", &modules, &aliases), ["pci:3"]);
    }

    #[test]
    fn an_option_is_no_package() {
        for (name, expected) in [
            ("firmware-bnx2x", true),
            ("-o", false),
            ("a b", false),
            ("", false),
            ("x/y", false),
            ("g++", true),
        ] {
            assert_eq!(is_package(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_piece_has_the_names_that_the_module_asks_for_and_the_same_bytes_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("real.pkg");
        std::fs::write(&file, "blob").unwrap();
        let packed = dir.path().join("b.bin.xz");
        std::fs::write(&packed, "packed").unwrap();
        let wanted = Wanted {
            module: "ice".to_owned(),
            files: BTreeMap::from([("ice/ice.pkg".to_owned(), file), ("b.bin".to_owned(), packed)]),
            modaliases: vec!["pci:1".to_owned()],
        };
        let first = wanted.write(dir.path(), dir.path()).unwrap();
        let bytes = std::fs::read(dir.path().join("ice.cpio.zst")).unwrap();
        assert_eq!(wanted.write(dir.path(), dir.path()).unwrap(), first);
        assert_eq!((first.sha256, first.bytes), (sh::sha256(&bytes), bytes.len()));
        assert_eq!(first.firmware, ["b.bin", "ice/ice.pkg"]);
        let unpacked = std::process::Command::new("zstd")
            .args(["-d", "--stdout", "--quiet"])
            .arg(dir.path().join("ice.cpio.zst"))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&unpacked.stdout);
        assert!(text.contains("lib/firmware/ice/ice.pkg\0"), "{text}");
        assert!(text.contains("lib/firmware/b.bin.xz\0"), "{text}");
    }
}
