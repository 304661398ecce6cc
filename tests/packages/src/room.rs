//! A Debian root, entered by chroot.

use anyhow::{Context, Result, ensure};
use contract::process::check;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SYSTEMCTL: &str = include_str!("systemctl");

/// The root, with `/proc` in it as long as this value lives. Devices are those of the archive: the machine's own are not in
/// it, where they would be removed with the root.
pub struct Room {
    /// Where it is.
    pub root: PathBuf,
}

impl Drop for Room {
    fn drop(&mut self) {
        // Lazily: a process of the root may still be at its end.
        if let Err(error) = check(Command::new("umount").arg("--lazy").arg(self.root.join("proc"))) {
            eprintln!("{error:#}");
        }
    }
}

impl Room {
    /// A root from an archive, in `dir`.
    ///
    /// # Errors
    /// When it cannot be unpacked, or nothing can be mounted.
    pub fn unpack(archive: &Path, dir: &Path) -> Result<Self> {
        let root = dir.join("root");
        fs::create_dir(&root)?;
        let mut unpack = Command::new("tar");
        check(unpack.args(["--extract", "--numeric-owner", "--file"]).arg(archive).arg("-C").arg(&root))?;
        Self::furnish(root)
    }

    /// A root that is there.
    ///
    /// # Errors
    /// When nothing can be mounted.
    pub fn furnish(root: PathBuf) -> Result<Self> {
        let proc = root.join("proc");
        fs::create_dir_all(&proc)?;
        check(Command::new("mount").args(["-t", "proc", "proc"]).arg(&proc))?;
        Ok(Self { root })
    }

    /// From here on `systemctl` controls the controller, and `/run/systemd/system` says that systemd runs.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn with_systemctl(&self) -> Result<()> {
        let program = self.root.join("usr/bin/systemctl");
        fs::write(&program, SYSTEMCTL)?;
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        Ok(fs::create_dir_all(self.root.join("run/systemd/system"))?)
    }

    /// A command in the root, as root, with an environment of its own.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.root).args(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
        command.args(["DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"]).args(words);
        command
    }

    /// Runs a command to its end; what it printed, without the last line's end.
    ///
    /// # Errors
    /// When it fails.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        let output = check(&mut self.command(words)).with_context(|| words.join(" "))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// Runs a command that is to fail; what it printed.
    ///
    /// # Errors
    /// When it succeeds.
    pub fn refused(&self, words: &[&str]) -> Result<String> {
        let Output { status, stdout, stderr } = self.command(words).output()?;
        let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        ensure!(!status.success(), "{} succeeded: {said}", words.join(" "));
        Ok(said)
    }

    /// Installs packages by dpkg; what it printed, errors too.
    ///
    /// # Errors
    /// When one is not installed.
    pub fn install(&self, packages: &[PathBuf]) -> Result<String> {
        let inside = self.bring(packages)?;
        let words: Vec<&str> = ["dpkg", "-i"].into_iter().chain(inside.iter().map(String::as_str)).collect();
        let Output { status, stdout, stderr } = self.command(&words).output()?;
        let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        ensure!(status.success(), "{}: {said}", words.join(" "));
        Ok(said)
    }

    /// Installs packages by dpkg, which is to refuse; what it printed.
    ///
    /// # Errors
    /// When it does not refuse.
    pub fn install_refused(&self, packages: &[PathBuf]) -> Result<String> {
        let inside = self.bring(packages)?;
        let words: Vec<&str> = ["dpkg", "-i"].into_iter().chain(inside.iter().map(String::as_str)).collect();
        self.refused(&words)
    }

    /// Puts files into the root; their paths in it.
    fn bring(&self, files: &[PathBuf]) -> Result<Vec<String>> {
        let mut inside = Vec::new();
        for file in files {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            fs::copy(file, self.root.join("tmp").join(&*name)).with_context(|| file.display().to_string())?;
            inside.push(format!("/tmp/{name}"));
        }
        Ok(inside)
    }

    /// Whether something is at this path, relative to the root.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }

    /// Text of a file, by its path relative to the root.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| path.to_owned())
    }

    /// `owner:group mode` of a path of the root.
    ///
    /// # Errors
    /// When there is nothing.
    pub fn access(&self, path: &str) -> Result<String> {
        self.run(&["stat", "-c", "%U:%G %a", path])
    }
}
