//! The statements of one request, from PostgreSQL's own log, as a script of pgbench: pure.
//!
//! The log must have been written with `log_statement = all` and [`PREFIX`].

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;

/// `log_line_prefix`: the process that serves a connection.
pub const PREFIX: &str = "@%p@ ";
/// Every node of the measurement has a UUID that begins like this and ends with its number in 12 hexadecimal digits.
pub const UUID_PREFIX: &str = "00000000-0000-4000-8000-";

/// The UUID of a node.
pub fn uuid(number: u64) -> String {
    format!("{UUID_PREFIX}{number:012x}")
}

/// What pgbench is to draw the number of the node from, with both ends.
#[derive(Debug, Clone, Copy)]
pub struct Draw {
    /// Least.
    pub first: u64,
    /// Most.
    pub last: u64,
}

/// A statement that was executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Statement {
    text: String,
    parameters: Vec<Option<String>>,
}

/// The script that does for a node that is drawn what the log says was done for the node with this UUID: the transactions, and
/// the statements outside of any, that name it.
///
/// # Errors
/// When the log has none, or is not understood.
pub fn of(log: &str, uuid: &str, draw: Draw) -> Result<String> {
    let mut script = format!("\\set n random({}, {})\n", draw.first, draw.last);
    let mut units = 0;
    for unit in units_of(log)? {
        let names = |statement: &Statement| {
            statement.text.contains(uuid)
                || statement.parameters.iter().flatten().any(|parameter| parameter.contains(uuid))
        };
        if !unit.iter().any(names) {
            continue;
        }
        units += 1;
        for statement in unit {
            writeln!(script, "{};", statement.as_script(uuid)?)?;
        }
    }
    if units == 0 {
        bail!("no statement for node {uuid} in the log");
    }
    Ok(script)
}

/// Transactions that have ended, and statements outside of any, in the order in which they ended.
fn units_of(log: &str) -> Result<Vec<Vec<Statement>>> {
    let mut open: BTreeMap<&str, Vec<Statement>> = BTreeMap::new();
    let (mut units, mut last): (Vec<Vec<Statement>>, BTreeMap<&str, Place>) = Default::default();
    for (process, level, message) in entries(log) {
        if level == "DETAIL"
            && let Some(text) = message.strip_prefix("parameters: ")
        {
            let place = last.get(process).with_context(|| format!("parameters of nothing: {message}"))?;
            let statement = match place {
                Place::Open(at) => open.get_mut(process).and_then(|unit| unit.get_mut(*at)),
                Place::Unit(at) => units.get_mut(*at).and_then(|unit| unit.first_mut()),
            };
            statement.context("the statement of parameters")?.parameters = parameters(text)?;
        }
        let Some(text) = statement(level, &message) else { continue };
        let statement = Statement { text: text.to_owned(), parameters: Vec::new() };
        let word = text.trim_start().split([' ', ';']).next().unwrap_or_default().to_uppercase();
        match (word.as_str(), open.get_mut(process)) {
            ("BEGIN", _) => drop(open.insert(process, vec![statement])),
            ("COMMIT", Some(_)) => {
                let mut unit = open.remove(process).unwrap_or_default();
                unit.push(statement);
                units.push(unit);
            }
            // What was undone had no effect.
            ("ROLLBACK", Some(_)) => drop(open.remove(process)),
            (_, Some(unit)) => {
                last.insert(process, Place::Open(unit.len()));
                unit.push(statement);
            }
            (_, None) => {
                last.insert(process, Place::Unit(units.len()));
                units.push(vec![statement]);
            }
        }
    }
    Ok(units)
}

/// Where a statement is whose parameters follow.
enum Place {
    /// In the transaction of its process, which goes on.
    Open(usize),
    /// Alone.
    Unit(usize),
}

/// Process, level and message of each entry; the further lines of one begin with a tab.
fn entries(log: &str) -> Vec<(&str, &str, String)> {
    let mut entries: Vec<(&str, &str, String)> = Vec::new();
    for line in log.lines() {
        let begun = line.strip_prefix('@').and_then(|line| line.split_once("@ "));
        match begun.and_then(|(process, rest)| Some((process, rest.split_once(":  ")?))) {
            Some((process, (level, message))) => entries.push((process, level, message.to_owned())),
            None => {
                if let Some((_, _, message)) = entries.last_mut() {
                    message.push('\n');
                    message.push_str(line.strip_prefix('\t').unwrap_or(line));
                }
            }
        }
    }
    entries
}

fn statement<'a>(level: &str, message: &'a str) -> Option<&'a str> {
    if level != "LOG" {
        return None;
    }
    let prepared =
        || message.strip_prefix("execute ").and_then(|rest| rest.split_once(": ")).map(|(_, text)| text);
    message.strip_prefix("statement: ").or_else(prepared)
}

