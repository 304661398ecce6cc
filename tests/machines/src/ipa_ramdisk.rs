//! A ramdisk with the real ironic-python-agent of PyPI: our kernel and its modules, tools of this machine, this machine's Python, and
//! udev. What its makers build has the same parts of another distribution.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use contract::peers::{IPA, Peers};
use contract::process::check;
use lab::binaries::image_dir;

use crate::judges::peers;
use crate::layers;

/// What the agent calls, and what makes drives and their labels known.
const TOOLS: [&str; 19] = [
    "blkid",
    "blockdev",
    "dmidecode",
    "findmnt",
    "fuser",
    "hdparm",
    "ip",
    "ldconfig",
    "lsblk",
    "lscpu",
    "lshw",
    "mdadm",
    "parted",
    "partprobe",
    "partx",
    "sgdisk",
    "udevadm",
    "wipefs",
    "dd",
];
/// Rules and helpers of udev.
const UDEV: &str = "/usr/lib/udev";

/// Brings the network up with what a DHCP server says.
const LEASE: &str = "\
#!/bin/busybox sh
[ \"$1\" = bound ] || exit 0
ip addr add \"$ip/${mask:-24}\" dev \"$interface\"
";

/// Modules, network, udev, and the agent, whose end is shown.
const INIT: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/applets
mkdir -p /applets /sbin /tmp /var/lib /var/log /run/udev /run/ironic-python-agent
/bin/busybox --install -s /applets
for module in virtio_pci virtio_rng virtio_net ahci sd_mod xhci_pci usb_storage sr_mod isofs nls_utf8; do
    modprobe $module
done
# Python looks for it there.
ln -s /usr/sbin/ldconfig /sbin/ldconfig
ldconfig
chmod +x /lease
udevadm=$(readlink -f "$(which udevadm)")
mkdir -p /usr/lib/systemd
ln -s /usr/lib/udev /lib/udev
ln -sf "$udevadm" /usr/lib/systemd/systemd-udevd
/usr/lib/systemd/systemd-udevd --daemon
udevadm trigger --action=add
udevadm settle
ip link set lo up
ip link set eth0 up
udhcpc -q -n -t 10 -i eth0 -s /lease
echo "COMMAND LINE $(cat /proc/cmdline)"
echo "IRONIC-PYTHON-AGENT STARTS"
@AGENT@ --config-file /dev/null
echo "IRONIC-PYTHON-AGENT ENDED: $?"
while :; do sleep 60; done
"#;

/// Changes whenever other files are packed of the same environment.
const RECIPE: &str = "1";

/// Makes a directory with kernel, initramfs and boot loaders below `dir`.
///
/// # Errors
/// When a tool is missing, or [`install`] has not run.
pub fn image(dir: &Path) -> Result<PathBuf> {
    let home = Peers::install(&peers()?, &[IPA])?.environment(IPA.0);
    let agent = home.join("bin/ironic-python-agent");
    let script = INIT.replace("@AGENT@", &agent.display().to_string());
    let image = layers::image(dir, &TOOLS, &[("lease", LEASE.as_bytes())], &script)?;
    let initramfs = image.join("initramfs");
    let python = fs::read(packed()?).context("the packed Python")?;
    fs::write(&initramfs, [fs::read(&initramfs)?, python].concat())?;
    symlink(image_dir()?.join("medium").canonicalize()?, image.join("medium")).context("the boot loaders")?;
    Ok(image)
}

/// Installs the agent from PyPI and packs it with Python, once. Called outside of any namespace of ours: it needs the network.
///
/// # Errors
/// When Python is missing, or PyPI is out of reach.
pub fn install() -> Result<()> {
    // Scenarios that run at the same time need the same.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let home = Peers::install(&peers()?, &[IPA])?.environment(IPA.0);
    let packed = packed()?;
    if packed.is_file() {
        return Ok(());
    }
    let dir = packed.parent().context("a directory")?;
    fs::create_dir_all(dir)?;
    let root = tempfile::tempdir_in(dir)?;
    let python = Interpreter::of(&home)?;
    let mut trees = vec![home.clone(), python.library.clone()];
    trees.extend(python.programs()?);
    trees.extend([UDEV, "/etc/ld.so.conf", "/etc/ld.so.conf.d"].map(PathBuf::from));
    copy_trees(root.path(), &trees, &python.library.join("site-packages"))?;
    let within = |path: &Path| -> Result<PathBuf> { Ok(root.path().join(path.strip_prefix("/")?)) };
    // What is compiled counts whatever its source's time is: an initramfs has none. Some packages have examples that do not compile.
    let compile = ["-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"];
    let trees = [within(&home.join("lib"))?, within(&python.library)?];
    Command::new(&python.program).args(compile).args(trees).output().context("compiling Python")?;
    for library in libraries(root.path())? {
        let to = within(&library)?;
        fs::create_dir_all(to.parent().context("a directory")?)?;
        fs::copy(&library, &to).with_context(|| format!("cannot copy {}", library.display()))?;
    }
    let part = packed.with_extension("part");
    let pack = "find . | cpio --quiet -o -H newc | zstd -q -3";
    let output = Command::new("sh").args(["-c", pack]).current_dir(root.path()).output()?;
    ensure!(output.status.success(), "packing Python: {}", String::from_utf8_lossy(&output.stderr));
    fs::write(&part, output.stdout)?;
    fs::rename(part, packed)?;
    Ok(())
}

/// The archive of Python and the agent, of this recipe and version.
fn packed() -> Result<PathBuf> {
    let version = IPA.1.join(",").replace('=', "-");
    Ok(peers()?.join("ipa-ramdisk-cache").join(format!("{version}-{RECIPE}.cpio.zst")))
}

/// The Python below the environment.
struct Interpreter {
    program: PathBuf,
    /// Where it is installed.
    prefix: PathBuf,
    /// Its standard library.
    library: PathBuf,
}

impl Interpreter {
    fn of(home: &Path) -> Result<Self> {
        let program = home.join("bin/python3");
        let ask = "import sys, sysconfig; print(sys.base_prefix); print(sysconfig.get_path('stdlib'))";
        let output = check(Command::new(&program).args(["-c", ask]))?;
        let text = String::from_utf8(output.stdout)?;
        let mut lines = text.lines().map(PathBuf::from);
        let (prefix, library) = (lines.next().context("no prefix")?, lines.next().context("no library")?);
        Ok(Self { program, prefix, library })
    }

    /// Itself, by all its names.
    fn programs(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.prefix.join("bin"))?.flatten().map(|entry| entry.path());
        let is_python = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.strip_prefix("python")
                .is_some_and(|rest| rest.chars().all(|it| it.is_ascii_digit() || it == '.'))
        };
        Ok(entries.filter(is_python).collect())
    }
}

