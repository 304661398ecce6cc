//! Debian's kernel package, downloaded and unpacked but never installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::package::{self, Package};
use crate::{deps, sh};

/// The package whose dependency is the kernel, so that security updates are followed.
const META_PACKAGE: &str = "linux-image-amd64";

/// An unpacked kernel package.
pub struct Kernel {
    /// `linux-image-6.1.0-…-amd64`.
    pub package: String,
    /// Version of the package.
    pub version: String,
    /// SHA-256 of the package from Debian's signed lists, in hexadecimal.
    pub sha256: String,
    /// `6.1.0-…-amd64`, the name under `/lib/modules`.
    pub release: String,
    /// The bzImage.
    pub vmlinuz: PathBuf,
    /// Where the package was unpacked.
    pub tree: PathBuf,
}

/// The stable release's kernel, from the cache under `work` or through apt.
pub fn fetch(work: &Path) -> Result<Kernel> {
    let package = match newest()? {
        Some(package) => package,
        None => {
            deps::update()?;
            newest()?.with_context(|| format!("apt knows no package {META_PACKAGE}"))?
        }
    };
    let Package { version, sha256, tree, .. } = package::fetch(work, &package)?;
    let release = package.trim_start_matches("linux-image-").to_owned();
    let vmlinuz = tree.join("boot").join(format!("vmlinuz-{release}"));
    ensure!(vmlinuz.exists(), "package {package} holds no {}", vmlinuz.display());
    Ok(Kernel { package, version, sha256, release, vmlinuz, tree })
}

/// The kernel package that the meta package of the highest version depends on.
fn newest() -> Result<Option<String>> {
    let text = sh::output(Command::new("apt-cache").args(["show", "--no-all-versions", META_PACKAGE]));
    // apt-cache fails when it has never heard of the package: that is our `None`.
    Ok(text.ok().and_then(|text| dependency(&text)))
}

/// Reads the first `linux-image-` name of the `Depends:` line.
fn dependency(record: &str) -> Option<String> {
    let depends = record.lines().find_map(|line| line.strip_prefix("Depends:"))?;
    depends.split([',', '|', ' ']).find(|word| word.starts_with("linux-image-")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::dependency;

    #[test]
    fn the_kernel_is_the_dependency_of_the_meta_package() {
        let record =
            "Package: linux-image-amd64\nVersion: 6.1.1\nDepends: linux-image-6.1.0-56-amd64 (= 6.1.1)\n";
        assert_eq!(dependency(record).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(dependency("Package: x\n"), None);
    }
}
