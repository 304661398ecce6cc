//! Debian packages that the tasks need.
//!
//! Installed by apt when we are root or may use sudo without a password; otherwise the exact command
//! to type is the error. On a machine that has them all nothing is done and no network is touched.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, bail};

use crate::args::Args;
use crate::{axe, sh};

/// Compiles the agent (libblkid is linked statically) and the bundled SQLite.
pub const BUILD: &str = "gcc libc6-dev make libblkid-dev";

/// Unit and integration tests: what makes partition tables, signatures and disk images, and the judges of the boot and
/// BMC rooms and of the systemd unit.
pub const UNIT: &str = "\
    fdisk gdisk lvm2 cryptsetup-bin bcache-tools ocfs2-tools gfs2-utils e2fsprogs util-linux mount \
    iproute2 busybox-static isc-dhcp-client curl ipmitool openipmi ipxe jq openssl python3-venv systemd \
    qemu-utils xorriso gzip xz-utils zstd bzip2 dosfstools mtools postgresql-15 prometheus swtpm sbsigntool";

/// Servers of PostgreSQL, which the tests start themselves.
const POSTGRES: &str = "postgresql-15";
/// What keeps that package from making a server of its own, which would run from then on.
const NO_CLUSTER: (&str, &str) =
    ("/etc/postgresql-common/createcluster.d/anneal-tests.conf", "create_main_cluster = false\n");

/// Judges the metrics and the alerts; the tests start it themselves.
const PROMETHEUS: &str = "prometheus";
/// What keeps that package from starting a server of its own on port 9090.
const NO_SERVER: &str =
    "mkdir -p /etc/systemd/system && ln -sf /dev/null /etc/systemd/system/prometheus.service";

/// Compiles libFuzzer, which is C++.
pub const FUZZ: &str = "g++";

/// Builds the image.
pub const IMAGE: &str = "kmod zstd";

/// Signs the ramdisk.
pub const SIGN: &str = "sbsigntool openssl";

/// Emulates bare metal: firmware, PXE ROMs and network tools, and what signs for it.
pub const LAB: &str = "qemu-system-x86 seabios ovmf ipxe ipxe-qemu iproute2 sbsigntool openssl";

/// A forward proxy: the program alone, without the service that Debian would start.
pub const PROXY: &str = "tinyproxy-bin";

/// Outside judges of the test suite: other people's BMCs and clients, and readers of disks.
pub const JUDGES: &str = "\
    ipmitool openipmi mdadm lvm2 cryptsetup-bin busybox-static cpio gdisk lshw hdparm psmisc udev \
    dosfstools genisoimage mtools parted qemu-utils grub-common grub-pc-bin grub-efi-amd64-bin \
    dnsmasq-base openssh-client golang-go golang-github-gophercloud-gophercloud-dev \
    python3-venv python3-dev \
    libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients libvirt-dev pkg-config";

/// A disk image with an operating system to deploy.
pub const OS_IMAGE: &str = "mmdebstrap gdisk e2fsprogs dosfstools mtools grub-common zstd";

/// Tries packages in a Debian of their own.
pub const PACKAGES: &str = "mmdebstrap zstd iproute2 util-linux mount curl openssl qemu-system-x86";

/// `bench erase`: fio and what others erase with.
pub const BENCH: &str = "fio nwipe util-linux coreutils mount";

/// `bench image`: what packs images, and what ironic-python-agent writes with.
pub const BENCH_IMAGE: &str = "gzip xz-utils zstd qemu-utils gdisk psmisc util-linux mount parted";

/// Shows the web page: a browser, and the typeface of its pictures.
pub const BROWSER: &str = "chromium fonts-dejavu-core";

/// Installs other people's controllers from PyPI.
pub const PEER: &str = "python3-venv";

/// `cargo xtask deps`: all of them, and what judges the web page.
pub fn run(args: Args) -> Result<()> {
    args.finish()?;
    ensure(&[BUILD, UNIT, IMAGE, LAB, JUDGES, BROWSER])?;
    axe::ensure()
}

