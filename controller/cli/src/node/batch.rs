//! One command for one node, or for many: some at a time, with a summary at the end.

use super::selection::{Nodes, Target};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Format, print, printable, show, table};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};

/// What is done.
pub struct Act {
    /// What it costs many nodes, for the question before it; `None`: nothing that cannot be taken back.
    pub risk: Option<&'static str>,
    /// What a node is said to be that did it: `accepted`, or `done` when its end was awaited.
    pub success: &'static str,
}

impl Act {
    /// A change that can be taken back.
    pub const CHANGE: Self = Self { risk: None, success: "done" };
}

/// Does `one` to each of the nodes. Of one node that is named alone, what it returns is shown by `view`.
///
/// # Errors
/// Of one node: its own. Of many: the question was not answered, or not all did what was asked.
pub async fn each(
    client: &Client,
    format: Format,
    nodes: &Nodes,
    act: &Act,
    view: impl FnOnce(&Value) -> String,
    one: impl AsyncFn(&str) -> Result<Value, Failure>,
) -> Result<(), Failure> {
    if let Some(name) = nodes.only() {
        return show(format, &one(name).await?, view);
    }
    let selected = nodes.selected(client).await?;
    if let Some(risk) = act.risk.filter(|_| !selected.is_empty()) {
        nodes.ask(&selected, risk)?;
    }
    let results = work(&selected, nodes.at_once(), act, one).await;
    let summary = Summary { act, selected: &selected, results };
    match format {
        Format::Json => show(format, &summary.document(), |_| String::new())?,
        Format::Table => print(&summary.text())?,
    }
    summary.outcome()
}

/// How it went with a node.
enum Done {
    /// It was not asked: the controller was gone.
    NotSent,
    /// It did what was asked.
    Well,
    /// It did not.
    Not(Failure),
}

/// Each node by the first of `at_once` workers that is free. Once the controller cannot be reached, no further node is begun.
async fn work(
    selected: &[Target],
    at_once: u8,
    act: &Act,
    one: impl AsyncFn(&str) -> Result<Value, Failure>,
) -> Vec<Done> {
    let results = RefCell::new(Vec::from_iter(selected.iter().map(|_| Done::NotSent)));
    let (next, gone) = (Cell::new(0), Cell::new(false));
    let worker = async || {
        while let Some(node) = selected.get(next.get()).filter(|_| !gone.get()) {
            let index = next.replace(next.get() + 1);
            let done = match one(&node.ident).await {
                Ok(_) => Done::Well,
                Err(failure) => Done::Not(failure),
            };
            gone.set(gone.get() || matches!(done, Done::Not(Failure::Unreachable { .. })));
            eprintln!("{}", printable(&format!("{}: {}", node.label, done.said(act))));
            results.borrow_mut()[index] = done;
        }
    };
    join_all((0..at_once).map(|_| worker())).await;
    results.into_inner()
}

impl Done {
    fn word(&self, act: &Act) -> &'static str {
        match self {
            Self::NotSent => "not sent",
            Self::Well => act.success,
            Self::Not(Failure::Refused { .. }) => "refused",
            Self::Not(Failure::Timeout(_)) => "timed out",
            Self::Not(Failure::Unreachable { .. }) => "unreachable",
            Self::Not(_) => "failed",
        }
    }

    fn said(&self, act: &Act) -> String {
        match self {
            Self::Not(failure) => format!("{}: {failure}", self.word(act)),
            other => other.word(act).to_owned(),
        }
    }
}

/// What came of it.
struct Summary<'a> {
    act: &'a Act,
    selected: &'a [Target],
    results: Vec<Done>,
}

