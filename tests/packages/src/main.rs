//! What `cargo xtask package` makes, installed, upgraded and removed in a fresh Debian root.
//!
//! ```text
//!   xtask: a Debian root as a tar archive, packages of two versions and of one with an older database
//!     │
//!     ▼
//!   namespaces.rs ─► room.rs: the root, entered by chroot ─► installing.rs, image.rs, new_user.rs: the scenarios
//!                                      ▲                                                │
//!        anneal-fleet: simulated nodes ┘ nodes.rs: their state, their history           ▼
//!                                                 and their journal      user.rs: commands of docs/packages.md (documented.rs),
//!                                                                        transcript.rs: what was typed and seen
//! ```
//!
//! systemd does not run there: `systemctl` starts the controller as its unit says. One line each: `PASS name` or `FAIL name`,
//! then the reason. Exit code 1 when any failed.

mod documented;
mod image;
mod installing;
mod namespaces;
mod new_user;
mod nodes;
mod room;
mod same_bytes;
mod transcript;
mod user;

use anyhow::{Context, Result};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Install, upgrade and remove packages. Needs root.
#[derive(Debug, Parser)]
struct Options {
    /// What was packed first.
    #[arg(long)]
    first: PathBuf,
    /// The same, packed once more.
    #[arg(long)]
    again: PathBuf,
    /// The next version.
    #[arg(long)]
    next: PathBuf,
    /// A version that knows an older database only.
    #[arg(long)]
    older: PathBuf,
    /// A Debian root, as a tar archive.
    #[arg(long)]
    debian: PathBuf,
    /// Directory with anneal-fleet.
    #[arg(long)]
    bin_dir: PathBuf,
    /// Only what has this in its name.
    #[arg(long, default_value = "")]
    filter: String,
}

/// A scenario: its name, and what it does with a new directory of its own.
type Scenario = (&'static str, fn(&Options, &Path) -> Result<()>);

const SCENARIOS: [Scenario; 4] = [
    ("same_bytes", same_bytes::twice_from_the_same_programs),
    ("installing", installing::from_the_first_version_to_purge),
    ("image", image::of_the_registry),
    ("new_user", new_user::from_the_packages_to_a_certificate),
];

fn main() -> ExitCode {
    let done = namespaces::enter().and_then(|()| run(&Options::parse()));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("packages: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool> {
    let (mut passed, mut failed) = (0, 0);
    for (name, scenario) in SCENARIOS.iter().filter(|(name, _)| name.contains(&options.filter)) {
        let begun = Instant::now();
        let dir = tempfile::tempdir_in(parent(&options.first)?)?;
        let outcome = scenario(options, dir.path());
        let word = if outcome.is_ok() { "PASS" } else { "FAIL" };
        println!("{word} {name} ({:.1} s)", begun.elapsed().as_secs_f64());
        match outcome {
            Ok(()) => passed += 1,
            Err(error) => {
                println!("     {error:#}");
                contract::process::print_tails(&dir.path().join("root/var/log"));
                failed += 1;
            }
        }
    }
    println!("packages: {passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

fn parent(dir: &Path) -> Result<&Path> {
    dir.parent().with_context(|| format!("{} has no directory above it", dir.display()))
}

/// The one file of a directory whose name begins and ends like this.
fn file(dir: &Path, begin: &str, end: &str) -> Result<PathBuf> {
    let entries = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(begin) && name.ends_with(end) {
            found.push(path);
        }
    }
    match <[PathBuf; 1]>::try_from(found) {
        Ok([path]) => Ok(path),
        Err(found) => anyhow::bail!("{begin}…{end} in {}: {found:?}", dir.display()),
    }
}
