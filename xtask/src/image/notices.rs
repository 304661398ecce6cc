//! Licence notices of what an image holds, written next to it.

use std::collections::BTreeSet;

use anyhow::Result;
use fs_err as fs;

use super::kernel::Kernel;
use crate::sh;

/// The fixed part (`image/NOTICES`), the crates linked into the agent, and the kernel's own notice.
pub fn text(kernel: &Kernel) -> Result<String> {
    let fixed_file = sh::root().join("image/NOTICES");
    let fixed = fs::read_to_string(&fixed_file)?;
    let copyright_file = kernel.tree.join("usr/share/doc").join(&kernel.package).join("copyright");
    let copyright = fs::read_to_string(&copyright_file)?;
    Ok(format!(
        "{fixed}\nKernel: {} {}\n\nRust crates of the agent:\n{}\n\n{}\n{copyright}",
        kernel.package,
        kernel.version,
        crates()?,
        "=".repeat(80),
    ))
}

/// `name version: licence`, one a line: everything `anneal-agent` is built from.
fn crates() -> Result<String> {
    let tree = sh::output(sh::cargo().args([
        "tree",
        "--package",
        "agentd",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}: {l}",
    ]));
    let Ok(tree) = tree else {
        // A trial image without an agent crate in the workspace.
        return Ok("  (none: the image was built with --agent)".to_owned());
    };
    let lines: BTreeSet<String> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.trim().is_empty())
        // A path dependency shows its directory, which is no business of the reader.
        .map(|line| match (line.find(" (/"), line.find("): ")) {
            (Some(open), Some(close)) => format!("{}{}", &line[..open], &line[close + 1..]),
            _ => line.to_owned(),
        })
        .collect();
    Ok(lines.into_iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
}
