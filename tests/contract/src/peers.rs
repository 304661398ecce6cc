//! The peers, from PyPI, each in a virtual environment of its own that later runs find again.

use crate::process::check;
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// An environment: its name and what is in it.
pub type Environment = (&'static str, &'static [&'static str]);

/// Ironic.
pub const IRONIC: Environment = ("ironic", &["ironic==39.0.0"]);

/// ironic-python-agent.
pub const IPA: Environment = ("ipa", &["ironic-python-agent==13.0.0"]);

/// openstacksdk with what its own tests import.
pub const SDK_TESTS: Environment =
    ("sdk-tests", &["openstacksdk==4.22.0", "fixtures==4.3.2", "oslotest==6.1.1", "testtools==2.9.1"]);

/// Every environment that the scenarios need which run when none is named.
pub const ALL: &[Environment] = &[
    ("osc", &["python-openstackclient==10.5.0", "python-ironicclient==6.3.0"]),
    IRONIC,
    IPA,
    ("schemathesis", &["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"]),
    ("metalsmith", &["metalsmith==2.5.0", "openstacksdk==4.22.0"]),
    ("nova", &["nova==34.0.0", "openstacksdk==4.22.0"]),
    ANSIBLE,
    ("bifrost", &["bifrost==21.1.0", "openstacksdk==4.22.0"]),
    ("sushy-tools", &["sushy-tools==2.2.0", "openstacksdk==4.22.0"]),
];

/// Ansible, of the version that the package of [`COLLECTION`] asks for. The collection fails with openstacksdk from 4.15 on,
/// where it does not find the library's version.
pub const ANSIBLE: Environment = ("ansible", &["ansible-core==2.19.14", "openstacksdk==4.7.1"]);

/// Part of a package: its name here, the package, and a directory in the package's wheel.
pub type Part = (&'static str, &'static str, &'static str);

/// Ansible's collection openstack.cloud. PyPI has it in the package `ansible` alone, whose half a gigabyte of other collections
/// stays packed.
pub const COLLECTION: Part =
    ("ansible-collections", "ansible==12.3.0", "ansible_collections/openstack/cloud/");

/// Installs environments: pip takes twenty seconds of a processor for one of them, uv takes one.
const UV: &str = "uv==0.13.9";

/// Seconds that one installation may take: a mirror that hangs fails the run instead of stopping it.
const LIMIT_S: &str = "600";

/// Unpacks a directory of a wheel.
const UNPACK: &str = "import sys, zipfile\n\
    wheel = zipfile.ZipFile(sys.argv[1])\n\
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if name.startswith(sys.argv[3])])\n";

/// Written last into a complete environment: what was installed.
const STAMP: &str = "contract-requirements.txt";

/// Programs that the scenarios or ironic-python-agent call, and the Debian packages they are in.
const PROGRAMS: [(&str, &str); 17] = [
    ("blockdev", "util-linux"),
    ("busybox", "busybox-static"),
    ("curl", "curl"),
    ("fuser", "psmisc"),
    ("go", "golang-go"),
    ("hdparm", "hdparm"),
    ("losetup", "mount"),
    ("lshw", "lshw"),
    ("mdadm", "mdadm"),
    ("openssl", "openssl"),
    ("parted", "parted"),
    ("setpriv", "util-linux"),
    ("sgdisk", "gdisk"),
    ("tar", "tar"),
    ("udevadm", "udev"),
    ("unshare", "util-linux"),
    ("wipefs", "util-linux"),
];

/// Debian packages to be installed beforehand.
pub fn apt_packages() -> Vec<&'static str> {
    let mut packages = vec!["python3-venv", "golang-github-gophercloud-gophercloud-dev"];
    packages.extend(PROGRAMS.map(|(_, package)| package));
    packages.sort_unstable();
    packages.dedup();
    packages
}

/// Fails with what to install when a program is missing: a peer would fail later, and with worse words.
///
/// # Errors
/// See above.
pub fn ensure_programs() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|(program, _)| !there(program)).collect();
    ensure!(
        missing.is_empty(),
        "missing {}; type as root: apt-get install {}",
        missing.iter().map(|(program, _)| *program).collect::<Vec<_>>().join(", "),
        apt_packages().join(" ")
    );
    Ok(())
}

/// Where the peers are.
#[derive(Debug, Clone)]
pub struct Peers {
    root: PathBuf,
}