impl Summary<'_> {
    /// Each word with how many nodes it is said of: success first.
    fn counts(&self) -> Vec<(&'static str, usize)> {
        let words = [self.act.success, "refused", "failed", "timed out", "unreachable", "not sent"];
        let count = |word| self.results.iter().filter(|done| done.word(self.act) == word).count();
        words.into_iter().map(|word| (word, count(word))).collect()
    }

    fn text(&self) -> String {
        if self.selected.is_empty() {
            return "no node is selected".to_owned();
        }
        let nodes = self.selected.iter().zip(&self.results);
        let row = |(node, done): (&Target, &Done)| {
            let Done::Not(failure) = done else { return None };
            Some(vec![
                printable(&node.label),
                done.word(self.act).to_owned(),
                printable(&failure.to_string()),
            ])
        };
        let rows: Vec<_> = nodes.filter_map(row).collect();
        let counts = self.counts().into_iter().enumerate();
        let counts = counts.filter(|(index, (_, count))| *index == 0 || *count > 0);
        let counts: Vec<_> = counts.map(|(_, (word, count))| format!("{word} {count}")).collect();
        let failures =
            if rows.is_empty() { String::new() } else { table(&["NODE", "OUTCOME", "REASON"], &rows) + "\n" };
        format!("{failures}{} of {}", counts.join(", "), self.selected.len())
    }

    fn document(&self) -> Value {
        let node = |(node, done): (&Target, &Done)| {
            let mut shown = json!({"node": node.ident, "name": node.label, "outcome": done.word(self.act)});
            if let Done::Not(failure) = done {
                shown["reason"] = failure.to_string().into();
            }
            shown
        };
        let nodes: Vec<_> = self.selected.iter().zip(&self.results).map(node).collect();
        let counts: serde_json::Map<_, _> =
            self.counts().into_iter().map(|(word, count)| (word.replace(' ', "_"), count.into())).collect();
        json!({"counts": counts, "nodes": nodes})
    }

    /// An exit code of its own only where all failures have the same one.
    fn outcome(&self) -> Result<(), Failure> {
        let code = |done: &Done| match done {
            Done::Not(failure) => Some(failure.exit_code()),
            Done::Well | Done::NotSent => None,
        };
        let mut codes: Vec<u8> = self.results.iter().filter_map(code).collect();
        let all = self.selected.len();
        let not_done = self.results.iter().filter(|done| !matches!(done, Done::Well)).count();
        codes.dedup();
        match codes[..] {
            [] => Ok(()),
            [code] => Err(Failure::Partly { not_done, all, code }),
            _ => Err(Failure::Partly { not_done, all, code: 1 }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> Done {
        Done::Not(Failure::Refused { status: 409, message: message.to_owned() })
    }

    fn summary<'a>(selected: &'a [Target], results: Vec<Done>) -> Summary<'a> {
        Summary { act: &Act { risk: None, success: "accepted" }, selected, results }
    }

    #[test]
    fn what_came_of_it_is_counted() {
        let node = |name: &str| Target { ident: format!("u-{name}"), label: name.to_owned() };
        let selected = ["a", "b", "c", "d"].map(node);
        let seen = summary(&selected, vec![Done::Well, refused("locked"), Done::Well, refused("a\u{1b}b")]);
        assert_eq!(
            seen.text(),
            "NODE  OUTCOME  REASON\nb     refused  locked (HTTP 409)\nd     refused  a\u{fffd}b (HTTP 409)\n\n\
             accepted 2, refused 2 of 4"
        );
        assert_eq!(seen.document()["counts"]["accepted"], 2);
        assert_eq!(seen.document()["nodes"][1]["reason"], "locked (HTTP 409)");
        assert_eq!(seen.outcome().unwrap_err().exit_code(), 1);
        let ended = || Done::Not(Failure::Ended("clean failed".to_owned()));
        let alike = summary(&selected, vec![Done::Well, ended(), ended(), Done::Well]);
        assert_eq!(alike.outcome().unwrap_err().exit_code(), 4, "all failures are of one kind");
        let mixed = summary(&selected, vec![refused("x"), ended(), refused("x"), Done::Well]);
        assert_eq!(mixed.outcome().unwrap_err().exit_code(), 1);
        let well = summary(&selected, (0..4).map(|_| Done::Well).collect());
        assert_eq!((well.text().as_str(), well.outcome().is_ok()), ("accepted 4 of 4", true));
        assert_eq!(summary(&[], Vec::new()).text(), "no node is selected");
    }

    fn nodes(count: usize) -> Vec<Target> {
        let node = |index: usize| Target { ident: index.to_string(), label: format!("n{index}") };
        (0..count).map(node).collect()
    }

    #[tokio::test]
    async fn no_more_nodes_than_wanted_are_worked_on_at_a_time() {
        let (now, most) = (Cell::new(0), Cell::new(0));
        let one = async |_: &str| {
            now.set(now.get() + 1);
            most.set(most.get().max(now.get()));
            // Every worker has begun its first node before one ends.
            tokio::task::yield_now().await;
            now.set(now.get() - 1);
            Ok(Value::Null)
        };
        let results = work(&nodes(9), 3, &Act::CHANGE, one).await;
        assert_eq!(most.get(), 3);
        assert!(results.len() == 9 && results.iter().all(|done| matches!(done, Done::Well)));
    }

    #[tokio::test]
    async fn without_a_controller_no_further_node_is_begun() {
        let one = async |ident: &str| match ident {
            "0" => Ok(Value::Null),
            _ => Err(Failure::Unreachable { endpoint: "e".to_owned(), reason: "r".to_owned() }),
        };
        let selected = nodes(4);
        let results = work(&selected, 1, &Act::CHANGE, one).await;
        let seen = Summary { act: &Act::CHANGE, selected: &selected, results };
        assert!(seen.text().ends_with("\ndone 1, unreachable 1, not sent 2 of 4"), "{}", seen.text());
        assert_eq!(seen.outcome().unwrap_err().exit_code(), 5);
    }
}
