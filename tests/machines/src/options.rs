//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

const USAGE: &str = "usage: machines [--bin-dir DIR] [--image DIR] [--filter NAME] [--list] [--jobs N] [--keep] [--times N] \
     [--seed N] [--table run|long|boots|deployments|boot-times] [--again]";

/// What is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The scenarios of `cargo xtask test`.
    Run,
    /// The scenarios that only `cargo xtask soak --part lab` has time for.
    Long,
    /// The ways to boot that only `cargo xtask soak --part boot` tries.
    Boots,
    /// The table of deployments of `cargo xtask soak --part deploy`.
    Deployments,
    /// The measurement of `cargo xtask bench boot`.
    BootTimes,
}

impl std::str::FromStr for Table {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        Ok(match name {
            "run" => Self::Run,
            "long" => Self::Long,
            "boots" => Self::Boots,
            "deployments" => Self::Deployments,
            "boot-times" => Self::BootTimes,
            _ => bail!("there is no table {name:?}"),
        })
    }
}

/// What was asked for.
#[derive(Debug)]
pub struct Options {
    /// Where the programs under test are; without it, next to this program.
    pub bin_dir: Option<PathBuf>,
    /// Where `vmlinuz` and `initramfs` are; without it, `image/out` of the repository.
    pub image: Option<PathBuf>,
    /// Only scenarios with this in their name.
    pub filter: Option<String>,
    /// Which scenarios.
    pub table: Table,
    /// Print the names and run nothing.
    pub list: bool,
    /// How many run at once, at least 1.
    pub jobs: usize,
    /// Keep the files of scenarios that passed too.
    pub keep: bool,
    /// How often the `…_mid_erase` scenarios kill and cut, at least 1; with the table of deployments, how many of them are killed,
    /// and cut; with the table of boot times, how often each is measured.
    pub times: u64,
    /// What failed next to others runs again alone.
    pub again: bool,
    /// Names their moments; without it, others each time.
    pub seed: Option<u64>,
}

impl Options {
    /// Reads the arguments after the program's name.
    ///
    /// # Errors
    /// An argument that is not known or lacks its value.
    pub fn parse(words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            bin_dir: None,
            image: None,
            filter: None,
            table: Table::Run,
            list: false,
            // Each mostly waits: for firmware, a limit, a disk.
            jobs: 4,
            keep: false,
            again: false,
            times: 2,
            seed: None,
        };
        let mut words = words;
        while let Some(word) = words.next() {
            let (name, given) = match word.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (word, None),
            };
            let mut value =
                || given.clone().or_else(|| words.next()).with_context(|| format!("{name} needs a value"));
            match name.as_str() {
                "--bin-dir" => options.bin_dir = Some(absolute(&value()?)?),
                "--image" => options.image = Some(absolute(&value()?)?),
                "--filter" => options.filter = Some(value()?),
                "--jobs" => options.jobs = value()?.parse().context("--jobs")?,
                "--times" => options.times = value()?.parse().context("--times")?,
                "--seed" => options.seed = Some(value()?.parse().context("--seed")?),
                "--table" => options.table = value()?.parse().context("--table")?,
                "--list" => options.list = true,
                "--keep" => options.keep = true,
                "--again" => options.again = true,
                _ => bail!("unknown argument {name:?}\n{USAGE}"),
            }
        }
        ensure!(options.jobs > 0, "--jobs must be at least 1");
        ensure!(options.times > 0, "--times must be at least 1");
        Ok(options)
    }
}

fn absolute(dir: &str) -> Result<PathBuf> {
    std::fs::canonicalize(dir).with_context(|| format!("no directory {dir}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options> {
        Options::parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn both_spellings_of_a_value() {
        let options = parse(&["--filter", "power", "--jobs=3", "--image=/", "--table=long"]).unwrap();
        assert_eq!((options.filter.as_deref(), options.jobs, options.table), (Some("power"), 3, Table::Long));
        assert_eq!(options.image, Some("/".into()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, name) in [
            (&["--jobs"][..], "--jobs"),
            (&["--jobs", "0"], "--jobs"),
            (&["--times", "0"], "--times"),
            (&["--fliter", "x"], "--fliter"),
            (&["--table", "boats"], "--table"),
        ] {
            assert!(parse(words).unwrap_err().to_string().contains(name));
        }
    }
}
