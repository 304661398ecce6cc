//! `cargo xtask image`: kernel + initramfs of the ramdisk, into `image/out/`.
//!
//! ```text
//! apt: linux-image-… ──dpkg -x──► vmlinuz ───────────────────────────────► image/out/vmlinuz
//!                         └─► modules of image/modules.txt + what they need ─┐
//! cargo: anneal-agent (static) ───────────────────────────────► /init ──────┴► image/out/initramfs
//! apt: isolinux, syslinux, systemd's stub ────────────────────────────────────► image/out/medium
//!      iPXE of Debian 13, `--ipxe` ───────────────────────────────────────────► image/out/ipxe
//! apt: firmware-…, `--firmware` ─► a piece for each module that asks for it ──► image/out/firmware
//!                          all of it, `--sign` ───► one EFI program ──────────► image/out/anneal.efi
//!                          all of it, `--iso` ──────────────────────────────────► image/out/anneal.iso
//! apt: busybox, dropbear, their libraries ─► image/rescue/login ─────────────► image/out/rescue
//! ```
//!
//! Same inputs, same bytes: the archive writer fixes order, owners, times and inodes, the compressor
//! runs on one thread, the agent is built with its paths remapped. The initramfs is two compressed
//! archives one after the other (the kernel unpacks any number): the large one with the modules changes
//! with the kernel only and is kept under `target/image/`, so that a new agent costs a second.

mod agent;
mod bench;
mod cpio;
mod firmware;
mod iso;
mod kernel;
mod loaders;
mod modules;
mod notices;
pub mod package;
mod rescue;
mod rig;
mod signed;
mod sizes;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::{deps, sh};
pub use agent::cargo_home;
use cpio::Archive;
use iso::ReadyIso;
use signed::Signing;

/// `--agent FILE` takes a ready static binary as `/init`, `--trusted-keys FILE` gives the ramdisk the public keys of which
/// one has to have signed each bundle, `--force` builds everything again, `--rig` also makes what tests put behind the
/// initramfs, `--ipxe` fetches an iPXE that has IPv6. `--sign KEY CERT --obeys PIN` also makes the signed ramdisk; with `--from DIR` it does no more than that.
/// `--firmware PKG…` makes the add-on firmware of these packages, and alone no image; with `--sign` all of it is in the signed ramdisk.
/// `--iso` also makes the ISO for an Ironic's `deploy_iso`; with `--from DIR` it does no more than that.
pub fn run(mut args: Args) -> Result<()> {
    let agent = args.option("--agent")?.map(PathBuf::from);
    let trusted_keys = args.option("--trusted-keys")?.map(PathBuf::from);
    let force = args.flag("--force");
    let rig = args.flag("--rig");
    let ipxe = args.flag("--ipxe");
    let firmware = args.list("--firmware")?;
    let iso = ReadyIso::take(&mut args)?;
    let signing = Signing::take(&mut args)?;
    args.finish()?;
    let out = sh::root().join("image/out");
    let add_on = match &firmware {
        Some(packages) => {
            build_firmware(packages)?;
            firmware::all(&out)?
        }
        None => Vec::new(),
    };
    if let Some(iso) = &iso
        && let Some(from) = &iso.from
    {
        return iso.make(from);
    }
    if let Some(signing) = &signing
        && let Some(from) = &signing.from
    {
        return signing.make(from, &add_on);
    }
    let image = force || rig || ipxe || agent.is_some() || trusted_keys.is_some() || signing.is_some();
    if firmware.is_some() && !image {
        return Ok(());
    }
    build(agent.as_deref(), trusted_keys.as_deref(), force)?;
    if rig {
        build_rig()?;
    }
    if ipxe {
        write_ipxe()?;
    }
    if let Some(iso) = iso {
        iso.make(&out)?;
    }
    signing.map_or(Ok(()), |signing| signing.make(&out, &add_on))
}

/// Builds all that tests boot: the image, `image/out/rig` and `image/out/ipxe`.
pub fn build_for_tests() -> Result<()> {
    build(None, None, false)?;
    build_rig()?;
    write_ipxe()
}

/// Makes `image/out/firmware` of these packages of Debian.
pub fn build_firmware(packages: &[String]) -> Result<()> {
    deps::ensure(&[deps::IMAGE])?;
    let (work, out) = (sh::target_dir().join("image"), sh::root().join("image/out"));
    let _lock = directories(&work, &out)?;
    firmware::build(&work, &out, packages)
}

/// Makes both; one build at a time, until the lock is dropped.
fn directories(work: &Path, out: &Path) -> Result<fs::File> {
    fs::create_dir_all(work)?;
    fs::create_dir_all(out)?;
    let lock = fs::File::create(work.join("lock")).context("cannot make the image's lock")?;
    lock.lock().context("cannot lock the image's directory")?;
    Ok(lock)
}

fn write_ipxe() -> Result<()> {
    loaders::write_ipxe(&sh::target_dir().join("image"), &sh::root().join("image/out"))
}

fn build_rig() -> Result<()> {
    let work = sh::target_dir().join("image");
    let packed = compress(&work, "rig", &rig::archive(&work)?)?;
    write_if_changed(&sh::root().join("image/out/rig"), &packed)
}

/// Makes `vmlinuz` and `bench` in `into`, of this program and what it measures.
pub fn build_bench(program: &Path, into: &Path) -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::IMAGE])?;
    let work = sh::target_dir().join("image");
    for dir in [&work, into] {
        fs::create_dir_all(dir)?;
    }
    let kernel = kernel::fetch(&work)?;
    fs::copy(&kernel.vmlinuz, into.join("vmlinuz")).context("cannot copy the kernel")?;
    write_if_changed(&into.join("bench"), &bench::archive(&work, program)?)
}

