//! Text for people and JSON for programs. Pure but for [`print`].

use crate::failure::Failure;
use clap::ValueEnum;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people; may change.
    Table,
    /// For programs: what the controller answered, stable.
    Json,
}

/// Writes one piece of output and a newline.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush()) {
        // `anneal node list | head -1`: the reader has what it wanted.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => Ok(result?),
    }
}

/// Prints `value` as JSON or as the table that `table` makes of it.
pub fn show(format: Format, value: &Value, table: impl FnOnce(&Value) -> String) -> Result<(), Failure> {
    match format {
        Format::Json => print(&pretty(value)),
        Format::Table => print(&table(value)),
    }
}

/// Indented JSON.
pub fn pretty(value: &Value) -> String {
    // `{:#}` of a Value cannot fail: its keys are strings.
    format!("{value:#}")
}

/// A value in a cell: text as it is, nothing for null, the rest as compact JSON.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => printable(text),
        other => printable(&other.to_string()),
    }
}

/// `text` without control characters: what disks, BMCs and agents say must not steer the terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// Columns under headings, two spaces apart; the last column is not padded.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let one_line = |text: &String| text.replace('\n', " ");
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(one_line).collect()).collect();
    let width = |text: &str| console::measure_text_width(text);
    let mut widths: Vec<usize> = headings.iter().map(|heading| width(heading)).collect();
    for row in &rows {
        for (column, text) in widths.iter_mut().zip(row) {
            *column = (*column).max(width(text));
        }
    }
    let mut out = String::new();
    let headings: Vec<String> = headings.iter().map(|heading| (*heading).to_owned()).collect();
    for row in std::iter::once(&headings).chain(&rows) {
        let mut line = String::new();
        for (column, text) in widths.iter().zip(row) {
            let pad = column.saturating_sub(width(text)) + 2;
            line.push_str(text);
            line.push_str(&" ".repeat(pad));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// One `name  value` line a field.
pub fn fields(rows: &[(String, String)]) -> String {
    let widest = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in rows {
        let value = value.replace('\n', &format!("\n{}", " ".repeat(widest + 2)));
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}", format!("{name:widest$}  {value}").trim_end());
    }
    out
}

/// Every field of an object but its links.
pub fn detail(value: &Value) -> String {
    let shown = value.as_object().into_iter().flatten().filter(|(key, _)| key.as_str() != "links");
    fields(&shown.map(|(key, value)| (key.clone(), cell(value))).collect::<Vec<_>>())
}

/// Bytes with a binary unit: `512 B`, `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let (mut whole, mut rest, mut unit) = (count / 1024, count % 1024, 0);
    while whole >= 1024 && unit + 1 < UNITS.len() {
        rest = whole % 1024;
        whole /= 1024;
        unit += 1;
    }
    format!("{whole}.{} {}", rest * 10 / 1024, UNITS[unit])
}

/// Seconds as `42s`, `3m05s`, `2h07m`, `3d04h`.
pub fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}s", seconds % 60),
        3600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up() {
        let rows = [vec!["n1".into(), "power on".into()], vec!["node-two".into(), "-".into()]];
        assert_eq!(table(&["NAME", "POWER"], &rows), "NAME      POWER\nn1        power on\nnode-two  -\n");
        let rows = [("uuid".to_owned(), "u".to_owned()), ("last_error".to_owned(), "a\nb".to_owned())];
        assert_eq!(fields(&rows), "uuid        u\nlast_error  a\n            b\n");
    }

    #[test]
    fn units() {
        for (count, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536 * 1024 * 1024, "1.5 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(bytes(count), text);
        }
        for (seconds, text) in [(0, "0s"), (59, "59s"), (65, "1m05s"), (7_620, "2h07m"), (273_600, "3d04h")] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn what_devices_say_does_not_steer_the_terminal() {
        assert_eq!(cell(&Value::String("SER\u{1b}[2J1".into())), "SER\u{fffd}[2J1");
    }
}
