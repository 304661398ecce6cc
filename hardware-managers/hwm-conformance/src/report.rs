//! The results of an examination.

use crate::Rule;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A rule that was broken, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The observation.
    pub seen: String,
}

impl Violation {
    pub(crate) fn new(rule: Rule, seen: impl Into<String>) -> Self {
        Self { rule, seen: seen.into() }
    }
}

/// Which rules hold.
#[derive(Debug, Clone, Default)]
pub struct Report {
    kept: BTreeSet<Rule>,
    broken: BTreeMap<Rule, String>,
    /// The end of the manager's standard output and error in the last run that broke a rule.
    log: String,
}

impl Report {
    /// Rules that were broken, and how.
    pub fn broken(&self) -> impl Iterator<Item = (Rule, &str)> {
        self.broken.iter().map(|(rule, seen)| (*rule, seen.as_str()))
    }

    /// Rules that were seen to hold.
    pub fn kept(&self) -> impl Iterator<Item = Rule> {
        self.kept.iter().copied().filter(|rule| !self.broken.contains_key(rule))
    }

    /// Rules that nothing could be seen of: the manager has no such thing, or something before was broken.
    pub fn unseen(&self) -> impl Iterator<Item = Rule> {
        let seen = |rule: &Rule| self.kept.contains(rule) || self.broken.contains_key(rule);
        Rule::ALL.iter().copied().filter(move |rule| !seen(rule))
    }

    /// Whether no rule was broken.
    pub fn passed(&self) -> bool {
        self.broken.is_empty()
    }

    pub(crate) fn keep(&mut self, rule: Rule) {
        self.kept.insert(rule);
    }

    pub(crate) fn fail(&mut self, violation: Violation, log: String) {
        self.log = log;
        self.broken.entry(violation.rule).or_insert(violation.seen);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in Rule::ALL {
            match (self.broken.get(rule), self.kept.contains(rule)) {
                (Some(seen), _) => writeln!(f, "BROKEN   {rule}: {}\n         {seen}", rule.text())?,
                (None, true) => writeln!(f, "kept     {rule}")?,
                (None, false) => writeln!(f, "not seen {rule}")?,
            }
        }
        if !self.passed() && !self.log.is_empty() {
            writeln!(f, "\nthe manager's log ends with:\n{}", self.log)?;
        }
        let (kept, broken, unseen) = (self.kept().count(), self.broken.len(), self.unseen().count());
        write!(f, "{kept} rules kept, {broken} broken, {unseen} not seen")
    }
}
