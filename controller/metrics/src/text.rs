//! Writes families of samples.

use std::fmt::{Display, Write};

/// Kind of a family.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// It grows until the process ends.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts of observations by size.
    Histogram,
}

/// The text of an answer.
#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    /// Begin a family. All its samples follow before the next one begins.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {}", help.replace('\\', "\\\\").replace('\n', "\\n")));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// A sample of the family.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let pairs: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        match pairs.is_empty() {
            true => self.line(format_args!("{name} {value}")),
            false => self.line(format_args!("{name}{{{}}} {value}", pairs.join(","))),
        }
    }

    /// A family of one sample.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, Kind::Gauge, help);
        self.sample(name, &[], value);
    }

    /// The whole.
    pub fn into_string(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

/// A value of a label as the format has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_format_reserves_is_escaped() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "One\nline, a \\.");
        text.sample("a_total", &[("path", "a\"b\\c\nd"), ("status", "200")], 3);
        text.gauge("b", "B.", 1.5);
        assert_eq!(
            text.into_string(),
            "# HELP a_total One\\nline, a \\\\.\n# TYPE a_total counter\n\
             a_total{path=\"a\\\"b\\\\c\\nd\",status=\"200\"} 3\n\
             # HELP b B.\n# TYPE b gauge\nb 1.5\n"
        );
    }
}
