//! The commands of a section of a page of the book, as they stand there.

use anyhow::{Result, ensure};

/// Those of all blocks of `sh`, one after the other. A command ends with its line, unless a backslash ends that.
///
/// # Errors
/// When the page has no such section, or the section no command.
pub fn commands(page: &str, heading: &str) -> Result<Vec<String>> {
    let mut commands: Vec<String> = Vec::new();
    let (mut is_here, mut is_block, mut goes_on) = (false, false, false);
    for line in page.lines() {
        match line {
            _ if !is_block && line.starts_with("## ") => is_here = line.trim_start_matches("## ") == heading,
            "```sh" => is_block = true,
            "```" => is_block = false,
            _ if !(is_here && is_block) => {}
            _ => {
                match commands.last_mut().filter(|_| goes_on) {
                    Some(begun) => begun.push_str(&format!("\n{line}")),
                    None => commands.push(line.to_owned()),
                }
                goes_on = line.ends_with('\\');
            }
        }
    }
    ensure!(!commands.is_empty(), "no section {heading:?} with a command in it");
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_blocks_of_shell_in_the_section() {
        let page = "## A\n```sh\nno\n```\n## B\ntext\n```sh\none\ntwo \\\n  more &\n```\n```toml\n[x]\n```\n```sh\n## three\n```\n## C\n```sh\nno\n```\n";
        assert_eq!(commands(page, "B").unwrap(), ["one", "two \\\n  more &", "## three"]);
        assert!(commands(page, "D").is_err());
    }
}
