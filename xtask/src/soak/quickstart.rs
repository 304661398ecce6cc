//! The quick start of docs/getting-started.md, word by word, as an ordinary user of a fresh Debian: the root file system
//! is debootstrap's, the toolchain and the crates are this machine's, and there is no network but loopback.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use crate::book::blocks;
use crate::{deps, sh};

const PAGE: &str = "docs/getting-started.md";
const SUITE: &str = "bookworm";
/// What the page asks for, beyond Rust.
const PACKAGES: &str = "gcc,libc6-dev,make";
const USER: (&str, u32) = ("user", 1000);

pub fn run() -> Result<()> {
    ensure!(deps::is_root(), "a root file system is made and entered: run this as root");
    deps::ensure(&["debootstrap util-linux iproute2"])?;
    let base = sh::target_dir().join("quickstart");
    let room = base.join("root");
    if base.exists() {
        fs::remove_dir_all(&base).with_context(|| base.display().to_string())?;
    }
    fs::create_dir_all(&room)?;
    sh::run(
        Command::new("debootstrap")
            .args(["--variant=minbase", &format!("--include={PACKAGES}"), SUITE])
            .arg(&room),
    )?;
    let page = fs::read_to_string(sh::root().join(PAGE)).context(PAGE)?;
    let blocks = blocks(&page, "sh");
    ensure!(blocks.len() >= 2, "{PAGE} has no two blocks of commands");
    furnish(&room, blocks[0], blocks[1])?;
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-ec"]);
    inside.arg(ENTER).arg("sh").arg(&room).arg(toolchain()?).arg(home(".cargo", "CARGO_HOME")?);
    sh::run(&mut inside)?;
    let transcript = fs::read_to_string(room.join("home/user/transcript"))?;
    print!("{transcript}");
    ensure!(transcript.lines().any(|line| line == "n1: available"), "the node did not become available");
    println!("quickstart: the node became available");
    fs::remove_dir_all(&base).with_context(|| base.display().to_string())
}

/// The clone and the two terminals, each a script of the user's.
fn furnish(room: &Path, start: &str, make: &str) -> Result<()> {
    let (name, id) = USER;
    let home = room.join("home").join(name);
    fs::create_dir_all(home.join(".cargo"))?;
    let line = format!("{name}:x:{id}:{id}::/home/{name}:/bin/sh\n");
    let passwd = room.join("etc/passwd");
    fs::write(&passwd, fs::read_to_string(&passwd)? + &line)?;
    sh::run(
        Command::new("git")
            .args(["clone", "--quiet", "--no-hardlinks"])
            .arg(sh::root())
            .arg(home.join("anneal")),
    )?;
    fs::write(home.join("terminal-1"), terminal(start))?;
    fs::write(home.join("terminal-2"), terminal(make))?;
    fs::write(home.join("both"), BOTH)?;
    sh::run(Command::new("chown").args(["-R", &format!("{id}:{id}")]).arg(&home))
}

/// The commands of a block, each shown before it runs.
fn terminal(block: &str) -> String {
    let mut script = String::from("set -e\ncd ~/anneal\n");
    for command in block.lines() {
        script.push_str(&format!("cat <<'COMMAND'\n$ {command}\nCOMMAND\n{command}\n"));
    }
    script
}

/// Terminal 1 until its controller is ready, then terminal 2; both are in the transcript.
const BOTH: &str = "set -e
cd
sh terminal-1 >>transcript 2>&1 &
until grep -q 'is ready' transcript; do
    kill -0 $! || { cat transcript; exit 1; }
    sleep 1
done
sh terminal-2 >>transcript 2>&1 || { cat transcript; exit 1; }
kill $!
";

/// Arguments: the root, the toolchain, the machine's CARGO_HOME. Downloaded crates and the index are each under an overlay,
/// which cargo writes to. The user unpacks the crates anew: some archives have files that only their owner may read.
const ENTER: &str = r#"
ip link set lo up
mount --make-rprivate /
mkdir -p "$1/opt/rust" "$1/overlay"
mount --bind -o ro "$2" "$1/opt/rust"
mount -t tmpfs tmpfs "$1/overlay"
registry="$1/home/user/.cargo/registry"
for part in cache index; do
    mkdir -p "$1/overlay/$part/upper" "$1/overlay/$part/work" "$registry/$part"
    chown 1000:1000 "$1/overlay/$part/upper" "$registry" "$registry/$part"
    mount -t overlay overlay \
        -o "lowerdir=$3/registry/$part,upperdir=$1/overlay/$part/upper,workdir=$1/overlay/$part/work" "$registry/$part"
done
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
chroot --userspec=1000:1000 "$1" /usr/bin/env -i HOME=/home/user USER=user \
    PATH=/opt/rust/bin:/usr/bin:/bin CARGO_NET_OFFLINE=true sh /home/user/both
"#;

/// The toolchain that runs this task.
fn toolchain() -> Result<PathBuf> {
    let root = sh::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(sh::root()))?;
    Ok(root.trim().into())
}

fn home(directory: &str, variable: &str) -> Result<PathBuf> {
    if let Some(set) = std::env::var_os(variable) {
        return Ok(set.into());
    }
    Ok(Path::new(&std::env::var_os("HOME").context("no HOME")?).join(directory))
}
