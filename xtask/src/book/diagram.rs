//! State diagrams as SVG: boxes at fixed places, arrows from the table of transitions.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::states::{Kind, Transition};
use super::svg::escape;

/// Size of a box, and the distances between the centres of neighbours, in pixels.
const BOX: (f64, f64) = (112.0, 32.0);
const PITCH: (f64, f64) = (196.0, 92.0);
/// Distance of each of two opposite arrows from the line between the centres.
const ASIDE: f64 = 7.0;

/// A point; in a [`Layout`] in columns and rows.
type Point = (f64, f64);

/// Where the states of a diagram are.
pub struct Layout {
    pub title: &'static str,
    /// Columns and rows.
    pub size: Point,
    pub places: &'static [(&'static str, Point)],
    /// Arrows that are not straight: from, to, and the points between.
    pub detours: &'static [(&'static str, &'static str, &'static [Point])],
}

/// All states that last, and those in which the controller works.
pub const OVERVIEW: Layout = Layout {
    title: "Provision states: stable states, and the states in which the controller works on a node",
    size: (6.0, 5.0),
    places: &[
        ("inspecting", (2.0, 0.0)),
        ("enroll", (0.0, 1.0)),
        ("verifying", (1.0, 1.0)),
        ("manageable", (2.0, 1.0)),
        ("cleaning", (3.0, 1.0)),
        ("available", (5.0, 1.0)),
        ("adopting", (1.0, 2.0)),
        ("deleting", (3.0, 2.0)),
        ("error", (4.0, 2.0)),
        ("deploying", (5.0, 2.0)),
        ("active", (3.0, 3.0)),
        ("servicing", (5.0, 3.5)),
        ("rescuing", (2.0, 4.0)),
        ("rescue", (3.0, 4.0)),
        ("unrescuing", (4.0, 4.0)),
    ],
    detours: &[
        ("available", "manageable", &[(4.9, 0.3), (2.55, 0.3)]),
        ("rescue", "deleting", &[(3.0, 4.5), (1.35, 4.5), (1.35, 2.45), (2.5, 2.45)]),
    ],
};

/// One kind of run from the inside.
pub const CLEANING: Layout = Layout {
    title: "Cleaning, with its wait, hold and failed states",
    size: (4.15, 3.2),
    places: &[
        ("manageable", (0.0, 0.0)),
        ("cleaning", (1.5, 0.0)),
        ("available", (3.0, 0.0)),
        ("clean failed", (0.0, 2.0)),
        ("clean wait", (1.5, 2.0)),
        ("clean hold", (3.0, 2.0)),
    ],
    detours: &[
        ("clean hold", "clean failed", &[(2.9, 2.45), (0.1, 2.45)]),
        ("available", "manageable", &[(2.9, -0.42), (0.1, -0.42)]),
        ("clean failed", "available", &[(0.0, 2.8), (3.55, 2.8), (3.55, 0.0)]),
    ],
};

impl Layout {
    fn place(&self, state: &str) -> Option<Point> {
        let (_, (column, row)) = self.places.iter().find(|(name, _)| *name == state)?;
        Some(pixels((*column, *row)))
    }
}

fn pixels((column, row): Point) -> Point {
    let margin = (BOX.0 / 2.0 + 20.0, BOX.1 / 2.0 + 60.0);
    (margin.0 + column * PITCH.0, margin.1 + row * PITCH.1)
}

