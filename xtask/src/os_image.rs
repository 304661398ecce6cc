//! `cargo xtask os-image`: a real operating system to deploy, `target/os-image/debian.raw.zst`.
//!
//! `image/os-image/build.sh` makes a Debian with cloud-init from the machine's own suite. It is made again only when one
//! of the scripts changes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use sha2::{Digest, Sha256};

use crate::args::Args;
use crate::{deps, sh};

const SCRIPTS: [&str; 3] = ["build.sh", "before.sh", "after.sh"];

/// `cargo xtask os-image`: builds it and says where it is.
pub fn run(args: Args) -> Result<()> {
    args.finish()?;
    println!("{}", build()?.display());
    Ok(())
}

/// Builds the image, which takes a minute or two; cheap when nothing changed.
pub fn build() -> Result<PathBuf> {
    let Some(prefix) = deps::privilege() else {
        bail!(
            "mmdebstrap makes a root file system: run this as root, or as a user who may use sudo without a password"
        );
    };
    deps::ensure(&[deps::OS_IMAGE])?;
    let source = sh::root().join("image/os-image");
    let target = sh::target_dir().join("os-image");
    fs::create_dir_all(&target)?;
    let lock = fs::File::create(target.join("lock"))?;
    lock.lock().context("cannot lock the directory of the image")?;
    let (made_of, image) = (made_of(&source)?, target.join("debian.raw.zst"));
    let stamp = target.join("made-of");
    if image.exists() && fs::read_to_string(&stamp).is_ok_and(|text| text == made_of) {
        return Ok(image);
    }
    let raw = target.join("debian.raw");
    println!("building {}", image.display());
    // `env` stands for no prefix.
    let mut command = Command::new("env");
    command.args(prefix).arg("bash").arg(source.join("build.sh")).arg(&raw);
    sh::run(&mut command)?;
    sh::run(Command::new("zstd").args(["-q", "-f", "-3"]).arg(&raw).arg("-o").arg(&image))?;
    fs::write(stamp, made_of)?;
    Ok(image)
}

/// The digest of all scripts.
fn made_of(source: &std::path::Path) -> Result<String> {
    let mut digest = Sha256::new();
    for script in SCRIPTS {
        digest.update(fs::read(source.join(script))?);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
