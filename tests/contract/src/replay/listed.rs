//! The deliberate differences: one line each, with why.

use super::compare::Difference;
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The list, and the reasons it names.
const FILES: [&str; 2] = ["differences.tsv", "reasons.tsv"];
/// Set, it lets a replay write down the differences it found; those without a reason are still refused.
const WRITE: &str = "ANNEAL_WRITE_DIFFERENCES";

/// What differs on purpose in one line of a conversation.
type Lines = BTreeMap<(String, usize), Vec<Listed>>;

#[derive(Debug, Clone)]
struct Listed {
    difference: Difference,
    reason: String,
}

/// The list.
#[derive(Debug)]
pub struct List {
    lines: Lines,
}

impl List {
    /// The list that is checked in.
    ///
    /// # Errors
    /// When a line of it is malformed, comes twice, or gives no known reason.
    pub fn read() -> Result<Self> {
        let [differences, reasons] = FILES.map(file);
        let (differences, reasons) = (differences?, reasons?);
        let reasons: BTreeSet<&str> =
            reasons.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
        let mut lines = Lines::new();
        for line in differences.lines().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [conversation, number, at, theirs, ours, reason] = fields[..] else {
                bail!("not six fields: {line}")
            };
            ensure!(writing() || reasons.contains(reason), "no reason {reason:?} for {line}");
            ensure!(at.starts_with('/') && !at.contains('*'), "not a JSON pointer: {line}");
            let difference = Difference {
                at: at.to_owned(),
                theirs: serde_json::from_str(theirs).with_context(|| line.to_owned())?,
                ours: serde_json::from_str(ours).with_context(|| line.to_owned())?,
            };
            let known = lines.entry((conversation.to_owned(), number.parse()?)).or_default();
            ensure!(known.iter().all(|one: &Listed| one.difference.at != at), "twice: {line}");
            known.push(Listed { difference, reason: reason.to_owned() });
        }
        Ok(Self { lines })
    }

    /// Whether these are the differences that are listed for the line.
    pub fn expects(&self, conversation: &str, line: usize, found: &[Difference]) -> bool {
        self.objections(conversation, line, found).is_empty()
    }

    /// Whether it is listed for this line.
    pub fn has(&self, conversation: &str, line: usize, difference: &Difference) -> bool {
        self.of(conversation, line).iter().any(|one| one.difference == *difference)
    }

    /// What is not as listed: found and not listed, or listed and not found.
    pub fn objections(&self, conversation: &str, line: usize, found: &[Difference]) -> Vec<String> {
        let listed = self.of(conversation, line);
        let say = |what: &str, one: &Difference| {
            format!("{conversation} line {line} {}: Ironic {}, we {}: {what}", one.at, one.theirs, one.ours)
        };
        let fresh = found.iter().filter(|found| !self.knows(conversation, line, found));
        let stale = listed.iter().map(|one| &one.difference).filter(|one| !found.contains(one));
        let fresh = fresh.map(|one| say("not on the list", one));
        fresh.chain(stale.map(|one| say("listed, and did not occur", one))).collect()
    }

    /// Whether it is listed for this line; or for an earlier one of the conversation, where the same field had the same
    /// two values: then it is that difference still.
    fn knows(&self, conversation: &str, line: usize, found: &Difference) -> bool {
        let begin = (conversation.to_owned(), 0);
        let earlier = self.lines.range(begin..=(conversation.to_owned(), line));
        earlier.flat_map(|(_, listed)| listed).any(|one| one.difference == *found)
    }

    fn of(&self, conversation: &str, line: usize) -> &[Listed] {
        self.lines.get(&(conversation.to_owned(), line)).map_or(&[], Vec::as_slice)
    }

    /// Writes the list anew, when that was asked for: what was found, with the reasons that stand there now.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, found: &BTreeMap<(String, usize), Vec<Difference>>) -> Result<()> {
        let mut text = "conversation\tline\tat\tIronic\twe\treason\n".to_owned();
        let mut known: Vec<(&str, &Difference)> = Vec::new();
        for ((conversation, line), differences) in found {
            for difference in differences {
                if known.contains(&(conversation, difference)) {
                    continue;
                }
                known.push((conversation, difference));
                let Difference { at, theirs, ours } = difference;
                let listed = self.of(conversation, *line).iter().find(|one| one.difference.at == *at);
                let reason = listed.map_or("", |one| one.reason.as_str());
                text.push_str(&format!("{conversation}\t{line}\t{at}\t{theirs}\t{ours}\t{reason}\n"));
            }
        }
        let path = path(FILES[0]);
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("replay").join(name)
}

/// A file of the replay's.
pub fn file(name: &str) -> Result<String> {
    let path = path(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Whether the list is to be written.
pub fn writing() -> bool {
    std::env::var_os(WRITE).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_cites_a_sentence_or_a_defect() {
        List::read().unwrap();
        let sentences = include_str!("../../../../docs/specs/sentences.tsv");
        let defects = include_str!("../../../../docs/ironic-defects.md");
        let known = |id: &str| {
            sentences.lines().any(|line| line.split('\t').any(|field| field == id))
                || defects.lines().any(|line| line.starts_with(&format!("| {id} |")))
                // The experiments of 05-experiments.md that are about the agent alone have no row there.
                || id == "ED-009"
        };
        let [differences, reasons] = FILES.map(|name| file(name).unwrap());
        for line in reasons.lines().skip(1) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [name, cites, words] = fields[..] else { panic!("not three fields: {line}") };
            assert!(!words.is_empty(), "{line}");
            assert!(cites.split(' ').all(known), "{line}: cites what there is not");
            let used = |entry: &str| entry.rsplit('\t').next() == Some(name);
            assert!(differences.lines().any(used), "{name}: nothing differs for this reason");
        }
    }
}