/// The diagram of all transitions between states that the layout has a place for.
///
/// # Errors
/// A place or a detour for which the table has no transition: the layout is out of date.
pub fn draw(transitions: &[Transition], layout: &Layout) -> Result<String> {
    for (state, _) in layout.places {
        let known = transitions.iter().any(|transition| transition.from == *state || transition.to == *state);
        ensure!(known, "the diagram has a place for {state:?}, which is not in the table");
    }
    let mut arrows: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for Transition { from, event, to } in transitions {
        if layout.place(from).is_none() || layout.place(to).is_none() {
            continue;
        }
        match arrows.iter_mut().find(|(start, end, _)| start == from && end == to) {
            Some((_, _, events)) => events.push(event),
            None => arrows.push((from, to, vec![event])),
        }
    }
    for (from, to, _) in layout.detours {
        let drawn = arrows.iter().any(|(start, end, _)| start == from && end == to);
        ensure!(drawn, "the diagram has a detour from {from:?} to {to:?}, which is not in the table");
    }
    let (width, height) = pixels(layout.size);
    let mut svg = header(layout.title, width - PITCH.0 + BOX.0 / 2.0 + 20.0, height - PITCH.1 + 76.0);
    for (from, to, events) in &arrows {
        let paired = arrows.iter().any(|(start, end, _)| start == to && end == from);
        svg.push_str(&arrow(layout, from, to, &events.join(", "), paired)?);
    }
    for (state, _) in layout.places {
        let (x, y) = layout.place(state).context("a place")?;
        let (fill, stroke) = colours(Kind::of(state));
        let _ = writeln!(
            svg,
            "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"{:.0}\" height=\"{:.0}\" rx=\"{}\" fill=\"{fill}\" stroke=\"{stroke}\" \
             stroke-width=\"1.5\"/>\n<text x=\"{x:.0}\" y=\"{:.0}\" class=\"s\">{}</text>",
            x - BOX.0 / 2.0,
            y - BOX.1 / 2.0,
            BOX.0,
            BOX.1,
            if Kind::of(state) == Kind::Stable { 6 } else { 16 },
            y + 5.0,
            escape(state)
        );
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn header(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n\
         <title>{}</title>\n\
         <!-- Generated by `cargo xtask book` from the provision table. -->\n\
         <style>\n\
         text {{ font-family: 'DejaVu Sans', Verdana, sans-serif; text-anchor: middle; }}\n\
         .s {{ font-size: 14px; fill: #1f2430; }}\n\
         .e {{ font-size: 12px; fill: #4a5160; }} .h {{ font-size: 12px; stroke: #ffffff; stroke-width: 4px; }}\n\
         .a {{ fill: none; stroke: #8a92a3; stroke-width: 1.4; marker-end: url(#head); }}\n\
         </style>\n\
         <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#8a92a3\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escape(title)
    )
}

fn colours(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Stable => ("#e3f1e5", "#3f8f4f"),
        Kind::Working => ("#e4edfb", "#4673b8"),
        Kind::Waiting => ("#fff6dd", "#c39a2b"),
        Kind::Failed => ("#fbe5e3", "#bf4a40"),
    }
}

/// An arrow with the names of its events.
fn arrow(layout: &Layout, from: &str, to: &str, label: &str, paired: bool) -> Result<String> {
    let (start, end) = (layout.place(from).context("a place")?, layout.place(to).context("a place")?);
    let detour = layout.detours.iter().find(|(a, b, _)| *a == from && *b == to);
    let (points, at) = match detour {
        Some((_, _, between)) => {
            let mut points = vec![start];
            points.extend(between.iter().copied().map(pixels));
            points.push(end);
            // The label is on the longest part.
            let longest = points
                .windows(2)
                .max_by(|a, b| distance(a[0], a[1]).total_cmp(&distance(b[0], b[1])))
                .context("a line")?;
            let at = middle(longest[0], longest[1]);
            let last = points.len() - 1;
            points[0] = leave(points[0], points[1]);
            points[last] = leave(points[last], points[last - 1]);
            (points, at)
        }
        None => {
            let (start, end) =
                if paired { (aside(start, start, end), aside(end, start, end)) } else { (start, end) };
            let points = vec![leave(start, end), leave(end, start)];
            let at = middle(points[0], points[1]);
            (points, at)
        }
    };
    let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let vertical = (points[0].0 - points[points.len() - 1].0).abs() < 30.0 && detour.is_none();
    let shift = match (vertical, paired) {
        (true, true) if points[0].1 < points[1].1 => (-26.0, 4.0),
        (true, true) => (26.0, 4.0),
        (false, true) if points[0].0 < points[1].0 => (0.0, 16.0),
        (false, true) => (0.0, -6.0),
        _ => (0.0, -5.0),
    };
    let (x, y, label) = (at.0 + shift.0, at.1 + shift.1, escape(label));
    // Below the text its outline in white, so that it can be read on a line.
    Ok(format!(
        "<path class=\"a\" d=\"M{}\"/>\n<text class=\"h\" x=\"{x:.0}\" y=\"{y:.0}\">{label}</text>\n\
         <text class=\"e\" x=\"{x:.0}\" y=\"{y:.0}\">{label}</text>\n",
        line.join(" L"),
    ))
}

fn distance(a: Point, b: Point) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

fn middle(a: Point, b: Point) -> Point {
    ((a.0 + b.0) / 2.0, (a.1 + b.1) / 2.0)
}

/// `point`, moved to the right of the direction from `from` to `to`: opposite arrows are on different sides.
fn aside(point: Point, from: Point, to: Point) -> Point {
    let length = distance(from, to).max(1.0);
    let (x, y) = ((to.0 - from.0) / length, (to.1 - from.1) / length);
    (point.0 - y * ASIDE, point.1 + x * ASIDE)
}

/// Where the line from `from`, the centre of a box, to `to` leaves the box.
fn leave(from: Point, to: Point) -> Point {
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let scale = (BOX.0 / 2.0 / x.abs().max(0.001)).min(BOX.1 / 2.0 / y.abs().max(0.001));
    (from.0 + x * scale, from.1 + y * scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::states::parse;

    const SMALL: Layout = Layout {
        title: "a & b",
        size: (2.0, 1.0),
        places: &[("enroll", (0.0, 0.0)), ("verifying", (1.0, 0.0))],
        detours: &[],
    };

    #[test]
    fn every_transition_between_places_is_an_arrow_and_no_other() {
        let table = "enroll | manage | verifying\nverifying | fail | enroll\nverifying | done | manageable\n";
        let svg = draw(&parse(table).unwrap(), &SMALL).unwrap();
        assert_eq!(svg.matches("class=\"a\"").count(), 2);
        assert!(
            svg.contains("class=\"e\"")
                && svg.contains(">manage</text>")
                && svg.contains(">fail</text>")
                && !svg.contains("done")
        );
        assert!(svg.contains("<title>a &amp; b</title>"));
    }

    #[test]
    fn a_layout_that_is_out_of_date_is_rejected() {
        let table = parse("enroll | manage | manageable\n").unwrap();
        let error = draw(&table, &SMALL).unwrap_err().to_string();
        assert!(error.contains("verifying"), "{error}");
    }

    #[test]
    fn arrows_begin_at_the_border_of_a_box() {
        let near = |a: Point, b: Point| distance(a, b) < 0.001;
        assert!(near(leave((0.0, 0.0), (200.0, 0.0)), (BOX.0 / 2.0, 0.0)));
        assert!(near(leave((0.0, 0.0), (0.0, -200.0)), (0.0, -BOX.1 / 2.0)));
    }
}
