//! What became of each verb of each machine, as a table.

use std::fmt::Write as _;

use crate::verbs;

/// What became of a verb.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// The tree ended in the state that was asked for; more of it.
    Works(String),
    /// What is missing, in the words of the driver.
    Refused(String),
    /// Neither.
    Wrong(String),
}

/// A machine.
#[derive(Debug)]
pub struct Row {
    /// Directory of the tree.
    pub tree: String,
    /// Maker, model, firmware of the BMC.
    pub machine: String,
    /// It has several systems, so that one has to be named.
    pub needs_id: bool,
    cells: Vec<(&'static str, Cell)>,
}

impl Row {
    pub fn new(tree: &str) -> Self {
        Self { tree: tree.to_owned(), machine: String::new(), needs_id: false, cells: Vec::new() }
    }

    pub fn push(&mut self, verb: &'static str, cell: Cell) {
        self.cells.push((verb, cell));
    }

    pub fn cell(&self, verb: &str) -> &Cell {
        &self.cells.iter().find(|(known, _)| *known == verb).unwrap().1
    }

    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.cells.iter().filter_map(|(verb, cell)| match cell {
            Cell::Wrong(why) => Some(format!("{}, {verb}: {why}", self.tree)),
            _ => None,
        })
    }
}

/// The table, and below it each refusal and each failure in full.
pub fn print(rows: &[Row]) -> String {
    let mut out = String::new();
    let verbs: Vec<&str> = verbs::ALL.iter().map(|(verb, _)| *verb).collect();
    // Writing to a String does not fail.
    let _ = writeln!(out, "| tree | machine, BMC | {} |", verbs.join(" | "));
    let _ = writeln!(out, "|{}", "---|".repeat(verbs.len() + 2));
    for row in rows {
        let cells: Vec<&str> = row
            .cells
            .iter()
            .map(|(_, cell)| match cell {
                Cell::Works(_) => "works",
                Cell::Refused(_) => "refused",
                Cell::Wrong(_) => "WRONG",
            })
            .collect();
        let id = if row.needs_id { ", needs redfish_system_id" } else { "" };
        let _ = writeln!(out, "| {} | {}{id} | {} |", row.tree, row.machine, cells.join(" | "));
    }
    for row in rows {
        for (verb, cell) in &row.cells {
            let _ = match cell {
                Cell::Works(more) if more.is_empty() => continue,
                Cell::Works(more) => writeln!(out, "{}, {verb}: works, {more}", row.tree),
                Cell::Refused(why) => writeln!(out, "{}, {verb}: refused: {why}", row.tree),
                Cell::Wrong(why) => writeln!(out, "{}, {verb}: WRONG: {why}", row.tree),
            };
        }
    }
    out
}
