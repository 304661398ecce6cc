//! The peers, from PyPI, each in a virtual environment of its own that later runs find again.

use crate::process::check;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment: its name and what is in it.
pub type Environment = (&'static str, &'static [&'static str]);

/// Ironic.
pub const IRONIC: Environment = ("ironic", &["ironic==39.0.0"]);

/// Every environment that the scenarios need.
pub const ALL: &[Environment] = &[
    ("osc", &["python-openstackclient==10.5.0", "python-ironicclient==6.3.0"]),
    IRONIC,
    ("ipa", &["ironic-python-agent==13.0.0"]),
    ("schemathesis", &["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"]),
];

/// Written last into a complete environment: what was installed.
const STAMP: &str = "contract-requirements.txt";

/// Programs that the scenarios or ironic-python-agent call, and the Debian packages they are in.
const PROGRAMS: [(&str, &str); 16] = [
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

impl Peers {
    /// Installs what is missing of `environments` below `root`.
    ///
    /// # Errors
    /// When Python or pip is missing, or a package cannot be had.
    pub fn install(root: &Path, environments: &[Environment]) -> Result<Self> {
        std::fs::create_dir_all(root).with_context(|| format!("{}", root.display()))?;
        let root = root.canonicalize()?;
        for (name, requirements) in environments {
            let home = root.join(name);
            let wanted = requirements.join("\n");
            if std::fs::read_to_string(home.join(STAMP)).is_ok_and(|found| found == wanted) {
                continue;
            }
            println!("installing {} into {}", requirements.join(", "), home.display());
            check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))
                .context("python3 -m venv (Debian: apt install python3-venv)")?;
            let mut pip = Command::new(home.join("bin/pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(*requirements);
            check(&mut pip).with_context(|| format!("pip install {}", requirements.join(" ")))?;
            std::fs::write(home.join(STAMP), wanted)?;
        }
        Ok(Self { root })
    }

    /// Where something that is made again and again is kept for later runs.
    pub fn cache(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}-cache"))
    }

    /// A program of one of the environments.
    pub fn program(&self, environment: &str, name: &str) -> PathBuf {
        self.root.join(environment).join("bin").join(name)
    }
}