/// Copies files and directories to their places below `root`, but for what is large and of no use here, and `but`.
fn copy_trees(root: &Path, trees: &[PathBuf], but: &Path) -> Result<()> {
    let relative = |path: &Path| Ok::<_, anyhow::Error>(path.strip_prefix("/")?.display().to_string());
    let mut words =
        vec!["tar -C / -c --exclude=test --exclude=pip --exclude='config-3*' --exclude='hwdb*'".to_owned()];
    words.push(format!("--exclude='{}'", relative(but)?));
    for tree in trees {
        words.push(format!("'{}'", relative(tree)?));
    }
    words.push(format!("| tar -C '{}' -x", root.display()));
    let copy = format!("set -e; {}", words.join(" "));
    check(Command::new("sh").args(["-c", &copy])).map(drop)
}

/// What the programs and modules below `root` are linked to, outside of it, and what the agent loads by name.
fn libraries(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let find = "find . -type f \\( -name '*.so*' -o -perm -u+x \\) -exec ldd {} + 2>/dev/null; ldconfig -p | grep libudev.so.1";
    let output = Command::new("sh").args(["-c", find]).current_dir(root).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_library = |word: &&str| word.starts_with('/') && word.contains(".so") && !word.ends_with(':');
    let all = text.split_whitespace().filter(is_library).map(PathBuf::from);
    Ok(all.filter(|path| !path.starts_with(root) && path.is_file()).collect())
}
