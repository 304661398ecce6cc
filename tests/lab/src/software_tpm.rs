//! The TPM of a node: Debian's `swtpm`, which QEMU speaks to. Its state lies in the node's directory, so it is the same TPM from one
//! power-on to the next, and ends with its QEMU.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::node::NodeSpec;
use crate::process::{Daemon, leashed};

/// Start it, for one power-on.
///
/// # Errors
/// When `swtpm` is not installed, or the directory cannot be written.
pub fn start(spec: &NodeSpec) -> Result<Daemon> {
    let state = spec.dir.join("tpm");
    std::fs::create_dir_all(&state).with_context(|| format!("cannot create {}", state.display()))?;
    let socket = socket(spec);
    if socket.exists() {
        std::fs::remove_file(&socket).with_context(|| format!("cannot remove {}", socket.display()))?;
    }
    let mut command = leashed("swtpm");
    command.args(["socket", "--tpm2", "--terminate", "--tpmstate"]).arg(format!("dir={}", state.display()));
    command.arg("--ctrl").arg(format!("type=unixio,path={}", socket.display()));
    Daemon::start("swtpm", command, &spec.dir.join("swtpm.log"))
}

/// Where QEMU reaches it.
pub fn socket(spec: &NodeSpec) -> PathBuf {
    spec.dir.join("tpm.sock")
}

/// QEMU's options for it.
pub fn qemu_args(spec: &NodeSpec) -> [String; 6] {
    [
        "-chardev".to_owned(),
        format!("socket,id=tpm0,path={}", socket(spec).display()),
        "-tpmdev".to_owned(),
        "emulator,id=tpm0,chardev=tpm0".to_owned(),
        "-device".to_owned(),
        "tpm-crb,tpmdev=tpm0".to_owned(),
    ]
}