/// How often the packages are looked at again after an installation.
const ROUNDS: usize = 3;

/// Makes sure that the packages of these groups are installed; a group is a list of names, separated by space.
pub fn ensure(groups: &[&str]) -> Result<()> {
    for _ in 0..ROUNDS {
        let missing = missing(groups);
        if missing.is_empty() {
            return Ok(());
        }
        install(&missing)?;
        // apt removes what conflicts with what it installs, also a package of ours: a machine with qemu-utils of
        // bookworm-backports loses it to bookworm's qemu-system-x86. So the next round looks again.
    }
    let still = missing(groups);
    if !still.is_empty() {
        bail!("still not installed after apt-get install, repeated {ROUNDS} times: {}", still.join(" "));
    }
    Ok(())
}

fn missing<'a>(groups: &[&'a str]) -> Vec<&'a str> {
    let names: BTreeSet<&str> = groups.iter().flat_map(|group| group.split_whitespace()).collect();
    names.into_iter().filter(|name| !installed(name)).collect()
}

fn install(missing: &[&str]) -> Result<()> {
    let Some(prefix) = privilege() else {
        bail!(
            "these packages are missing and this user may neither be root nor use sudo without a password.\n\
             Type as root:\n\n    apt-get update && apt-get install -y --no-install-recommends {}\n",
            missing.join(" ")
        );
    };
    println!("installing {}", missing.join(" "));
    if missing.contains(&POSTGRES) {
        without_cluster(&prefix)?;
    }
    if missing.contains(&PROMETHEUS) {
        shell(&prefix, NO_SERVER)?;
    }
    let install = || {
        let mut apt = apt(&prefix);
        apt.args(["install", "-y", "--no-install-recommends"]).args(missing);
        apt
    };
    // A fresh machine has no package lists, one that was not updated for long has stale ones: update
    // only when the first try fails.
    if !sh::succeeds(&mut install()) {
        apt_update(&prefix);
        sh::run(&mut install())?;
    }
    Ok(())
}

fn without_cluster(prefix: &[&str]) -> Result<()> {
    let (file, text) = NO_CLUSTER;
    shell(prefix, &format!("mkdir -p \"$(dirname {file})\" && printf '{text}' > {file}"))
}

/// Runs a line of shell as root.
fn shell(prefix: &[&str], script: &str) -> Result<()> {
    let mut words = prefix.iter().copied().chain(["sh", "-c", script]);
    let mut command = Command::new(words.next().unwrap_or("sh"));
    sh::run(command.args(words))
}

/// Refreshes the package lists.
pub fn update() -> Result<()> {
    let Some(prefix) = privilege() else {
        bail!("the package lists are missing or stale; type as root: apt-get update");
    };
    apt_update(&prefix);
    Ok(())
}

fn apt_update(prefix: &[&str]) {
    // A broken third-party source makes apt-get update fail though Debian's own lists are fresh;
    // whether what we need is there is seen by the install that follows.
    if !sh::succeeds(apt(prefix).arg("update")) {
        eprintln!("apt-get update ended with an error; going on with the lists that are there");
    }
}

fn apt(prefix: &[&str]) -> Command {
    let apt = "env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300";
    let mut words = prefix.iter().copied().chain(apt.split(' '));
    let mut command = Command::new(words.next().unwrap_or("env"));
    command.args(words);
    command
}

/// What to put before a command to run it as root: nothing, `sudo -n`, or `None` when we may not.
pub fn privilege() -> Option<Vec<&'static str>> {
    if is_root() {
        return Some(vec![]);
    }
    sh::succeeds(Command::new("sudo").args(["-n", "true"])).then(|| vec!["sudo", "-n"])
}

/// Whether this process is root.
pub fn is_root() -> bool {
    sh::output(Command::new("id").arg("-u")).is_ok_and(|uid| uid.trim() == "0")
}

fn installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["-W", "-f", "${Status}", package])
        .output()
        .is_ok_and(|out| out.stdout == b"install ok installed")
}
