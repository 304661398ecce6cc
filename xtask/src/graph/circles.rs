//! Circles: files of a crate that use each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

use super::uses::{Place, Uses};

/// Files each of which reaches each other one.
#[derive(Debug, PartialEq)]
pub struct Circle {
    /// The files.
    pub files: BTreeSet<String>,
    /// What they use of each other: file → file → names.
    pub names: BTreeMap<(String, String), BTreeSet<String>>,
    /// What their items use of each other, within one file as well.
    uses: Uses,
}

/// The circles among the files of a crate, the largest first.
pub fn find(uses: &Uses) -> Vec<Circle> {
    let edges = edges(uses, |(file, _)| file.clone());
    let mut circles: Vec<Circle> =
        components(&edges).into_iter().map(|files| Circle::new(files, uses)).collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    circles
}

impl Circle {
    fn new(files: BTreeSet<String>, uses: &Uses) -> Self {
        let mut names = BTreeMap::<_, BTreeSet<String>>::new();
        let mut inner = Uses::new();
        for (from, all) in uses.iter().filter(|((file, _), _)| files.contains(file)) {
            let all: BTreeSet<Place> = all.iter().filter(|(file, _)| files.contains(file)).cloned().collect();
            for (file, name) in all.iter().filter(|(file, _)| *file != from.0) {
                names.entry((from.0.clone(), file.clone())).or_default().insert(name.clone());
            }
            inner.insert(from.clone(), all);
        }
        Self { files, names, uses: inner }
    }

    /// Items of several files that use each other in a circle: no moving of items dissolves it.
    pub fn knots(&self) -> Vec<BTreeSet<Place>> {
        let mut knots = components(&edges(&self.uses, Clone::clone));
        knots.retain(|items| items.iter().any(|(file, _)| Some(file) != items.first().map(|(file, _)| file)));
        knots
    }

    /// Items that, each moved into a file of its own, dissolve the circle: all but its [`knots`](Self::knots).
    ///
    /// A proposal: the item whose move removes most is taken first.
    pub fn moves(&self) -> Vec<Place> {
        let mut moved: BTreeSet<Place> = BTreeSet::new();
        let mut moves = Vec::new();
        let mut weight = self.weight(&moved);
        let places: BTreeSet<&Place> = self.uses.keys().chain(self.uses.values().flatten()).collect();
        while weight > 0 {
            let best = places
                .iter()
                .filter(|place| !moved.contains(**place))
                .map(|place| {
                    let mut tried = moved.clone();
                    tried.insert((*place).clone());
                    (self.weight(&tried), *place)
                })
                .min();
            let Some((lighter, place)) = best.filter(|(lighter, _)| *lighter < weight) else { break };
            weight = lighter;
            moved.insert(place.clone());
            moves.push(place.clone());
        }
        moves
    }

    /// How many uses are part of a circle when these items have files of their own.
    fn weight(&self, moved: &BTreeSet<Place>) -> usize {
        let edges = edges(&self.uses, |place| match moved.contains(place) {
            true => format!("{}#{}", place.0, place.1),
            false => place.0.clone(),
        });
        components(&edges)
            .iter()
            .map(|nodes| {
                let inner = edges.iter().filter(|(from, _)| nodes.contains(*from));
                inner.flat_map(|(_, others)| others).filter(|other| nodes.contains(*other)).count()
            })
            .sum()
    }
}

/// Which node uses which others, when `node` says what an item belongs to.
fn edges<N: Ord + Clone>(uses: &Uses, node: impl Fn(&Place) -> N) -> BTreeMap<N, BTreeSet<N>> {
    let mut edges = BTreeMap::<N, BTreeSet<N>>::new();
    for (from, all) in uses {
        let from = node(from);
        let others: BTreeSet<N> = all.iter().map(&node).filter(|other| *other != from).collect();
        edges.entry(from).or_default().extend(others);
    }
    edges
}

/// The strongly connected components of more than one node (Tarjan's algorithm).
fn components<N: Ord + Clone>(edges: &BTreeMap<N, BTreeSet<N>>) -> Vec<BTreeSet<N>> {
    let mut walk = Walk { edges, met: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for node in edges.keys() {
        walk.visit(node);
    }
    walk.found
}

struct Walk<'a, N> {
    edges: &'a BTreeMap<N, BTreeSet<N>>,
    /// In which order nodes were met; none once a node's component is known.
    met: BTreeMap<&'a N, Option<usize>>,
    stack: Vec<&'a N>,
    found: Vec<BTreeSet<N>>,
}

impl<'a, N: Ord + Clone> Walk<'a, N> {
    /// The earliest node on the stack that `node` reaches; none if it reaches none.
    fn visit(&mut self, node: &'a N) -> Option<usize> {
        if let Some(met) = self.met.get(node) {
            return *met;
        }
        let order = self.met.len();
        self.met.insert(node, Some(order));
        let at = self.stack.len();
        self.stack.push(node);
        let others = self.edges.get(node).into_iter().flatten();
        let low = others.filter_map(|other| self.visit(other)).min().unwrap_or(order).min(order);
        if low < order {
            return Some(low);
        }
        let component = self.stack.split_off(at);
        for member in &component {
            self.met.insert(member, None);
        }
        if component.len() > 1 {
            self.found.push(component.into_iter().cloned().collect());
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses such as `a.x b.y`: item `x` of file `a` uses item `y` of file `b`.
    fn uses(edges: &[&str]) -> Uses {
        let mut uses = Uses::new();
        let place =
            |text: &str| text.split_once('.').map(|(file, item)| (file.to_owned(), item.to_owned())).unwrap();
        for edge in edges {
            let (from, to) = edge.split_once(' ').unwrap();
            uses.entry(place(from)).or_default().insert(place(to));
        }
        uses
    }

    fn files(edges: &[&str]) -> Vec<String> {
        find(&uses(edges)).iter().map(|circle| circle.files.iter().map(String::as_str).collect()).collect()
    }

    #[test]
    fn a_line_and_a_diamond_are_no_circles() {
        assert!(
            files(&["a.x b.x", "b.x c.x", "a.x c.y", "d.x c.x", "a.x d.x", "a.x a.y", "a.y a.x"]).is_empty()
        );
    }

    #[test]
    fn files_that_reach_each_other_are_circles() {
        let found = files(&[
            "a.x b.x", "b.y a.y", "c.x d.x", "d.x e.x", "e.x c.x", "a.x c.x", "e.x f.x", "d.x f.x", "f.x g.x",
        ]);
        assert_eq!(found, ["cde", "ab"]);
    }

    #[test]
    fn a_circle_names_what_its_files_use_of_each_other() {
        let circle = find(&uses(&["a.x b.x", "a.y b.z", "b.y a.y", "a.x c.x"])).remove(0);
        let names: Vec<_> = circle.names[&("a".into(), "b".into())].iter().map(String::as_str).collect();
        assert_eq!((names, circle.names.len()), (vec!["x", "z"], 2));
    }

    #[test]
    fn one_item_in_the_wrong_file_is_proposed_to_be_moved() {
        let circle = find(&uses(&["a.run b.run", "b.run a.Type", "a.run c.run", "c.run a.Type"])).remove(0);
        assert_eq!(circle.moves(), [("a".to_owned(), "Type".to_owned())]);
        assert!(circle.knots().is_empty());
    }

    #[test]
    fn items_that_use_each_other_are_a_knot() {
        let circle = find(&uses(&["a.State b.Executor", "b.Executor a.State"])).remove(0);
        assert_eq!(circle.knots().len(), 1);
        assert!(circle.moves().is_empty());
    }
}
