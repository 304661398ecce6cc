//! What is in the packages: the controller with its ramdisk, and the command line.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};
use fs_err as fs;

use super::tree::Tree;
use crate::sh;

/// Where the configuration is, relative to the root of a system.
pub const CONFIG: &str = "etc/anneal/anneal-controller.toml";
/// The default of the setting, as it stands in our configuration file, and that of packages.
const DRIVERS: (&str, &str) = (
    "#enabled_hardware_types = [\"redfish\", \"ipmi\", \"fake-hardware\"]\n",
    "# \"fake-hardware\" is not among those of this package.\nenabled_hardware_types = [\"redfish\", \"ipmi\"]\n",
);
/// Made by `cargo xtask image`, in `image/out`.
pub const RAMDISK: [&str; 3] = ["vmlinuz", "initramfs", "rescue"];

/// The program `anneal-controller`, its unit, user and configuration.
pub fn controller(bins: &Path) -> Result<Tree> {
    let root = sh::root();
    let ours = root.join("controller/controllerd");
    let mut tree = Tree::default();
    tree.copy("usr/bin/anneal-controller", 0o755, &bins.join("anneal-controller"))?;
    let unit = ours.join("anneal-controller.service");
    tree.copy("lib/systemd/system/anneal-controller.service", 0o644, &unit)?;
    tree.copy("usr/lib/sysusers.d/anneal.conf", 0o644, &root.join("controller/packaging/anneal.sysusers"))?;
    let settings = fs::read_to_string(ours.join("anneal-controller.toml"))?;
    tree.file(CONFIG, 0o640, configuration(&settings)?.into_bytes());
    tree.copy("usr/share/doc/anneal-controller/CHANGELOG.md", 0o644, &root.join("CHANGELOG.md"))?;
    tree.copy(
        "usr/share/doc/anneal-controller/copyright",
        0o644,
        &root.join("controller/packaging/debian/copyright"),
    )?;
    Ok(tree)
}

/// Kernel, initramfs and the login of rescues, with the notices that belong to every copy of them.
pub fn ramdisk() -> Result<Tree> {
    let from = sh::root().join("image/out");
    let mut tree = Tree::default();
    for file in RAMDISK {
        tree.copy(&format!("usr/share/anneal/{file}"), 0o644, &from.join(file))?;
    }
    for file in ["NOTICES", "NOTICES-rescue"] {
        tree.copy(&format!("usr/share/doc/anneal-controller/{file}"), 0o644, &from.join(file))?;
    }
    Ok(tree)
}

/// The program `anneal` with its completions and manual pages.
pub fn command_line(bins: &Path, work: &Path) -> Result<Tree> {
    let program = bins.join("anneal");
    let mut tree = Tree::default();
    tree.copy("usr/bin/anneal", 0o755, &program)?;
    for (shell, path) in [
        ("bash", "usr/share/bash-completion/completions/anneal"),
        ("zsh", "usr/share/zsh/vendor-completions/_anneal"),
        ("fish", "usr/share/fish/vendor_completions.d/anneal.fish"),
    ] {
        let script = sh::output(Command::new(&program).args(["completion", shell]))?;
        tree.file(path, 0o644, script.into_bytes());
    }
    let pages = work.join("manual");
    fs::create_dir_all(&pages)?;
    sh::run(Command::new(&program).arg("manual").arg(&pages))?;
    for entry in fs::read_dir(&pages)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).context("the name of a manual page")?;
        tree.file(&format!("usr/share/man/man1/{name}.gz"), 0o644, gzip(&fs::read(&path)?, 9)?);
    }
    let copyright = sh::root().join("controller/packaging/debian/copyright");
    tree.copy("usr/share/doc/anneal/copyright", 0o644, &copyright)?;
    Ok(tree)
}

/// Our configuration file with the default of packages.
fn configuration(settings: &str) -> Result<String> {
    let (ours, packaged) = DRIVERS;
    ensure!(settings.matches(ours).count() == 1, "anneal-controller.toml has no line {ours:?}");
    Ok(settings.replace(ours, packaged))
}

/// Packs without a name and a time; `level` is 1 to 9.
pub fn gzip(bytes: &[u8], level: u32) -> Result<Vec<u8>> {
    let mut packer = GzBuilder::new().write(Vec::new(), Compression::new(level));
    packer.write_all(bytes)?;
    Ok(packer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_no_fake_hardware_and_every_other_default() {
        let file = sh::root().join("controller/controllerd/anneal-controller.toml");
        let packaged: toml::Table =
            configuration(&fs::read_to_string(file).unwrap()).unwrap().parse().unwrap();
        let expected: toml::Table = "enabled_hardware_types = [\"redfish\", \"ipmi\"]".parse().unwrap();
        assert_eq!(packaged.get("enabled_hardware_types"), expected.get("enabled_hardware_types"));
        let others = |(name, value): (&String, &toml::Value)| {
            name == "enabled_hardware_types" || value.as_table().is_some_and(toml::Table::is_empty)
        };
        assert!(packaged.iter().all(others), "{packaged}");
        assert!(configuration("state_dir = \"/x\"\n").is_err());
    }

    #[test]
    fn gzip_reads_what_was_packed_and_finds_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.gz");
        fs::write(&file, gzip(b"12345", 9).unwrap()).unwrap();
        let unpacked = sh::output(Command::new("gzip").args(["--decompress", "--stdout"]).arg(&file));
        assert_eq!(unpacked.unwrap(), "12345");
        // RFC 1952: no flags, no time.
        assert_eq!(fs::read(&file).unwrap()[3..8], [0; 5]);
    }
}
