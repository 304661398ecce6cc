//! How many sentences may be open: the number at the head of the table, which only falls.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use fs_err as fs;

use super::table;
use crate::sh;

/// The page that shows users how many are open.
const README: &str = "README.md";

/// The number at the head of the table.
pub fn read(root: &Path) -> Result<usize> {
    let text = fs::read_to_string(root.join(table::FILE))?;
    table::ceiling(&text).with_context(|| format!("{} has no line \"{}N.\"", table::FILE, table::CEILING))
}

/// What is wrong with the number of open sentences, with the number at the head, and with the README.
pub fn check(root: &Path, open: usize) -> Result<Vec<String>> {
    let readme = fs::read_to_string(root.join(README))?;
    Ok(judge(open, read(root)?, lowest_before(root)?, &readme))
}

fn judge(open: usize, ceiling: usize, before: Option<usize>, readme: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if open > ceiling {
        wrong.push(format!("{open} sentences are open, and the head of {} allows {ceiling}", table::FILE));
    }
    if let Some(before) = before.filter(|before| ceiling > *before) {
        wrong.push(format!("the head of {} allows {ceiling}; it allowed {before} before", table::FILE));
    }
    let line = match open {
        1 => "1 sentence is open".to_owned(),
        _ => format!("{open} sentences are open"),
    };
    if !readme.contains(&line) {
        wrong.push(format!("{README} does not say {line:?}"));
    }
    wrong
}

/// The smallest number that a commit had there; `None` where there is no history.
fn lowest_before(root: &Path) -> Result<Option<usize>> {
    let git = || {
        let mut git = Command::new("git");
        git.arg("-C").arg(root);
        git
    };
    if !sh::succeeds(git().args(["rev-parse", "--verify", "HEAD"])) {
        return Ok(None);
    }
    let pattern = format!("-G^{}", table::CEILING);
    let commits = sh::output(git().args(["log", "--format=%H", &pattern, "--", table::FILE]))?;
    let at = |commit: &str| {
        let text = sh::output(git().arg("show").arg(format!("{commit}:{}", table::FILE)))?;
        Ok(table::ceiling(&text))
    };
    let numbers: Vec<Option<usize>> = commits.lines().map(at).collect::<Result<_>>()?;
    Ok(numbers.into_iter().flatten().min())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_only_falls_and_the_readme_shows_how_many_are_open() {
        let readme = "text. 3 sentences are open there.";
        assert!(judge(3, 3, None, readme).is_empty() && judge(3, 4, Some(4), readme).is_empty());
        for (open, ceiling, before, word) in [
            (3, 2, None, "allows 2"),
            (3, 5, Some(4), "it allowed 4 before"),
            (2, 3, None, "does not say \"2 sentences are open\""),
        ] {
            let wrong = judge(open, ceiling, before, readme);
            assert!(wrong.len() == 1 && wrong[0].contains(word), "{wrong:?}");
        }
    }

    #[test]
    fn the_history_of_this_repository_is_read() {
        let root = sh::root();
        let now = read(&root).unwrap();
        assert!(lowest_before(&root).unwrap().is_none_or(|before| now <= before));
    }
}
