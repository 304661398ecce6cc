//! `cargo xtask package`: what operators install, into `target/packages/`.
//!
//! ```text
//! cargo: anneal-controller, anneal ─┐                  ┌─► anneal-controller_…_amd64.deb, anneal_…_amd64.deb
//! xtask image: kernel, initramfs ───┼─► trees of files ┼─► anneal-….tar.gz
//! apt: ipmitool, its libraries ─────┘                  └─► anneal-….oci.tar
//! cargo tree, Cargo.lock ────────────────────────────────► anneal-….cdx.json (SBOM)      all of them ─► SHA256SUMS
//! ```
//!
//! Same inputs, same bytes: entries are in the order of their paths, owned by root, and all times are that of the commit
//! (`SOURCE_DATE_EPOCH`); compressors run on one thread; paths of the building machine are remapped in the programs.

mod base;
mod contents;
mod debian;
mod elf;
mod oci;
mod sbom;
mod tree;
pub mod trial;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use fs_err as fs;
use serde_json::Value;

use crate::args::Args;
use crate::{deps, image, sh};
use contents::{gzip, ramdisk};
use oci::Layer;
use sbom::Debian;

/// What the programs are compiled for: a target of its own, so that the paths are remapped in nothing else.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Lists all other files with their SHA-256, for `sha256sum --check`.
const SUMS: &str = "SHA256SUMS";

/// How packages are made.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Their version, as Debian writes one.
    pub version: String,
    /// The newest schema of a SQLite database that the controller knows.
    pub schema: u32,
    /// The time of all entries, in seconds since 1970.
    pub epoch: u64,
    /// The programs are those of `target/debug`, and compression is quick.
    pub debug: bool,
    /// For intermediate files; emptied before and removed after.
    pub work: PathBuf,
}

impl Plan {
    /// Of the commit that is checked out.
    pub fn of_checkout(debug: bool) -> Result<Self> {
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => git(&["log", "-1", "--format=%ct"])?,
        };
        let epoch = epoch.parse().with_context(|| format!("SOURCE_DATE_EPOCH {epoch:?}"))?;
        Ok(Self {
            version: version()?,
            schema: schema()?,
            epoch,
            debug,
            work: sh::target_dir().join("package-work"),
        })
    }

    #[cfg(test)]
    fn sample() -> Self {
        Self { version: "1.2.3".into(), schema: 10, epoch: 86_400, debug: true, work: "/nowhere".into() }
    }

    /// Empties the directory of intermediate files.
    fn begin(&self) -> Result<()> {
        if self.work.exists() {
            fs::remove_dir_all(&self.work)?;
        }
        Ok(fs::create_dir_all(&self.work)?)
    }

    fn zstd_level(&self) -> u32 {
        if self.debug { 1 } else { 19 }
    }

    fn gzip_level(&self) -> u32 {
        if self.debug { 1 } else { 9 }
    }

    /// Packs on one thread: several would make the bytes depend on the machine.
    fn zstd(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let plain = self.work.join("plain");
        fs::write(&plain, bytes)?;
        // The slowest, whose window is as large as the input: 0.3 of 40 MB less to pull than level 19.
        let level: &[&str] = if self.debug { &["-1"] } else { &["--ultra", "-22"] };
        let mut pack = Command::new("zstd");
        pack.args(level).args(["--single-thread", "--quiet", "--no-progress", "--stdout"]).arg(&plain);
        let packed = pack.output().context("cannot start zstd")?;
        ensure!(packed.status.success(), "zstd: {}", String::from_utf8_lossy(&packed.stderr));
        fs::remove_file(&plain)?;
        Ok(packed.stdout)
    }
}

/// `cargo xtask package [--debug] [--out DIR]`. With `--debug` the programs are not optimized, and a ramdisk that is there is
/// taken as it is.
pub fn run(mut args: Args) -> Result<()> {
    let debug = args.flag("--debug");
    let out = args.option("--out")?.map_or_else(|| sh::target_dir().join("packages"), PathBuf::from);
    args.finish()?;
    deps::ensure(&[deps::BUILD, deps::IMAGE])?;
    let bins = programs(debug)?;
    if debug {
        some_ramdisk()?
    } else {
        image::build(None, None, false)?
    }
    pack(&Plan::of_checkout(debug)?, &bins, &out)
}

/// Builds the ramdisk if there is none.
fn some_ramdisk() -> Result<()> {
    let out = sh::root().join("image/out");
    if contents::RAMDISK.iter().all(|file| out.join(file).exists()) {
        return Ok(());
    }
    image::build(None, None, false)
}

