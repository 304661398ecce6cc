//! A ramdisk in which something happens before the agent starts: the same image with tools of this machine, and a script
//! as `/init` that ends by becoming the agent.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use lab::binaries::image_dir;

/// Begins every script: the kernel's file systems, output on the console, busybox for everything.
const HEAD: &str = "\
#!/bin/busybox sh
export PATH=/bin:/usr/sbin:/usr/bin:/sbin DM_DISABLE_UDEV=1
mkdir -p /proc /sys /dev /run /etc /srv
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mkdir -p /run/lock /run/mdadm /run/lvm /run/cryptsetup
exec >/dev/ttyS0 2>&1
";

/// What of busybox the scripts use.
const APPLETS: [&str; 13] = [
    "sh", "mkdir", "mount", "modprobe", "cat", "dd", "grep", "echo", "ls", "mkswap", "swapon", "sleep",
    "basename",
];

/// Makes a directory with `vmlinuz` and `initramfs` below `dir`.
///
/// # Errors
/// When a tool is missing.
pub fn image(dir: &Path, tools: &[&str], files: &[(&str, &[u8])], script: &str) -> Result<PathBuf> {
    image_with(dir, tools, files, script, true)
}

/// As [`image`]; if it does not `run` the script, that is only in the archive, and the agent is `/init`.
///
/// # Errors
/// When a tool is missing.
pub fn image_with(
    dir: &Path,
    tools: &[&str],
    files: &[(&str, &[u8])],
    script: &str,
    run: bool,
) -> Result<PathBuf> {
    let (image, root) = (dir.join("image"), dir.join("layers"));
    fs::create_dir_all(root.join("bin"))?;
    fs::create_dir_all(&image)?;
    for tool in ["busybox"].iter().chain(tools) {
        let found = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].iter().map(|dir| Path::new(dir).join(tool));
        let file = found.into_iter().find(|path| path.is_file());
        for file in with_libraries(&file.with_context(|| format!("{tool} is not installed"))?)? {
            copy(&file, &root)?;
        }
    }
    fs::copy("/usr/bin/busybox", root.join("bin/busybox"))?;
    for applet in APPLETS {
        std::os::unix::fs::symlink("/bin/busybox", root.join("bin").join(applet))?;
    }
    for (name, content) in files {
        fs::write(root.join(name), content)?;
    }
    let plain = fs::read(image_dir()?.join("initramfs"))?;
    let agent = root.join("agent");
    fs::write(&agent, init_of(&image_dir()?.join("initramfs"))?)?;
    let init = root.join(if run { "init" } else { "not-init" });
    fs::write(&init, format!("{HEAD}{script}\nexec /agent\n"))?;
    for file in [&agent, &init] {
        fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let packed = output(
        Command::new("sh").arg("-c").arg("find . | cpio --quiet -o -H newc | zstd -q -1").current_dir(&root),
    )?;
    fs::write(image.join("initramfs"), [plain, packed].concat())?;
    fs::copy(image_dir()?.join("vmlinuz"), image.join("vmlinuz"))?;
    Ok(image)
}

/// A program and the libraries it is linked to, the loader included.
fn with_libraries(file: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut all = BTreeSet::from([file.to_owned()]);
    let listed = Command::new("ldd").arg(file).output().context("cannot start ldd")?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    all.extend(text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from));
    Ok(all)
}

fn copy(file: &Path, root: &Path) -> Result<()> {
    let to = root.join(file.strip_prefix("/")?);
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(file, &to).with_context(|| format!("cannot copy {}", file.display()))?;
    Ok(())
}

/// The last file named `init` of an initramfs: a header of 110 digits before the name gives its length.
fn init_of(initramfs: &Path) -> Result<Vec<u8>> {
    let all = output(Command::new("zstd").arg("-dcq").arg(initramfs))?;
    let name = b"init\0";
    let at = (110..all.len())
        .rev()
        .find(|&at| all[at..].starts_with(name) && all[at - 110..].starts_with(b"070701"))
        .context("no init in the initramfs")?;
    let digits = std::str::from_utf8(&all[at - 110 + 54..at - 110 + 62])?;
    let length = usize::from_str_radix(digits, 16)?;
    let start = (at + name.len()).next_multiple_of(4);
    // Archives begin at a multiple of four in the stream.
    Ok(all.get(start..start + length).context("the init of the initramfs is cut off")?.to_vec())
}

fn output(command: &mut Command) -> Result<Vec<u8>> {
    let out =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(out.status.success(), "{command:?}: {}", out.status);
    Ok(out.stdout)
}