/// The directory of programs of uv's environment, which is installed below `root` if it is not there yet.
fn installer(root: &Path) -> Result<PathBuf> {
    let home = root.join("uv");
    let programs = home.join("bin");
    if !programs.join("uv").is_file() {
        check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))
            .context("python3 -m venv (Debian: apt install python3-venv)")?;
        let mut pip = limited(&programs.join("pip"));
        check(pip.args(["install", "--quiet", "--disable-pip-version-check", UV]))
            .with_context(|| format!("pip install {UV}"))?;
    }
    Ok(programs)
}

/// A program that is killed after [`LIMIT_S`].
fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", LIMIT_S]).arg(program);
    command
}

/// Two suites that run at once share the environments; the lock goes with the file.
fn lock(root: &Path) -> Result<File> {
    let lock = File::create(root.join("lock"))?;
    lock.lock().context("cannot lock the peers' directory")?;
    Ok(lock)
}

/// Whether an installation of `wanted` has ended in `home`.
fn is_complete(home: &Path, wanted: &str) -> bool {
    fs::read_to_string(home.join(STAMP)).is_ok_and(|found| found == wanted)
}

impl Peers {
    /// Installs what is missing of `environments` below `root`.
    ///
    /// # Errors
    /// When Python or pip is missing, or a package cannot be had.
    pub fn install(root: &Path, environments: &[Environment]) -> Result<Self> {
        fs::create_dir_all(root).with_context(|| format!("{}", root.display()))?;
        let root = root.canonicalize()?;
        let _lock = lock(&root)?;
        for (name, requirements) in environments {
            let home = root.join(name);
            let wanted = requirements.join("\n");
            if is_complete(&home, &wanted) {
                continue;
            }
            println!("installing {} into {}", requirements.join(", "), home.display());
            let begun = Instant::now();
            let program = installer(&root)?.join("uv");
            let uv = |arguments: &[&str]| {
                let mut command = limited(&program);
                // The machine's interpreter and its certificate authorities, as pip takes them.
                command.args(arguments).env("UV_PYTHON_DOWNLOADS", "never").env("UV_SYSTEM_CERTS", "true");
                command
            };
            check(uv(&["venv", "--quiet", "--clear", "--seed"]).arg(&home)).context("uv venv")?;
            let mut install = uv(&["pip", "install", "--quiet", "--python"]);
            check(install.arg(home.join("bin/python3")).args(*requirements))
                .with_context(|| format!("uv pip install {}", requirements.join(" ")))?;
            fs::write(home.join(STAMP), wanted)?;
            println!("installed {name} in {:.1} s", begun.elapsed().as_secs_f64());
        }
        Ok(Self { root })
    }

    /// Installs what is missing of environments that few runs need.
    ///
    /// # Errors
    /// As [`Self::install`].
    pub fn add(&self, environments: &[Environment]) -> Result<()> {
        Self::install(&self.root, environments).map(drop)
    }

    /// The directory below which a part of a package is, unpacked if it was not yet.
    ///
    /// # Errors
    /// When the package cannot be had, or has no such part.
    pub fn part(&self, (name, package, directory): Part) -> Result<PathBuf> {
        let home = self.root.join(name);
        let _lock = lock(&self.root)?;
        if is_complete(&home, package) {
            return Ok(home);
        }
        println!("unpacking {directory} of {package} into {}", home.display());
        let begun = Instant::now();
        let programs = installer(&self.root)?;
        let packed = tempfile::tempdir_in(&self.root)?;
        let mut download = limited(&programs.join("pip"));
        download.args(["download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        check(download.args(["--only-binary", ":all:", package, "--dest"]).arg(packed.path()))
            .with_context(|| format!("pip download {package}"))?;
        let wheel = fs::read_dir(packed.path())?.next().context("pip has downloaded nothing")??.path();
        if home.is_dir() {
            fs::remove_dir_all(&home)?;
        }
        let mut unpack = limited(&programs.join("python3"));
        check(unpack.args(["-c", UNPACK]).arg(wheel).arg(&home).arg(directory))
            .with_context(|| format!("unpacking {package}"))?;
        ensure!(home.join(directory).is_dir(), "{package} has no {directory}");
        fs::write(home.join(STAMP), package)?;
        println!("unpacked {name} in {:.1} s", begun.elapsed().as_secs_f64());
        Ok(home)
    }

    /// Where something that is made again and again is kept for later runs.
    pub fn cache(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}-cache"))
    }

    /// The directory of an environment.
    pub fn environment(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A program of one of the environments.
    pub fn program(&self, environment: &str, name: &str) -> PathBuf {
        self.environment(environment).join("bin").join(name)
    }
}
