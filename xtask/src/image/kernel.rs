//! Debian's kernel package, downloaded and unpacked but never installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

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
    let offer = match offer(&package) {
        Ok(offer) => offer,
        Err(_) => {
            deps::update()?;
            offer(&package)?
        }
    };
    let tree = work.join(&offer.sha256[..16]);
    let release = package.trim_start_matches("linux-image-").to_owned();
    let vmlinuz = tree.join("boot").join(format!("vmlinuz-{release}"));
    if !vmlinuz.exists() {
        unpack(work, &package, &offer, &tree)?;
    }
    ensure!(vmlinuz.exists(), "package {package} holds no {}", vmlinuz.display());
    Ok(Kernel { package, version: offer.version, sha256: offer.sha256, release, vmlinuz, tree })
}

/// What apt would download.
struct Offer {
    version: String,
    sha256: String,
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

fn offer(package: &str) -> Result<Offer> {
    let text = sh::output(Command::new("apt-cache").args(["show", "--no-all-versions", package]))?;
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        text.lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .map(str::to_owned)
            .with_context(|| format!("apt-cache show {package} has no {name}"))
    };
    let sha256 = field("SHA256")?;
    ensure!(sha256.len() == 64, "{package}: {sha256:?} is no SHA-256");
    Ok(Offer { version: field("Version")?, sha256 })
}

fn unpack(work: &Path, package: &str, offer: &Offer, tree: &Path) -> Result<()> {
    let download = work.join("download");
    if download.exists() {
        fs::remove_dir_all(&download)?;
    }
    fs::create_dir_all(&download)?;
    println!("downloading {package} {}", offer.version);
    let wanted = format!("{package}={}", offer.version);
    let get = || {
        // apt would drop to the user _apt, which cannot write here, and complain.
        let mut command = Command::new("apt-get");
        command.current_dir(&download).args(["-q", "-o", "APT::Sandbox::User=root", "download", &wanted]);
        command
    };
    if !sh::succeeds(&mut get()) {
        deps::update()?;
        sh::run(&mut get())?;
    }
    let deb = single_file(&download)?;
    let bytes = fs::read(&deb)?;
    let found = sh::sha256(&bytes);
    if found != offer.sha256 {
        bail!("{} has SHA-256 {found}, Debian's list says {}", deb.display(), offer.sha256);
    }
    // Unpacked under another name and renamed, so that an existing tree is complete.
    let part = tree.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    sh::run(Command::new("dpkg").arg("-x").arg(&deb).arg(&part))?;
    fs::rename(&part, tree)?;
    Ok(fs::remove_dir_all(&download)?)
}

fn single_file(dir: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(dir)?;
    let mut debs: Vec<PathBuf> = entries.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    debs.retain(|path| path.extension().is_some_and(|e| e == "deb"));
    match debs.as_slice() {
        [deb] => Ok(deb.clone()),
        other => bail!("expected one package in {}, found {}", dir.display(), other.len()),
    }
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
