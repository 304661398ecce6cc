//! A Debian package, downloaded by apt, checked against Debian's signed lists and unpacked, but never installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use crate::{deps, sh};

/// Where other releases come from, and whose keys sign them (Debian package debian-archive-keyring).
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An unpacked package.
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the package from Debian's signed lists, in hexadecimal.
    pub sha256: String,
    /// Where it was unpacked.
    pub tree: PathBuf,
}

impl Package {
    /// One of its files; links must not leave the package. Absolute ones (the loader's) mean the root of the system that it is
    /// installed in.
    pub fn file(&self, file: &str) -> Result<PathBuf> {
        let path = self.tree.join(file);
        let path = match fs::read_link(&path) {
            Ok(target) if target.is_absolute() => self.tree.join(target.strip_prefix("/")?),
            _ => path,
        };
        let path = fs::canonicalize(&path)?;
        let inside = path.starts_with(fs::canonicalize(&self.tree)?);
        ensure!(inside, "{file} leads out of its package: {}", path.display());
        Ok(path)
    }

    /// What its authors want to stand with every copy.
    pub fn copyright(&self) -> Result<Vec<u8>> {
        let file = self.tree.join("usr/share/doc").join(&self.name).join("copyright");
        fs::read(&file).with_context(|| format!("notices of {}", self.name))
    }
}

/// The version that apt would install, from the cache under `work` or through apt.
pub fn fetch(work: &Path, name: &str) -> Result<Package> {
    Lists::own().fetch(work, name)
}

/// Lists of packages: this system's, or another release's.
pub struct Lists {
    /// Options of apt.
    options: Vec<String>,
}

impl Lists {
    /// This system's.
    pub fn own() -> Self {
        Self { options: Vec::new() }
    }

    /// Those of another release of Debian, kept below `work`. The system's stay as they are.
    pub fn of_release(work: &Path, release: &str) -> Result<Self> {
        Self::of(&work.join(release), release, "main")
    }

    /// Those of this system's release with what is not free in Debian's sense, kept below `work`.
    pub fn with_firmware(work: &Path) -> Result<Self> {
        let release = release(&fs::read_to_string("/etc/os-release")?)?;
        Self::of(&work.join(format!("{release}-firmware")), &release, "main non-free-firmware")
    }

    fn of(dir: &Path, release: &str, components: &str) -> Result<Self> {
        fs::create_dir_all(dir.join("lists/partial"))?;
        fs::create_dir_all(dir.join("cache/archives/partial"))?;
        let sources = dir.join("sources.list");
        fs::write(&sources, format!("deb [signed-by={KEYRING}] {MIRROR} {release} {components}\n"))?;
        let dir = dir.display();
        let options = [
            format!("Dir::Etc::sourcelist={}", sources.display()),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={dir}/lists"),
            format!("Dir::Cache={dir}/cache"),
        ];
        Ok(Self { options: options.to_vec() })
    }

    /// The version that apt would install, from the cache under `work` or through apt.
    pub fn fetch(&self, work: &Path, name: &str) -> Result<Package> {
        let offer = match self.offer(name) {
            Ok(offer) => offer,
            Err(_) => {
                self.update()?;
                self.offer(name)?
            }
        };
        let tree = work.join(&offer.sha256[..16]);
        if !tree.exists() {
            self.unpack(work, name, &offer, &tree)?;
        }
        Ok(Package { name: name.to_owned(), version: offer.version, sha256: offer.sha256, tree })
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // apt would drop to the user _apt, which cannot write here, and complain.
        command.args(["-q", "-o", "APT::Sandbox::User=root"]);
        command.args(self.options.iter().flat_map(|option| ["-o", option.as_str()]));
        command
    }

    /// The system's need its administrator.
    fn update(&self) -> Result<()> {
        if self.options.is_empty() { deps::update() } else { sh::run(self.apt("apt-get").arg("update")) }
    }

    fn offer(&self, package: &str) -> Result<Offer> {
        let text = sh::output(self.apt("apt-cache").args(["show", "--no-all-versions", package]))?;
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

    fn unpack(&self, work: &Path, package: &str, offer: &Offer, tree: &Path) -> Result<()> {
        let download = work.join("download");
        if download.exists() {
            fs::remove_dir_all(&download)?;
        }
        fs::create_dir_all(&download)?;
        println!("downloading {package} {}", offer.version);
        let wanted = format!("{package}={}", offer.version);
        let get = || {
            let mut command = self.apt("apt-get");
            command.current_dir(&download).args(["download", &wanted]);
            command
        };
        if !sh::succeeds(&mut get()) {
            self.update()?;
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
}

/// The name of a release of Debian, of `/etc/os-release`.
fn release(os_release: &str) -> Result<String> {
    let value = |key: &str| os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    ensure!(
        value("ID") == Some("debian"),
        "firmware is fetched for the kernel of a Debian, and this system is none"
    );
    let name = value("VERSION_CODENAME").context("/etc/os-release has no VERSION_CODENAME")?;
    Ok(name.trim_matches('"').to_owned())
}

/// What apt would download.
struct Offer {
    version: String,
    sha256: String,
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
    use super::release;

    #[test]
    fn the_release_is_named_by_the_system() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(release(text).unwrap(), "bookworm");
        assert!(release("ID=fedora\nVERSION_CODENAME=x\n").unwrap_err().to_string().contains("Debian"));
        assert!(release("ID=debian\n").is_err());
    }
}
