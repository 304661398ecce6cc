//! The transcript of the quick start: the commands of `docs/getting-started.md`, run by the real programs.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use fs_err as fs;

use super::generated::TRANSCRIPT;
use super::pages::blocks;
use crate::sh;

const PAGE: &str = "docs/getting-started.md";
/// The state of the controller: `docs/getting-started.toml`.
const STATE: &str = "target/getting-started";
/// The command whose output ends the picture.
const LAST: &str = "target/release/anneal node history n1";

/// Runs the commands and writes what they print.
///
/// # Errors
/// A command that fails; a page without the expected blocks.
pub fn run() -> Result<()> {
    let root = sh::root();
    let page = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let blocks = blocks(&page, "sh");
    let [start, make, ..] = blocks[..] else { anyhow::bail!("{PAGE} has no two blocks of commands") };
    let (build, serve) = start.trim().split_once('\n').context("not two commands")?;
    ensure!(!root.join(STATE).exists(), "{STATE} exists: a controller of the quick start is running, or was");
    sh::run(Command::new("sh").args(["-c", build]).current_dir(&root))?;
    let mut controller = serve_until_ready(serve)?;
    let recorded = record(make.lines().chain([LAST]));
    // Killed, not stopped: nothing of it is kept.
    controller.kill()?;
    controller.wait()?;
    fs::remove_dir_all(root.join(STATE))?;
    fs::write(root.join(TRANSCRIPT), recorded?).context(TRANSCRIPT)?;
    println!("book: wrote {TRANSCRIPT}");
    Ok(())
}

fn serve_until_ready(command: &str) -> Result<Child> {
    let mut child = Command::new("sh")
        .args(["-c", &format!("exec {command}")])
        .current_dir(sh::root())
        .stderr(Stdio::piped())
        .spawn()?;
    let log = BufReader::new(child.stderr.take().context("no pipe")?);
    let mut lines = log.lines();
    let ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("is ready"));
    // What it logs later is read as well, so that the pipe never fills.
    std::thread::spawn(move || lines.for_each(drop));
    ensure!(ready, "the controller ended before it was ready");
    Ok(child)
}

fn record<'a>(commands: impl Iterator<Item = &'a str>) -> Result<String> {
    let mut transcript = String::new();
    for command in commands {
        // A terminal shows standard error as well.
        let shell = format!("exec 2>&1\n{command}");
        let output = sh::output(Command::new("sh").args(["-c", &shell]).current_dir(sh::root()))?;
        // Writing to a string cannot fail.
        let _ = writeln!(transcript, "$ {command}\n{}", output.trim_end());
    }
    Ok(transcript)
}