/// Builds the two programs; returns their directory.
fn programs(debug: bool) -> Result<PathBuf> {
    if debug {
        // Of the whole workspace: with the features of a part, cargo would build again what is built already.
        let words = ["build", "--workspace", "--bin", "anneal", "--bin", "anneal-controller"];
        sh::run(sh::cargo().args(words))?;
        return Ok(sh::target_dir().join("debug"));
    }
    let home = image::cargo_home()?;
    let pairs = [(sh::root(), "/anneal"), (home, "/cargo")];
    let flags = |option: &str| {
        let flags = pairs.iter().map(|(from, to)| format!("{option}={}={to}", from.display()));
        flags.collect::<Vec<_>>().join(" ")
    };
    let build = |package: &str, profile: &str| {
        sh::run(
            sh::cargo()
                .args(["build", "--locked", "--target", TARGET, "--profile", profile])
                .args(["--package", package, "--bins"])
                // Messages of panics and of assertions in C have paths of sources in them.
                .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", flags("--remap-path-prefix"))
                // Names of functions are a tenth of the image, and a panic says file and line without them.
                .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
                // Less to pull, for a longer build.
                .env("CARGO_PROFILE_RELEASE_LTO", "fat")
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
                .env("CFLAGS_x86_64_unknown_linux_gnu", flags("-ffile-prefix-map")),
        )
    };
    build("controllerd", "release")?;
    // The profile for small programs: the command line waits for the controller, not for itself.
    build("cli", "ramdisk")?;
    let built = sh::target_dir().join(TARGET);
    let (small, of_release) = (built.join("ramdisk/anneal"), built.join("release/anneal"));
    if of_release.exists() {
        // Not written over: cargo has another name for the same file.
        fs::remove_file(&of_release)?;
    }
    fs::copy(small, of_release)?;
    Ok(sh::target_dir().join(TARGET).join("release"))
}

/// Makes the package of the controller alone.
pub fn pack_controller(plan: &Plan, bins: &Path, out: &Path) -> Result<()> {
    plan.begin()?;
    debian::controller(plan, &contents::controller(bins)?.with(&ramdisk()?), out)?;
    Ok(fs::remove_dir_all(&plan.work)?)
}

/// Makes all packages in `out` of the programs in `bins` and the ramdisk in `image/out`.
pub fn pack(plan: &Plan, bins: &Path, out: &Path) -> Result<()> {
    fs::create_dir_all(out)?;
    plan.begin()?;
    let (controller, ramdisk) = (contents::controller(bins)?, ramdisk()?);
    let command_line = contents::command_line(bins, &plan.work)?;
    let (base, packages) = base::build(&sh::target_dir().join("image"))?;

    let version = &plan.version;
    let with_ramdisk = controller.clone().with(&ramdisk);
    let mut made =
        vec![debian::controller(plan, &with_ramdisk, out)?, debian::command_line(plan, &command_line, out)?];
    let all = with_ramdisk.with(&command_line).below(&format!("anneal-{version}"));
    let tarball = gzip(&all.tar(plan.epoch)?, plan.gzip_level())?;
    let programs = in_image(controller)?.with(&command_line);
    let layers = [
        Layer { about: "Debian: the C library, ipmitool, boot loaders, authorities", tree: &base },
        Layer { about: "the ramdisk", tree: &ramdisk },
        Layer { about: "anneal-controller and anneal", tree: &programs },
    ];
    let image = oci::build(plan, &layers)?;
    let components = sbom::build(plan, &debian_components(packages)?)?;
    for (name, bytes) in [
        (format!("anneal-{version}-x86_64.tar.gz"), tarball),
        (format!("anneal-controller-{version}-amd64.oci.tar"), image),
        (format!("anneal-{version}.cdx.json"), components.into_bytes()),
    ] {
        fs::write(out.join(&name), bytes)?;
        made.push(out.join(name));
    }
    fs::remove_dir_all(&plan.work)?;
    sums(&made, out)
}

/// The controller's tree as it is in the image: its configuration belongs to the user there, who is no member of a group on
/// the machine, and there is no systemd.
fn in_image(controller: tree::Tree) -> Result<tree::Tree> {
    let mut programs = tree::Tree::default();
    for (path, bytes) in controller.files().filter(|(path, _)| !path.contains("/system")) {
        programs.file(path, if path.starts_with("usr/bin/") { 0o755 } else { 0o644 }, bytes);
    }
    Ok(programs)
}

/// Writes [`SUMS`] of these files and prints their sizes.
fn sums(made: &[PathBuf], out: &Path) -> Result<()> {
    let mut lines = Vec::new();
    for path in made {
        let bytes = fs::read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        println!("{:>12} bytes   {name}", bytes.len());
        lines.push(format!("{}  {name}\n", sh::sha256(&bytes)));
    }
    lines.sort_by(|a, b| a[64..].cmp(&b[64..]));
    Ok(fs::write(out.join(SUMS), lines.concat())?)
}

