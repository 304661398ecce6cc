//! `.deb` files: our trees with a control archive, put together by `dpkg-deb`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::contents::CONFIG;
use super::tree::Tree;
use super::{Plan, elf};
use crate::sh;

/// What is only said of one package.
struct Control<'a> {
    name: &'a str,
    depends: &'a str,
    recommends: &'a str,
    about: &'a str,
}

const CONTROLLER: Control = Control {
    name: "anneal-controller",
    // What makes the user; minimal systems and containers have it without systemd.
    depends: "systemd | systemd-standalone-sysusers",
    recommends: "anneal, ipmitool, ipxe",
    about: "bare-metal provisioner: controller and ramdisk\n \
            Takes bare-metal servers from one workload to the next: erases their disks and proves it, deploys\n \
            images, speaks the wire protocols of OpenStack Ironic.",
};

const COMMAND_LINE: Control = Control {
    name: "anneal",
    depends: "",
    recommends: "",
    about: "bare-metal provisioner: command line\n The operator's command line of anneal-controller.",
};

/// Makes `anneal-controller_…_amd64.deb` in `out`; returns its path.
pub fn controller(plan: &Plan, tree: &Tree, out: &Path) -> Result<PathBuf> {
    let mut control = Tree::default();
    for script in ["preinst", "postinst", "prerm", "postrm"] {
        let text = fs::read_to_string(sh::root().join("controller/packaging/debian").join(script))?;
        let text = text.replace("@SCHEMA@", &plan.schema.to_string()).replace("@VERSION@", &plan.version);
        ensure!(!text.contains('@'), "{script} has a mark that nothing replaces");
        control.file(script, 0o755, text.into_bytes());
    }
    control.file("conffiles", 0o644, format!("/{CONFIG}\n").into_bytes());
    build(plan, &CONTROLLER, tree, control, out)
}

/// Makes `anneal_…_amd64.deb` in `out`; returns its path.
pub fn command_line(plan: &Plan, tree: &Tree, out: &Path) -> Result<PathBuf> {
    build(plan, &COMMAND_LINE, tree, Tree::default(), out)
}

fn build(plan: &Plan, package: &Control, tree: &Tree, mut control: Tree, out: &Path) -> Result<PathBuf> {
    control.file("control", 0o644, fields(plan, package, tree)?.into_bytes());
    control.file("md5sums", 0o644, sums(plan, tree, package.name)?.into_bytes());
    let stage = plan.work.join(package.name);
    let whole = tree.clone().with(&control.below("DEBIAN"));
    whole.stage(&stage, plan.epoch)?;
    let deb = out.join(format!("{}_{}_amd64.deb", package.name, plan.version));
    sh::run(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--threads-max=1", "-Zzstd"])
            .args([&format!("-z{}", plan.zstd_level()), "--build"])
            .arg(&stage)
            .arg(&deb)
            .env("SOURCE_DATE_EPOCH", plan.epoch.to_string()),
    )?;
    fs::remove_dir_all(&stage)?;
    Ok(deb)
}

/// The control file (Debian Policy, section 5.3).
fn fields(plan: &Plan, package: &Control, tree: &Tree) -> Result<String> {
    let mut depends = format!("libc6 (>= {}), libgcc-s1", elf::newest_glibc(tree.files())?);
    if !package.depends.is_empty() {
        depends = format!("{depends}, {}", package.depends);
    }
    let recommends = match package.recommends {
        "" => String::new(),
        some => format!("Recommends: {some}\n"),
    };
    let (name, version, about) = (package.name, &plan.version, package.about);
    let kib = tree.size().div_ceil(1024);
    Ok(format!(
        "Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: Anneal <anneal@localhost>\n\
         Installed-Size: {kib}\nSection: admin\nPriority: optional\nDepends: {depends}\n{recommends}\
         Description: {about}\n"
    ))
}

/// `md5sums`, for `dpkg --verify`. md5sum computes them: we have no MD5 and want none.
fn sums(plan: &Plan, tree: &Tree, name: &str) -> Result<String> {
    let dir = plan.work.join(format!("{name}-sums"));
    tree.stage(&dir, plan.epoch)?;
    let paths = tree.files().map(|(path, _)| path).filter(|path| *path != CONFIG);
    let sums = sh::output(Command::new("md5sum").args(paths).current_dir(&dir));
    fs::remove_dir_all(&dir)?;
    sums.context("md5sum")
}
