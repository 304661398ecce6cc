//! Which mutants are tried: all of some files, and a sample of others, drawn by a seed.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::{NOT_SAMPLED, SAMPLE, SAMPLED, WHOLE};

/// A change that cargo-mutants can make.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Mutant {
    /// `agent/block/src/guard.rs:12:5: replace holds -> bool with true`
    pub name: String,
    /// Its file.
    pub file: String,
}

impl Mutant {
    /// The name without line and column, which change with every edit above.
    pub fn without_place(&self) -> String {
        let rest = self.name.strip_prefix(&self.file).unwrap_or(&self.name);
        let what = rest.split_once(": ").map_or(rest, |(_, what)| what);
        format!("{}: {what}", self.file)
    }

    /// A regular expression that matches this name alone.
    pub fn pattern(&self) -> String {
        let mut pattern = String::from("^");
        for letter in self.name.chars() {
            // No others: `\<` would be the beginning of a word.
            if r"\.+*?()|[]{}^$".contains(letter) {
                pattern.push('\\');
            }
            pattern.push(letter);
        }
        pattern + "$"
    }
}

/// The mutants of `cargo mutants --list --json`.
pub fn parse(json: &str) -> Result<Vec<Mutant>> {
    serde_json::from_str(json).context("the list of cargo mutants")
}

/// All mutants of the one, and so many of the other, in the order of the list.
pub fn choose(all: &[Mutant], seed: u64) -> Result<Vec<Mutant>> {
    let is_in = |mutant: &Mutant, places: &[&str]| places.iter().any(|place| mutant.file.starts_with(place));
    for place in WHOLE {
        ensure!(all.iter().any(|mutant| is_in(mutant, &[place])), "there is no mutant in {place}");
    }
    let is_whole = |mutant: &Mutant| is_in(mutant, &WHOLE);
    let may_be_drawn =
        |mutant: &&Mutant| !is_whole(mutant) && is_in(mutant, &SAMPLED) && !is_in(mutant, &NOT_SAMPLED);
    // A hash of seed and name is a fair draw that does not depend on the order of the list.
    let rank = |mutant: &Mutant| Sha256::digest(format!("{seed} {}", mutant.name)).to_vec();
    let mut drawn: Vec<&Mutant> = all.iter().filter(may_be_drawn).collect();
    ensure!(drawn.len() >= SAMPLE, "only {} mutants may be drawn, and {SAMPLE} are wanted", drawn.len());
    drawn.sort_by_cached_key(|mutant| rank(mutant));
    drawn.truncate(SAMPLE);
    Ok(all.iter().filter(|mutant| is_whole(mutant) || drawn.contains(mutant)).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(file: &str, line: usize) -> Mutant {
        let name = format!("{file}:{line}:5: replace a -> Result<bool> with Ok(true)");
        Mutant { name, file: file.to_owned() }
    }

    #[test]
    fn a_mutant_has_a_name_without_its_place_and_a_pattern_for_itself() {
        let mutant = mutant("a/b.rs", 7);
        assert_eq!(mutant.without_place(), "a/b.rs: replace a -> Result<bool> with Ok(true)");
        let pattern = r"^a/b\.rs:7:5: replace a -> Result<bool> with Ok\(true\)$";
        assert_eq!(mutant.pattern(), pattern);
        let list = r#"[{"name": "x", "file": "y", "genre": "FnValue"}]"#;
        assert_eq!(parse(list).unwrap(), [Mutant { name: "x".into(), file: "y".into() }]);
    }

    #[test]
    fn some_files_are_tried_whole_and_of_others_a_seed_draws() {
        let whole = ["agent/block/src/method/mod.rs", "agent/block/src/plan/mod.rs"];
        let whole = WHOLE.iter().filter(|place| place.ends_with(".rs")).chain(&whole);
        let mut all: Vec<Mutant> = whole.map(|file| mutant(file, 1)).collect();
        let wholes = all.len();
        all.extend((0..400).map(|line| mutant("controller/model/src/plan.rs", line)));
        all.push(mutant("agent/block/src/sys/mod.rs", 1));
        all.push(mutant("controller/api/src/lib.rs", 1));
        let chosen = choose(&all, 1).unwrap();
        assert_eq!(chosen.len(), wholes + SAMPLE);
        assert!(chosen.starts_with(&all[..wholes]));
        assert!(!chosen.contains(&all[all.len() - 2]) && !chosen.contains(&all[all.len() - 1]));
        assert_eq!(choose(&all, 1).unwrap(), chosen);
        assert_ne!(choose(&all, 2).unwrap(), chosen);
        let error = choose(&all[1..], 1).unwrap_err().to_string();
        assert!(error.contains("no mutant in agent/block/src/guard.rs"), "{error}");
        assert!(choose(&all[..100], 1).unwrap_err().to_string().contains("may be drawn"));
    }
}
