//! Which mutants are tried: all of some files, and a sample of others, drawn by a seed.

use std::collections::BTreeMap;

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
    /// Its crate.
    pub package: String,
    /// What kind of change it is.
    pub genre: String,
    /// What is put in the place of what is there.
    pub replacement: String,
    span: Span,
    function: Option<Function>,
    /// The name without line and column, which change with every edit above; ` (2)` for the second of a name.
    #[serde(skip)]
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Span {
    start: Position,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Function {
    return_type: String,
}

impl Mutant {
    /// Its line, from 1.
    pub fn line(&self) -> usize {
        self.span.start.line
    }

    /// Its column, from 1.
    pub fn column(&self) -> usize {
        self.span.start.column
    }

    /// Whether its function returns `impl` of a trait, of which there can be one type only.
    pub fn returns_some_impl(&self) -> bool {
        self.function.as_ref().is_some_and(|function| function.return_type.contains("impl "))
    }

    /// The module of its file: `method::`; of a crate's root nothing.
    pub fn module(&self) -> String {
        let file = self.file.split_once("/src/").map_or("", |(_, file)| file);
        let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
        if module == "lib" { String::new() } else { format!("{}::", module.replace('/', "::")) }
    }

    fn without_place(&self) -> String {
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
    let mut all: Vec<Mutant> = serde_json::from_str(json).context("the list of cargo mutants")?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for mutant in &mut all {
        mutant.key = mutant.without_place();
        let times = seen.entry(mutant.key.clone()).or_default();
        *times += 1;
        if *times > 1 {
            mutant.key.push_str(&format!(" ({times})"));
        }
    }
    Ok(all)
}

/// All mutants of the one, and so many of the other: first the one, each in the order of the list.
pub fn choose(all: &[Mutant], seed: u64) -> Result<Vec<Mutant>> {
    let is_in = |mutant: &Mutant, places: &[&str]| places.iter().any(|place| mutant.file.starts_with(place));
    for place in WHOLE {
        ensure!(all.iter().any(|mutant| is_in(mutant, &[place])), "there is no mutant in {place}");
    }
    let is_whole = |mutant: &Mutant| is_in(mutant, &WHOLE);
    let may_be_drawn =
        |mutant: &&Mutant| !is_whole(mutant) && is_in(mutant, &SAMPLED) && !is_in(mutant, &NOT_SAMPLED);
    // A hash of seed and name is a fair draw that does not depend on the order of the list.
    let rank = |mutant: &Mutant| Sha256::digest(format!("{seed} {}", mutant.key)).to_vec();
    let mut drawn: Vec<&Mutant> = all.iter().filter(may_be_drawn).collect();
    ensure!(drawn.len() >= SAMPLE, "only {} mutants may be drawn, and {SAMPLE} are wanted", drawn.len());
    drawn.sort_by_cached_key(|mutant| rank(mutant));
    drawn.truncate(SAMPLE);
    let whole = all.iter().filter(|mutant| is_whole(mutant));
    Ok(whole.chain(all.iter().filter(|mutant| drawn.contains(mutant))).cloned().collect())
}

#[cfg(test)]
impl Mutant {
    /// One of a test.
    pub fn at(file: &str, line: usize, column: usize, genre: &str, replacement: &str) -> Self {
        let name = format!("{file}:{line}:{column}: {genre} {replacement}");
        let (file, genre, replacement) = (file.to_owned(), genre.to_owned(), replacement.to_owned());
        let span = Span { start: Position { line, column } };
        Self {
            key: name.clone(),
            name,
            file,
            package: "a".to_owned(),
            genre,
            replacement,
            span,
            function: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(file: &str, line: usize) -> Mutant {
        Mutant::at(file, line, 5, "FnValue", "Ok(true)")
    }

    #[test]
    fn a_mutant_has_a_name_without_its_place_and_a_pattern_for_itself() {
        let one = |line| {
            format!(
                r#"{{"name": "a/src/b.rs:{line}:5: replace a -> Result<bool> with Ok(true)", "file": "a/src/b.rs",
                "package": "a", "genre": "FnValue", "replacement": "Ok(true)",
                "function": {{"return_type": "-> Result<bool>"}}, "span": {{"start": {{"line": {line}, "column": 5}}}}}}"#
            )
        };
        let [first, second] = &parse(&format!("[{}, {}]", one(7), one(9))).unwrap()[..] else {
            panic!("two")
        };
        assert_eq!(first.key, "a/src/b.rs: replace a -> Result<bool> with Ok(true)");
        assert_eq!(second.key, format!("{} (2)", first.key));
        assert_eq!((first.line(), first.column(), first.returns_some_impl()), (7, 5, false));
        assert_eq!(first.pattern(), r"^a/src/b\.rs:7:5: replace a -> Result<bool> with Ok\(true\)$");
        let module = |file| mutant(file, 1).module();
        assert_eq!(
            [module("a/src/lib.rs"), module("a/src/b/mod.rs"), module("a/src/b/c.rs")],
            ["", "b::", "b::c::"]
        );
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
