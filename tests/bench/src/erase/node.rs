//! The same contest in a lab node: QEMU with an NVMe and a virtio disk, whose init is this program.
//!
//! ```text
//!   bench erase ── QEMU -kernel … -append "… -- node --mib 256" ──▶ /init = bench, PID 1 ── contests ──▶ ttyS1 ──▶ JSON
//! ```

use super::disks::Disks;
use super::report::Contest;
use super::{Shape, contest};
use anyhow::{Context, Result, ensure};
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use std::convert::Infallible;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The disks of the node: where they lie for the table, and their device nodes.
const DISKS: [(&str, &str); 2] = [("a node, NVMe", "/dev/nvme0n1"), ("a node, virtio", "/dev/vda")];
/// Modules, in the order in which they are loaded.
const MODULES: &str = "/modules";
/// The serial port to which the node writes its measurements.
const RESULT_PORT: &str = "/dev/ttyS1";
const MOUNTS: [(&str, &str); 4] =
    [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")];
/// Until the disks are there.
const PATIENCE: Duration = Duration::from_secs(60);
/// MiB of the node's memory: the tools' libraries lie in it.
const MEMORY_MIB: u32 = 1024;

/// Start a node with `vmlinuz` and `bench` of `image`, over disks below `memory`, and take what it measured.
///
/// # Errors
/// When QEMU does not start, or the node wrote no result.
pub fn measure(image: &Path, memory: &Path, shape: Shape) -> Result<Vec<Contest>> {
    let scratch = tempfile::Builder::new().prefix("anneal-bench-node-").tempdir_in(memory)?;
    let file = |name: &str| scratch.path().join(name);
    let mut qemu = Command::new("qemu-system-x86_64");
    // Emulated, as the lab's nodes: a machine may have a /dev/kvm on which nothing ever starts.
    qemu.args(["-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "2"]);
    qemu.args(["-nodefaults", "-display", "none", "-no-reboot"]);
    qemu.args(["-m", &MEMORY_MIB.to_string()]);
    qemu.arg("-kernel").arg(image.join("vmlinuz")).arg("-initrd").arg(image.join("bench"));
    let peers = if shape.peers { "" } else { " --no-peers" };
    let (mib, rounds) = (shape.size >> 20, shape.rounds);
    let line = format!("console=ttyS0 quiet panic=-1 -- node --mib {mib} --rounds {rounds}{peers}");
    qemu.args(["-append", &line]);
    // Its console is ours, so that one sees how far it is.
    qemu.args(["-serial", "stdio"]).stdin(Stdio::null());
    qemu.arg("-serial").arg(format!("file:{}", file("result").display()));
    for (name, device) in [("disk0", "nvme,serial=BENCH0"), ("disk1", "virtio-blk-pci,serial=BENCH1")] {
        let path = file(name);
        File::create(&path).and_then(|disk| disk.set_len(shape.size)).context("a disk of the node")?;
        qemu.arg("-drive").arg(format!("if=none,id={name},format=raw,file={}", path.display()));
        qemu.arg("-device").arg(format!("{device},drive={name}"));
    }
    println!("a node with an NVMe and a virtio disk of {mib} MiB each");
    let status = qemu.status().context("qemu-system-x86_64 (Debian package qemu-system-x86)")?;
    ensure!(status.success(), "QEMU ended with {status}");
    serde_json::from_slice(&fs::read(file("result"))?).context("the node wrote no result: see its console")
}

/// Be the init of such a node: measure, write the result, power off. EVERYTHING on its disks is lost.
///
/// # Errors
/// When this is not PID 1 of a machine, or the machine cannot be powered off.
pub fn init(shape: Shape) -> Result<Infallible> {
    ensure!(std::process::id() == 1, "this erases the disks of the machine it is the init of, and is not");
    if let Err(error) = measured(shape) {
        eprintln!("bench: {error:#}");
    }
    Ok(reboot(RebootMode::RB_POWER_OFF)?)
}

fn measured(shape: Shape) -> Result<()> {
    for (kind, target) in MOUNTS {
        fs::create_dir_all(target)?;
        mount(Some(kind), target, Some(kind), MsFlags::empty(), None::<&str>)
            .with_context(|| format!("mounting {target}"))?;
    }
    let mut modules: Vec<PathBuf> =
        fs::read_dir(MODULES)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    modules.sort();
    for module in modules {
        finit_module(File::open(&module)?, c"", ModuleInitFlags::empty())
            .with_context(|| format!("loading {}", module.display()))?;
    }
    let program = std::env::current_exe()?;
    let mut contests = Vec::new();
    for (place, node) in DISKS {
        let node = PathBuf::from(node);
        let begun = Instant::now();
        while !node.exists() {
            ensure!(begun.elapsed() < PATIENCE, "{} does not come", node.display());
            std::thread::sleep(Duration::from_millis(100));
        }
        let disks = Disks::given(vec![node], shape.size)?;
        contests.push(contest(&program, place, &disks, shape)?);
    }
    serde_json::to_writer(File::options().write(true).open(RESULT_PORT)?, &contests)?;
    // What is still in the serial port would be lost with the power.
    Ok(nix::sys::termios::tcdrain(File::options().write(true).open(RESULT_PORT)?)?)
}
