//! The provision states and their transitions, from the tables that the tests of `model` compare with the code.

use std::fmt::Write;

use anyhow::{Context, Result};

/// Ironic's transitions, and those that Anneal has in addition (with a fourth column, the sentence that asks for it).
pub const TABLES: [&str; 2] =
    ["controller/model/tests/provision_table.txt", "controller/model/tests/provision_differences.txt"];

/// One line of a table: `state | event | next state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub from: String,
    pub event: String,
    pub to: String,
}

/// What a state means for a user; it chooses the colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Stable,
    Working,
    Waiting,
    Failed,
}

impl Kind {
    pub fn of(state: &str) -> Self {
        let ends = |ending: &str| state.ends_with(ending);
        if ends("failed") || state == "error" {
            Self::Failed
        } else if ends("wait") || ends("hold") || state == "wait call-back" {
            Self::Waiting
        } else if ends("ing") {
            Self::Working
        } else {
            Self::Stable
        }
    }
}

/// All transitions of a table; lines that begin with `#` are comments.
///
/// # Errors
/// A line with fewer than three columns.
pub fn parse(text: &str) -> Result<Vec<Transition>> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let mut columns = line.split(" | ").map(str::to_owned);
            let mut column = || columns.next().with_context(|| format!("not three columns: {line}"));
            Ok(Transition { from: column()?, event: column()?, to: column()? })
        })
        .collect()
}

/// Every transition as a table in Markdown, one row per state, in the order of the tables.
pub fn markdown(transitions: &[Transition]) -> String {
    let mut order: Vec<&str> = Vec::new();
    for transition in transitions {
        if !order.contains(&transition.from.as_str()) {
            order.push(&transition.from);
        }
    }
    let mut text = String::from("| state | event → next state |\n|---|---|\n");
    for state in order {
        let of_state = transitions.iter().filter(|transition| transition.from == state);
        let moves: Vec<String> = of_state.map(|to| format!("`{}` → {}", to.event, to.to)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| **{state}** | {} |", moves.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_without_comments_and_without_the_sentence() {
        let read = parse("# a | b | c\nclean failed | clean | cleaning | CS: a sentence\n").unwrap();
        let wanted = Transition { from: "clean failed".into(), event: "clean".into(), to: "cleaning".into() };
        assert_eq!(read, [wanted]);
        assert!(parse("enroll | manage").is_err());
    }

    #[test]
    fn states_have_kinds() {
        for (state, kind) in [
            ("enroll", Kind::Stable),
            ("cleaning", Kind::Working),
            ("wait call-back", Kind::Waiting),
            ("clean hold", Kind::Waiting),
            ("service failed", Kind::Failed),
        ] {
            assert_eq!(Kind::of(state), kind, "{state}");
        }
    }

    #[test]
    fn the_markdown_table_has_one_row_per_state() {
        let all = parse("a | x | b\nb | y | a\na | z | a\n").unwrap();
        assert_eq!(
            markdown(&all),
            "| state | event → next state |\n|---|---|\n| **a** | `x` → b, `z` → a |\n| **b** | `y` → a |\n"
        );
    }
}
