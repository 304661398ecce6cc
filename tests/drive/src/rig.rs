//! Drives in a ramdisk, before the agent begins.
//!
//! The kernel starts the program as PID 1 (`rdinit=/rig/drive drive=ata,S1,crypto drive=…`). It starts itself as a
//! child, which keeps its mounts for itself, loads the modules next to it, and plugs the drives in; then PID 1 becomes
//! `/init`, the agent, which finds disks and nothing else.
//!
//! Content and memory of the drives are outside of the machine, where they outlive its power and can be looked at:
//! QEMU's `ivshmem-plain` devices in the order of the bus, first one for the memory of all drives, then one for each. A kernel that
//! is locked down does not map devices: with `drives=own` content and memory are files of the ramdisk, which are seen by
//! reads of the drives alone.

use crate::clock::Real;
use crate::drive::Drive;
use crate::medium::Shared;
use crate::spec::Spec;
use crate::sys::Map;
use crate::tcmu::Backend;
use anyhow::{Context, Result, ensure};
use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Modules to load, one a line, in order, with [`MODULES`] before each.
pub const ORDER: &str = "/rig/modules/order";
/// Where they are.
pub const MODULES: &str = "/rig/modules";
/// What the child says when the drives are there.
const READY: &str = "drives are plugged in";
/// Memory of one drive.
const PAGE: usize = 4096;
/// On the kernel's command line: content and memory are in the ramdisk.
const OWN: &str = "drives=own";
/// Content of each drive then, in bytes.
const OWN_CONTENT: usize = 8 << 20;
/// Vendor and device of ivshmem.
const IVSHMEM: [&str; 2] = ["0x1af4", "0x1110"];

const MOUNTS: [(&str, &str, &str); 4] = [
    ("proc", "/proc", "proc"),
    ("sysfs", "/sys", "sysfs"),
    ("devtmpfs", "/dev", "devtmpfs"),
    ("configfs", "/sys/kernel/config", "configfs"),
];

/// Be PID 1 until the drives are there, then `/init`.
///
/// # Errors
/// When they cannot be made; the caller ends, and the kernel panics.
pub fn first() -> Result<()> {
    let mut child =
        Command::new("/rig/drive").arg("--serve").stdout(Stdio::piped()).spawn().context("/rig/drive")?;
    let said = child.stdout.take().context("no pipe")?;
    let mut lines = BufReader::new(said).lines();
    let line = lines.next().transpose()?.unwrap_or_default();
    ensure!(line == READY, "the drives were not plugged in");
    Err(Command::new("/init").exec()).context("/init")
}

/// Plug the drives of the kernel's command line in and serve them without end.
///
/// # Errors
/// When the kernel refuses.
pub fn serve() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("a mount namespace")?;
    for (source, target, kind) in &MOUNTS[..3] {
        mount_one(source, target, kind)?;
    }
    load_modules()?;
    let (source, target, kind) = MOUNTS[3];
    mount_one(source, target, kind)?;
    let line = fs::read_to_string("/proc/cmdline").context("/proc/cmdline")?;
    let words = line.split_whitespace().filter_map(|word| word.strip_prefix("drive="));
    let specs = words.map(Spec::parse).collect::<Result<Vec<_>>>()?;
    let is_own = line.split_whitespace().any(|word| word == OWN);
    let memories = if is_own { own_memories(specs.len()) } else { memories() };
    let mut memories = memories?.into_iter();
    let kept = Arc::new(memories.next().context("nothing for the memory of the drives")?);
    let mut servers = Vec::new();
    for (index, spec) in specs.into_iter().enumerate() {
        let name = spec.serial.clone();
        let content = memories.next().with_context(|| format!("nothing for the content of {name}"))?;
        let medium = Shared { size: content.len(), map: Arc::new(content), start: 0 };
        let kept = Shared { map: Arc::clone(&kept), start: index * PAGE, size: PAGE };
        let drive = Drive::new(spec, Box::new(medium), Box::new(kept), Box::new(Real::default()));
        let backend = Backend::new(drive, index).with_context(|| name.clone())?;
        let link = backend.link();
        servers.push(std::thread::spawn(move || backend.serve()));
        link.plug_in().with_context(|| name)?;
    }
    let mut pipe = std::io::stdout();
    writeln!(pipe, "{READY}")?;
    pipe.flush()?;
    for server in servers {
        server.join().map_err(|_| anyhow::anyhow!("a drive died"))??;
    }
    Ok(())
}

fn mount_one(source: &str, target: &str, kind: &str) -> Result<()> {
    fs::create_dir_all(target).with_context(|| target.to_owned())?;
    mount(Some(source), target, Some(kind), MsFlags::empty(), None::<&str>)
        .with_context(|| format!("mounting {target}"))
}

fn load_modules() -> Result<()> {
    let order = fs::read_to_string(ORDER).context(ORDER)?;
    for name in order.lines() {
        let path = Path::new(MODULES).join(name);
        let file = File::open(&path).with_context(|| path.display().to_string())?;
        match finit_module(file, c"", ModuleInitFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(error) => return Err(error).with_context(|| format!("loading {}", path.display())),
        }
    }
    Ok(())
}

/// Files of the ramdisk: the memory of so many drives, then a content for each that is not all the same.
fn own_memories(drives: usize) -> Result<Vec<Map>> {
    let make = |name: String, length: usize| -> Result<Map> {
        let path = Path::new(MODULES).with_file_name(name);
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.with_context(|| path.display().to_string())?;
        file.set_len(length as u64)?;
        Ok(Map::new(&file, length)?)
    };
    let mut memories = vec![make("kept".to_owned(), drives.max(1) * PAGE)?];
    let content: Vec<u8> = (0..OWN_CONTENT).map(|at| (at % 251).to_le_bytes()[0]).collect();
    for drive in 0..drives {
        let memory = make(format!("content{drive}"), OWN_CONTENT)?;
        memory.write(0, &content);
        memories.push(memory);
    }
    Ok(memories)
}

/// The memories that QEMU shares, in the order of the bus.
fn memories() -> Result<Vec<Map>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir("/sys/bus/pci/devices").context("the PCI bus")? {
        let path = entry?.path();
        let is = |file: &str, value: &str| {
            fs::read_to_string(path.join(file)).is_ok_and(|text| text.trim() == value)
        };
        if is("vendor", IVSHMEM[0]) && is("device", IVSHMEM[1]) {
            fs::write(path.join("enable"), "1").with_context(|| format!("enabling {}", path.display()))?;
            found.push(path.join("resource2"));
        }
    }
    found.sort();
    let open = |path: &PathBuf| -> Result<Map> {
        let file = File::options().read(true).write(true).open(path)?;
        let length = usize::try_from(file.metadata()?.len())?;
        Ok(Map::new(&file, length)?)
    };
    found.iter().map(|path| open(path).with_context(|| path.display().to_string())).collect()
}