/// `$1 = 'it''s', $2 = NULL`.
fn parameters(text: &str) -> Result<Vec<Option<String>>> {
    let (mut values, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let (name, value) = rest.split_once(" = ").with_context(|| format!("no parameter: {rest}"))?;
        if name.trim_start_matches(", ") != format!("${}", values.len() + 1) {
            bail!("parameter {name} comes after {}", values.len());
        }
        if let Some(after) = value.strip_prefix("NULL") {
            values.push(None);
            rest = after;
            continue;
        }
        let mut quoted = value.strip_prefix('\'').context("a quoted value")?;
        let mut text = String::new();
        loop {
            let (part, after) = quoted.split_once('\'').context("the end of a value")?;
            text.push_str(part);
            match after.strip_prefix('\'') {
                Some(more) => {
                    text.push('\'');
                    quoted = more;
                }
                None => {
                    rest = after;
                    break;
                }
            }
        }
        values.push(Some(text));
    }
    Ok(values)
}

impl Statement {
    /// With its parameters in their places; the node's UUID is that of the number that was drawn.
    fn as_script(&self, uuid: &str) -> Result<String> {
        let (mut script, mut rest) = (String::new(), self.text.trim_end().trim_end_matches(';'));
        while let Some((before, after)) = rest.split_once('$') {
            let digits = after.len() - after.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
            let number: usize = after[..digits].parse().with_context(|| format!("no parameter: ${after}"))?;
            let value = self.parameters.get(number.wrapping_sub(1));
            script.push_str(before);
            script.push_str(&literal(value.context("a parameter without a value")?.as_deref(), uuid));
            rest = &after[digits..];
        }
        script.push_str(rest);
        Ok(script)
    }
}

/// A value as pgbench passes it on; it takes `:name` for a variable, also in quotes.
fn literal(value: Option<&str>, uuid: &str) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    if value == uuid {
        return format!("('{UUID_PREFIX}' || lpad(to_hex(:n::bigint), 12, '0'))::uuid");
    }
    format!("E'{}'", value.replace('\\', "\\\\").replace('\'', "''").replace(':', "\\072"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAW: Draw = Draw { first: 0, last: 9 };

    #[test]
    fn the_statements_of_a_request_become_a_script() {
        let node = uuid(42);
        let log = format!(
            "@7@ LOG:  execute s1: SELECT doc FROM node\n\t    WHERE uuid = $1\n@7@ DETAIL:  parameters: $1 = '{node}'\n\
             @8@ LOG:  execute s9: UPDATE conductor SET doc = $1\n@8@ DETAIL:  parameters: $1 = 'c1'\n\
             @7@ LOG:  statement: BEGIN ISOLATION LEVEL READ COMMITTED\n\
             @8@ LOG:  statement: BEGIN\n\
             @7@ LOG:  execute s2: UPDATE node SET doc = $2, owner = $3 WHERE uuid = $1\n\
             @7@ DETAIL:  parameters: $1 = '{node}', $2 = '{{\"a\":\"it''s\", \"b\":\"\\n\"}}', $3 = NULL\n\
             @8@ LOG:  execute s8: DELETE FROM node WHERE uuid = $1\n@8@ DETAIL:  parameters: $1 = '{node}'\n\
             @7@ LOG:  statement: COMMIT\n\
             @8@ LOG:  statement: ROLLBACK\n@9@ WARNING:  there is no transaction in progress\n"
        );
        let own = "('00000000-0000-4000-8000-' || lpad(to_hex(:n::bigint), 12, '0'))::uuid";
        let expected = format!(
            "\\set n random(0, 9)\nSELECT doc FROM node\n    WHERE uuid = {own};\n\
             BEGIN ISOLATION LEVEL READ COMMITTED;\n\
             UPDATE node SET doc = E'{{\"a\"\\072\"it''s\", \"b\"\\072\"\\\\n\"}}', owner = NULL WHERE uuid = {own};\nCOMMIT;\n"
        );
        assert_eq!(of(&log, &node, DRAW).unwrap(), expected);
        assert!(of(&log, &uuid(1), DRAW).unwrap_err().to_string().contains("no statement for node"));
    }

    #[test]
    fn parameters_are_read_as_they_are_printed() {
        let read = parameters("$1 = '', $2 = NULL, $3 = ', $4 = ''x'''").unwrap();
        assert_eq!(read, [Some(String::new()), None, Some(", $4 = 'x'".to_owned())]);
        for bad in ["$2 = 'x'", "$1 = x", "$1 = 'x", "x"] {
            assert!(parameters(bad).is_err(), "{bad}");
        }
    }
}
