//! `cargo xtask terms`: words of our own in the names of the product, and the glossary that lists them.
//!
//! The words of public types, traits and modules, of SQL tables and of their columns are in `xtask/words/accepted.txt`
//! (English, or of the field) or in the section "Our own terms" of `docs/glossary.md`, which has at most [`MOST`].

mod glossary;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use crate::args::Args;
use crate::{findings, tracked};
use names::Name;

/// Where the accepted words stand, separated by space; `#` begins a comment.
const ACCEPTED: &str = "xtask/words/accepted.txt";

/// The page that lists our own terms.
const GLOSSARY: &str = "docs/glossary.md";

/// The most terms of our own that the product may have.
const MOST: usize = 15;

/// `cargo xtask terms [--list] [--root DIR]`
pub fn run(mut args: Args) -> Result<()> {
    let list = args.flag("--list");
    let root = args.root()?;
    args.finish()?;
    let names = read(&root)?;
    if list {
        for (word, places) in by_word(&names) {
            println!("{word}: {}", shown(&places));
        }
        return Ok(());
    }
    let accepted = fs::read_to_string(root.join(ACCEPTED))?;
    let terms = glossary::own_terms(&fs::read_to_string(root.join(GLOSSARY))?);
    findings::none(&judge(&names, &accepted_words(&accepted), terms.as_deref()), "terms of our own")?;
    println!("terms: {} names, {} terms of our own", names.len(), terms.map_or(0, |terms| terms.len()));
    Ok(())
}

/// The names of all product crates.
fn read(root: &Path) -> Result<Vec<Name>> {
    let mut names = Vec::new();
    for (path, text) in tracked::product_source(root)? {
        names.extend(names::of_rust(&path, &text)?);
    }
    for (path, text) in tracked::texts(root, |path| path.ends_with(".sql") && path.contains("/migrations/"))?
    {
        names.extend(names::of_sql(&path, &text));
    }
    Ok(names)
}

/// Each word with the names that have it.
fn by_word(names: &[Name]) -> BTreeMap<String, Vec<&Name>> {
    let mut words = BTreeMap::<String, Vec<&Name>>::new();
    for name in names {
        for word in crate::words::split(&name.name) {
            words.entry(word.to_ascii_lowercase()).or_default().push(name);
        }
    }
    words
}

/// The first names of a word, and how many there are.
fn shown(names: &[&Name]) -> String {
    let mut first: Vec<_> =
        names.iter().take(3).map(|name| format!("{} ({})", name.name, name.path)).collect();
    if names.len() > first.len() {
        first.push(format!("{} more", names.len() - first.len()));
    }
    first.join(", ")
}

fn accepted_words(text: &str) -> BTreeSet<&str> {
    text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace).collect()
}

/// True for an accepted word and for its plural.
fn is_accepted(word: &str, accepted: &BTreeSet<&str>) -> bool {
    let ending = |from: &str, to: &str| word.strip_suffix(from).map(|stem| format!("{stem}{to}"));
    let singular = [ending("s", ""), ending("es", ""), ending("ies", "y")];
    accepted.contains(word) || singular.iter().flatten().any(|word| accepted.contains(word.as_str()))
}

/// Words that are neither accepted nor terms; a missing list of terms; too many terms.
fn judge(names: &[Name], accepted: &BTreeSet<&str>, terms: Option<&[String]>) -> Vec<String> {
    let listed = terms.unwrap_or_default().iter().flat_map(|term| crate::words::text_words(term));
    let listed: Vec<String> = listed.map(str::to_ascii_lowercase).collect();
    let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let unknown = by_word(names)
        .into_iter()
        .filter(|(word, _)| !is_accepted(word, accepted) && !is_accepted(word, &listed));
    let mut findings: Vec<String> = unknown
        .map(|(word, names)| {
            format!(
                "{word:?} is in neither {ACCEPTED} nor {GLOSSARY} ({}): use a standard term; add the word to the \
                 former if every engineer of the field knows it, to the latter if it is our own",
                shown(&names)
            )
        })
        .collect();
    match terms {
        None => findings.push(format!("{GLOSSARY} has no section \"{}\" with a table", glossary::HEADING)),
        Some(terms) if terms.len() > MOST => findings.push(format!(
            "{GLOSSARY} has {} terms of our own, at most {MOST} may be: {}",
            terms.len(),
            terms.join(", ")
        )),
        Some(_) => {}
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first word of each finding.
    fn judged(names: &[&str], terms: Option<&[&str]>) -> Vec<String> {
        let names: Vec<Name> =
            names.iter().map(|name| Name { path: "a.rs".into(), name: (*name).into() }).collect();
        let terms: Option<Vec<String>> =
            terms.map(|terms| terms.iter().map(|term| (*term).to_owned()).collect());
        let accepted = accepted_words("node erase # ours\nentry disk\n");
        let findings = judge(&names, &accepted, terms.as_deref());
        findings.iter().map(|finding| finding.split(' ').next().unwrap().replace('"', "")).collect()
    }

    #[test]
    fn a_new_coinage_is_found_and_a_known_word_is_not() {
        assert_eq!(judged(&["NodeErase", "DiskEntries", "disks"], Some(&[])), Vec::<String>::new());
        assert_eq!(judged(&["NodeGlorp", "Nodeling"], Some(&[])), ["glorp", "nodeling"]);
    }

    #[test]
    fn a_term_of_the_glossary_is_known() {
        assert!(judged(&["Bell", "BellRinger"], Some(&["bell", "bell ringer"])).is_empty());
        assert_eq!(judged(&["Bell"], Some(&["lease"])), ["bell"]);
    }

    #[test]
    fn a_sixteenth_term_and_a_missing_section_are_found() {
        let terms = ["x"; 16];
        assert!(judged(&[], Some(&terms[..15])).is_empty());
        assert_eq!(judged(&[], Some(&terms)), ["docs/glossary.md"]);
        assert_eq!(judged(&[], None), ["docs/glossary.md"]);
    }

    #[test]
    fn accepted_words_are_in_lower_case_and_stand_once() {
        let text = fs::read_to_string(crate::sh::root().join(ACCEPTED)).unwrap();
        let all: Vec<&str> =
            text.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace).collect();
        let twice: Vec<_> =
            all.iter().filter(|word| all.iter().filter(|other| other == word).count() > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert!(all.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}
