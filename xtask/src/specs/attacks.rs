//! The attacks of `docs/threat-model.md`: each number of the security review has a row with its tests.
//!
//! ```text
//! | 7: what is attacked | what holds it | crate::path::name, machines:NAME; open: what is missing |
//! ```

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// The page, from the root of the repository.
pub const FILE: &str = "docs/threat-model.md";

/// Findings of the review: 1 to this.
const FINDINGS: usize = 19;

/// Above the table.
const HEADING: &str = "\n## Attacks\n";

/// What is said of one attack.
#[derive(Debug, PartialEq)]
pub struct Attack {
    /// Tests that show what holds it.
    pub tests: Vec<String>,
    /// What is not held yet.
    pub open: Option<String>,
}

/// The rows of the page, by their numbers.
pub fn parse(page: &str) -> Result<BTreeMap<usize, Attack>> {
    let (_, section) = page.split_once(HEADING).with_context(|| format!("{FILE} has no section Attacks"))?;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut attacks = BTreeMap::new();
    for line in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        ensure!(cells.len() == 3, "{FILE}: not three cells: {line}");
        let number = cells[0].split_once(": ").and_then(|(number, _)| number.parse().ok());
        let number = number.with_context(|| format!("{FILE}: no number of a finding: {line}"))?;
        let (tests, open) = match cells[2].split_once("open: ") {
            Some((tests, open)) => (tests.trim_end_matches("; "), Some(open.to_owned())),
            None => (cells[2], None),
        };
        let tests = tests.split(',').map(str::trim).filter(|name| !name.is_empty());
        let attack = Attack { tests: tests.map(str::to_owned).collect(), open };
        ensure!(!attack.tests.is_empty() || attack.open.is_some(), "{FILE}: attack {number} has no tests");
        ensure!(attacks.insert(number, attack).is_none(), "{FILE}: attack {number} is there twice");
    }
    for number in 1..=FINDINGS {
        ensure!(attacks.contains_key(&number), "{FILE}: attack {number} has no row");
    }
    Ok(attacks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[String]) -> String {
        format!(
            "# T\n\n## Attacks\n\n| attack | what | tests |\n|---|---|---|\n{}\n\n## More\n",
            rows.join("\n")
        )
    }

    #[test]
    fn each_finding_has_a_row() {
        let mut rows: Vec<_> = (1..=FINDINGS).map(|n| format!("| {n}: x | y | a::b, machines:c |")).collect();
        rows[1] = "| 2: x | y | a::b; open: the rest, too |".to_owned();
        rows[2] = "| 3: x | y | open: all |".to_owned();
        let attacks = parse(&page(&rows)).unwrap();
        assert_eq!((attacks.len(), &attacks[&1].tests[1]), (FINDINGS, &"machines:c".to_owned()));
        assert_eq!(attacks[&2], Attack { tests: vec!["a::b".into()], open: Some("the rest, too".into()) });
        assert_eq!(attacks[&3], Attack { tests: vec![], open: Some("all".into()) });
        for (row, with, word) in [
            (4, "| 4: x | y |", "not three cells"),
            (5, "| five: x | y | a |", "no number"),
            (6, "| 6: x | y |  |", "attack 6 has no tests"),
            (7, "| 6: x | y | a |", "attack 6 is there twice"),
            (8, "", "attack 8 has no row"),
        ] {
            let mut rows = rows.clone();
            rows[row - 1] = with.to_owned();
            let error = parse(&page(&rows)).unwrap_err().to_string();
            assert!(error.contains(word), "{with}: {error}");
        }
    }
}