/// What of Debian is given away: the image's packages, the kernel, and what is in the login of rescues.
fn debian_components(packages: Vec<image::package::Package>) -> Result<Vec<Debian>> {
    let from = sh::root().join("image/out");
    let sizes: Value = serde_json::from_str(&fs::read_to_string(from.join("sizes.json"))?)?;
    let kernel = sizes["kernel_package"].as_str().context("kernel_package in sizes.json")?;
    let (name, version) = kernel.split_once(' ').context("the version of the kernel's package")?;
    let mut found = vec![Debian { name: name.to_owned(), version: version.to_owned(), sha256: None }];
    let notices = fs::read_to_string(from.join("NOTICES-rescue"))?;
    for line in notices.lines().filter_map(|line| line.strip_suffix(')')) {
        let mut words = line.split(' ');
        if let (Some(name), Some(version), Some("(sha256"), Some(sha256), None) =
            (words.next(), words.next(), words.next(), words.next(), words.next())
        {
            found.push(component(name, version, sha256));
        }
    }
    ensure!(found.len() > 1, "NOTICES-rescue names no package");
    found.extend(packages.iter().map(|package| component(&package.name, &package.version, &package.sha256)));
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    found.dedup_by(|a, b| (&a.name, &a.version) == (&b.name, &b.version));
    Ok(found)
}

fn component(name: &str, version: &str, sha256: &str) -> Debian {
    Debian { name: name.to_owned(), version: version.to_owned(), sha256: Some(sha256.to_owned()) }
}

/// The version of the workspace; of a commit without the tag of that version, one before it, with date and commit. Later
/// commits have later versions, as far as their dates do.
fn version() -> Result<String> {
    let manifest: toml::Table = fs::read_to_string(sh::root().join("Cargo.toml"))?.parse()?;
    let version =
        manifest["workspace"]["package"]["version"].as_str().context("workspace.package.version")?;
    let tags = git(&["tag", "--points-at", "HEAD"])?;
    if tags.lines().any(|tag| tag == format!("v{version}")) {
        return Ok(version.to_owned());
    }
    let when = git(&["log", "-1", "--date=format-local:%Y%m%d.%H%M%S", "--format=%cd"])?;
    Ok(format!("{version}~git{when}.{}", git(&["rev-parse", "--short=10", "HEAD"])?))
}

/// The number of the last migration of SQLite.
fn schema() -> Result<u32> {
    let dir = sh::root().join("controller/store-sqlite/migrations");
    let mut newest = None;
    for entry in fs::read_dir(&dir)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.get(..4)?.parse().ok());
        newest = newest.max(number);
    }
    newest.with_context(|| format!("{} has no migration", dir.display()))
}

fn git(words: &[&str]) -> Result<String> {
    let said = sh::output(Command::new("git").args(words).current_dir(sh::root()).env("TZ", "UTC"))?;
    Ok(said.trim().to_owned())
}

/// A time in seconds since 1970 as `2026-11-26T01:36:38Z`.
fn rfc3339(epoch: u64) -> Result<String> {
    let date = format!("--date=@{epoch}");
    let said = sh::output(Command::new("date").args(["--utc", &date, "+%Y-%m-%dT%H:%M:%SZ"]))?;
    Ok(said.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The judge is dpkg.
    #[test]
    fn the_version_is_one_of_debian_and_before_the_release() {
        let plan = Plan::of_checkout(true).unwrap();
        let compare = |a: &str, how: &str, b: &str| {
            sh::succeeds(Command::new("dpkg").args(["--compare-versions", a, how, b]))
        };
        assert!(sh::succeeds(Command::new("dpkg").args(["--validate-version", &plan.version])), "{plan:?}");
        let release = plan.version.split('~').next().unwrap();
        assert!(compare(&plan.version, "le", release), "{plan:?}");
        assert!(compare("0.1.0~git20261126.013638.d4a5baccec", "lt", "0.1.0~git20261126.013639.0000000000"));
    }

    #[test]
    fn the_schema_is_that_of_the_last_migration_that_the_store_knows() {
        let code = fs::read_to_string(sh::root().join("controller/store-sqlite/src/migrate.rs")).unwrap();
        let schema = schema().unwrap();
        assert!(code.contains(&format!("migrations/{schema:04}_")), "{schema}");
        assert!(!code.contains(&format!("migrations/{:04}_", schema + 1)), "{schema}");
    }

    #[test]
    fn times_are_written_as_rfc_3339_says() {
        assert_eq!(rfc3339(1_795_657_398).unwrap(), "2026-11-26T01:43:18Z");
    }
}
