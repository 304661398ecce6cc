//! The peers, from PyPI, each in a virtual environment of its own that later runs find again.

use crate::process::check;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment: its name and what is in it.
pub type Environment = (&'static str, &'static [&'static str]);

/// Ironic.
pub const IRONIC: Environment = ("ironic", &["ironic==39.0.0"]);

/// ironic-python-agent.
pub const IPA: Environment = ("ipa", &["ironic-python-agent==13.0.0"]);

/// Every environment that the scenarios need.
pub const ALL: &[Environment] = &[
    ("osc", &["python-openstackclient==10.5.0", "python-ironicclient==6.3.0"]),
    IRONIC,
    IPA,
    ("schemathesis", &["schemathesis==4.32.5", "openapi-spec-validator==0.9.0"]),
    ("metalsmith", &["metalsmith==2.5.0", "openstacksdk==4.22.0"]),
    ("nova", &["nova==34.0.0", "openstacksdk==4.22.0"]),
];

/// Installs environments: pip takes twenty seconds of a processor for one of them, uv takes one.
const UV: &str = "uv==0.13.9";

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

/// Commands of uv, which is installed below `root` if it is not there yet.
fn installer(root: &Path) -> Result<impl Fn(&[&str]) -> Command + use<>> {
    let home = root.join("uv");
    let program = home.join("bin/uv");
    if !program.is_file() {
        check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))
            .context("python3 -m venv (Debian: apt install python3-venv)")?;
        let pip = &mut Command::new(home.join("bin/pip"));
        check(pip.args(["install", "--quiet", "--disable-pip-version-check", UV]))
            .with_context(|| format!("pip install {UV}"))?;
    }
    Ok(move |arguments: &[&str]| {
        let mut command = Command::new(&program);
        // The machine's interpreter and its certificate authorities, as pip takes them.
        command.args(arguments).env("UV_PYTHON_DOWNLOADS", "never").env("UV_SYSTEM_CERTS", "true");
        command
    })
}

impl Peers {
    /// Installs what is missing of `environments` below `root`.
    ///
    /// # Errors
    /// When Python or pip is missing, or a package cannot be had.
    pub fn install(root: &Path, environments: &[Environment]) -> Result<Self> {
        std::fs::create_dir_all(root).with_context(|| format!("{}", root.display()))?;
        let root = root.canonicalize()?;
        // Two suites that run at once share the environments; the lock goes with the file.
        let lock = std::fs::File::create(root.join("lock"))?;
        lock.lock().context("cannot lock the peers' directory")?;
        for (name, requirements) in environments {
            let home = root.join(name);
            let wanted = requirements.join("\n");
            if std::fs::read_to_string(home.join(STAMP)).is_ok_and(|found| found == wanted) {
                continue;
            }
            println!("installing {} into {}", requirements.join(", "), home.display());
            let python = home.join("bin/python3");
            let uv = installer(&root)?;
            check(uv(&["venv", "--quiet", "--clear", "--seed"]).arg(&home)).context("uv venv")?;
            let mut install = uv(&["pip", "install", "--quiet", "--python"]);
            check(install.arg(python).args(*requirements))
                .with_context(|| format!("uv pip install {}", requirements.join(" ")))?;
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