/// Builds the image; cheap when nothing changed.
pub fn build(agent: Option<&Path>, trusted_keys: Option<&Path>, force: bool) -> Result<()> {
    deps::ensure(&[deps::BUILD, deps::IMAGE])?;
    let work = sh::target_dir().join("image");
    let out = sh::root().join("image/out");
    let _lock = directories(&work, &out)?;

    let kernel = kernel::fetch(&work)?;
    let list_file = sh::root().join("image/modules.txt");
    let list = fs::read_to_string(&list_file)?;
    let (packed_modules, modules) = pack_modules(&work, &kernel, &list, force)?;

    let agent = match agent {
        Some(path) => path.to_owned(),
        None => agent::build("agentd", "anneal-agent")?,
    };
    let init = fs::read(&agent)?;
    agent::ensure_static(&init, &agent)?;
    let trusted_keys = trusted_keys.map(fs::read).transpose()?;
    let packed_agent = compress(&work, "agent", &init_archive(&init, trusted_keys.as_deref())?)?;

    let rescue = rescue::build(&work)?;
    loaders::write_medium(&work, &out)?;
    let vmlinuz = fs::read(&kernel.vmlinuz)?;
    let initramfs = [&packed_modules[..], &packed_agent].concat();
    write_if_changed(&out.join("vmlinuz"), &vmlinuz)?;
    write_if_changed(&out.join("initramfs"), &initramfs)?;
    write_if_changed(&out.join("rescue"), &rescue.packed)?;
    write_if_changed(&out.join("NOTICES"), notices::text(&kernel)?.as_bytes())?;
    write_if_changed(&out.join("NOTICES-rescue"), rescue.notices.as_bytes())?;
    sizes::report(
        &out.join("sizes.json"),
        &sizes::Sizes {
            kernel: vmlinuz.len(),
            modules: packed_modules.len(),
            agent: packed_agent.len(),
            agent_binary: init.len(),
            module_count: modules.count,
            unpacked: modules.unpacked + init.len(),
            kernel_package: format!("{} {}", kernel.package, kernel.version),
            kernel_sha256: sh::sha256(&vmlinuz),
            initramfs_sha256: sh::sha256(&initramfs),
            rescue: rescue.packed.len(),
            rescue_unpacked: rescue.unpacked,
            rescue_sha256: sh::sha256(&rescue.packed),
        },
    )
}

/// What is known of the archive of modules.
#[derive(Serialize, Deserialize)]
struct Modules {
    count: usize,
    /// Bytes.
    unpacked: usize,
}

/// Packs the modules, or takes the archive of the last run when kernel and list are the same.
fn pack_modules(work: &Path, kernel: &kernel::Kernel, list: &str, force: bool) -> Result<(Vec<u8>, Modules)> {
    let key = sh::sha256(format!("{}\n{list}\n{RECIPE}", kernel.sha256).as_bytes());
    let packed_file = work.join(format!("modules-{}.cpio.zst", &key[..16]));
    let facts_file = packed_file.with_extension("json");
    if !force && let (Ok(packed), Ok(facts)) = (fs::read(&packed_file), fs::read_to_string(&facts_file)) {
        let modules = serde_json::from_str(&facts)
            .with_context(|| format!("{} is damaged; use --force", facts_file.display()))?;
        return Ok((packed, modules));
    }
    println!("packing the modules of {} (once for each kernel)", kernel.version);
    let selection = modules::select(work, kernel, list)?;
    let mut archive = Archive::default();
    selection.add_to(&mut archive)?;
    let archive = archive.finish();
    let packed = compress(work, "modules", &archive)?;
    fs::write(&packed_file, &packed)?;
    let modules = Modules { count: selection.count(), unpacked: archive.len() };
    fs::write(&facts_file, serde_json::to_string(&modules)?)?;
    Ok((packed, modules))
}

/// Changes whenever this code makes other archives of the same inputs.
const RECIPE: &str = "1 zstd-19";

/// The archive with the agent as `/init`, the directories it mounts over, and the keys that it trusts, if any.
fn init_archive(init: &[u8], trusted_keys: Option<&[u8]>) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for dir in ["dev", "etc", "proc", "run", "sys", "tmp", "var"] {
        archive.dir(dir)?;
    }
    // The kernel opens it for /init before any devtmpfs is mounted; without it an early panic is mute.
    archive.char_device("dev/console", 5, 1)?;
    archive.file("init", 0o755, init)?;
    if let Some(keys) = trusted_keys {
        archive.dir("etc/anneal")?;
        archive.file("etc/anneal/trusted-keys", 0o644, keys)?;
    }
    Ok(archive.finish())
}

/// Compresses with zstd, on one thread: several would make the bytes depend on the machine.
///
/// Zstandard and not xz, which is a tenth smaller: the node unpacks it four times faster.
fn compress(work: &Path, name: &str, data: &[u8]) -> Result<Vec<u8>> {
    let plain = work.join(format!("{name}.{}.cpio", std::process::id()));
    fs::write(&plain, data)?;
    let packed = Command::new("zstd")
        .args(["-19", "--single-thread", "--quiet", "--stdout", "--no-progress"])
        .arg(&plain)
        .output()
        .context("cannot start zstd")?;
    fs::remove_file(&plain)?;
    anyhow::ensure!(
        packed.status.success(),
        "zstd ended with {}: {}",
        packed.status,
        String::from_utf8_lossy(&packed.stderr)
    );
    Ok(packed.stdout)
}

/// Writes a file, by way of a neighbour so that it is never half there, unless it has these bytes.
fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let part = path.with_extension("part");
    fs::write(&part, bytes)?;
    Ok(fs::rename(&part, path)?)
}
