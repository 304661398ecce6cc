//! Circles: files of a crate that use each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use super::uses::Uses;

/// Files each of which reaches each other one, and what they use of each other.
#[derive(Debug, PartialEq)]
pub struct Circle {
    /// The uses within the circle; each of its files is a key.
    pub uses: Uses,
}

/// The circles among the files of a crate, the largest first.
pub fn find(uses: &Uses) -> Vec<Circle> {
    let mut circles: Vec<Circle> = components(uses)
        .into_iter()
        .filter(|files| files.len() > 1)
        .map(|files| Circle { uses: within(uses, &files) })
        .collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.uses.len()));
    circles
}

/// The uses between the files of a set.
fn within(uses: &Uses, files: &BTreeSet<&str>) -> Uses {
    let mut inner = Uses::new();
    for (from, others) in uses.iter().filter(|(from, _)| files.contains(from.as_str())) {
        for (to, names) in others.iter().filter(|(to, _)| files.contains(to.as_str())) {
            inner.entry(from.clone()).or_default().insert(to.clone(), names.clone());
        }
    }
    inner
}

/// The strongly connected components (Tarjan's algorithm).
fn components(uses: &Uses) -> Vec<BTreeSet<&str>> {
    let mut walk = Walk::new(uses);
    for file in uses.keys() {
        if !walk.index.contains_key(file.as_str()) {
            walk.visit(file);
        }
    }
    walk.found
}

struct Walk<'a> {
    uses: &'a Uses,
    /// In which order files were met, and the earliest file that each reaches.
    index: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<BTreeSet<&'a str>>,
}

impl<'a> Walk<'a> {
    fn new(uses: &'a Uses) -> Self {
        Self { uses, index: BTreeMap::new(), low: BTreeMap::new(), stack: Vec::new(), found: Vec::new() }
    }

    fn visit(&mut self, file: &'a str) {
        let index = self.index.len();
        self.index.insert(file, index);
        self.stack.push(file);
        let mut low = index;
        for other in self.uses.get(file).into_iter().flat_map(BTreeMap::keys) {
            if !self.index.contains_key(other.as_str()) {
                self.visit(other);
                low = low.min(self.low[other.as_str()]);
            } else if self.stack.contains(&other.as_str()) {
                low = low.min(self.index[other.as_str()]);
            }
        }
        self.low.insert(file, low);
        if low == index {
            let at = self.stack.iter().position(|other| *other == file).unwrap_or(0);
            self.found.push(self.stack.split_off(at).into_iter().collect());
        }
    }
}

/// Names that, moved to files which use nothing of the circle, dissolve it: each with the file that defines it.
///
/// A proposal: names that many files use and whose files are few are taken first, until no circle is left. A name
/// that itself uses the circle cannot be moved alone; that is for a reader to see.
pub fn cuts(circle: &Circle) -> Vec<(String, BTreeSet<String>)> {
    let mut uses = circle.uses.clone();
    let mut cuts = Vec::new();
    while let Some(left) = find(&uses).into_iter().next() {
        uses = left.uses.clone();
        let Some((from, to)) = cheapest(&left) else { break };
        let names = uses.get_mut(&from).and_then(|others| others.remove(&to)).unwrap_or_default();
        cuts.push((format!("{from} → {to}"), names));
        // Smaller circles beside this one are kept in what is left.
        let rest = find(&uses);
        uses = rest.into_iter().fold(Uses::new(), |mut all, circle| {
            all.extend(circle.uses);
            all
        });
    }
    cuts
}

/// The use whose removal leaves the smallest circle, for the names that it costs.
fn cheapest(circle: &Circle) -> Option<(String, String)> {
    let mut best: Option<(usize, usize, (String, String))> = None;
    for (from, others) in &circle.uses {
        for (to, names) in others {
            let mut uses = circle.uses.clone();
            if let Some(others) = uses.get_mut(from) {
                others.remove(to);
            }
            let left = find(&uses).iter().map(|circle| circle.uses.len()).max().unwrap_or(0);
            let cost = left + names.len();
            if best.as_ref().is_none_or(|(known, count, _)| (cost, names.len()) < (*known, *count)) {
                best = Some((cost, names.len(), (from.clone(), to.clone())));
            }
        }
    }
    best.map(|(_, _, edge)| edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(edges: &[(&str, &str)]) -> Uses {
        let mut uses = Uses::new();
        for (from, to) in edges {
            uses.entry((*from).into()).or_default().entry((*to).into()).or_default().insert("x".into());
        }
        uses
    }

    fn files(edges: &[(&str, &str)]) -> Vec<Vec<String>> {
        find(&uses(edges)).into_iter().map(|circle| circle.uses.into_keys().collect()).collect()
    }

    #[test]
    fn a_line_and_a_diamond_are_no_circles() {
        assert!(files(&[("a", "b"), ("b", "c"), ("a", "c"), ("d", "c"), ("a", "d")]).is_empty());
    }

    #[test]
    fn two_and_more_files_that_reach_each_other_are_circles() {
        let found = files(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "e"), ("e", "c"), ("a", "c"), ("e", "f")]);
        assert_eq!(found, [vec!["c", "d", "e"], vec!["a", "b"]]);
    }

    #[test]
    fn a_cut_dissolves_every_circle() {
        let circle = find(&uses(&[("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")])).remove(0);
        let cuts: Vec<_> = cuts(&circle).into_iter().map(|(edge, _)| edge).collect();
        assert_eq!(cuts, ["a → b"]);
    }
}
