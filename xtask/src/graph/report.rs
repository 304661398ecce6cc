//! The circles of all product crates: read, judged and printed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::circles::{self, Circle};
use super::modules::Tree;
use super::uses::{self, Place, Uses};
use crate::tracked::{self, Texts};

/// The circles of each product crate.
pub type Crates = BTreeMap<String, Vec<Circle>>;

/// Reads the sources of all product crates of a checkout.
pub fn read(root: &Path) -> Result<Crates> {
    let mut sources: BTreeMap<String, Texts> = BTreeMap::new();
    for (path, text) in tracked::texts(root, tracked::is_product_source)? {
        if let Some((name, dir)) = tracked::product_crate(&path) {
            let inner = path[dir.len() + "/src/".len()..].to_owned();
            sources.entry(name.to_owned()).or_default().insert(inner, text);
        }
    }
    sources
        .into_iter()
        .map(|(name, texts)| {
            let circles = of_crate(&texts).with_context(|| format!("crate {name}"))?;
            Ok((name, circles))
        })
        .collect()
}

/// The circles of one crate: of its library and of each of its programs.
fn of_crate(texts: &Texts) -> Result<Vec<Circle>> {
    let mut all = Uses::new();
    let roots = texts.keys().filter(|path| {
        matches!(path.as_str(), "lib.rs" | "main.rs")
            || (path.starts_with("bin/") && path.matches('/').count() == 1)
    });
    for root in roots {
        for (from, others) in uses::of(&Tree::read(root, texts)?) {
            all.entry(from).or_default().extend(others);
        }
    }
    Ok(circles::find(&all))
}

/// What to print when there is no circle.
///
/// # Errors
/// The circles, with a proposal where to cut each.
pub fn judge(crates: &Crates) -> Result<String> {
    let circles =
        crates.iter().flat_map(|(name, circles)| circles.iter().map(move |circle| one(name, circle, true)));
    let circles: Vec<String> = circles.collect();
    if !circles.is_empty() {
        bail!("modules use each other in circles:\n{}", circles.join("\n"));
    }
    Ok(format!("modules: no circles in {} product crates", crates.len()))
}

/// All circles, with or without a proposal where to cut them.
pub fn all(crates: &Crates, cuts: bool) -> String {
    let mut text = String::new();
    for (name, circles) in crates {
        for circle in circles {
            text += &one(name, circle, cuts);
        }
    }
    let sizes: Vec<_> = crates
        .iter()
        .flat_map(|(name, circles)| {
            circles.iter().map(move |circle| format!("{name} {}", circle.files.len()))
        })
        .collect();
    let _ = writeln!(text, "{} circles: {}", sizes.len(), sizes.join(", "));
    text
}

fn one(name: &str, circle: &Circle, cuts: bool) -> String {
    let mut text = format!("{name}: a circle of {} files\n", circle.files.len());
    for ((from, to), names) in &circle.names {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let _ = writeln!(text, "  {from} → {to}: {}", names.join(", "));
    }
    if cuts {
        text += &proposal(circle);
    }
    text
}

/// Where a circle can be cut.
fn proposal(circle: &Circle) -> String {
    let show = |(file, item): &Place| format!("{file} {item}");
    let mut text = String::new();
    for knot in circle.knots() {
        let items: Vec<_> = knot.iter().map(show).collect();
        let _ = writeln!(text, "  ! use each other, so moving does not help: {}", items.join(", "));
    }
    let moves: Vec<_> = circle.moves().iter().map(show).collect();
    if !moves.is_empty() {
        let _ = writeln!(text, "  > move out of its file: {}", moves.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates(lib: &str) -> Crates {
        let texts = [("lib.rs", lib), ("a.rs", "pub struct A; use crate::Root;")];
        let texts = texts.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        [("block".to_owned(), of_crate(&texts).unwrap())].into()
    }

    #[test]
    fn a_circle_is_reported_with_its_edges() {
        let error = judge(&crates("mod a; pub struct Root(a::A);")).unwrap_err().to_string();
        assert!(
            error.contains("block: a circle of 2 files\n  a.rs → lib.rs: Root\n  lib.rs → a.rs: A\n"),
            "{error}"
        );
    }

    #[test]
    fn a_crate_without_a_circle_passes() {
        let without = crates("mod a; pub struct Root; pub use a::A;");
        assert_eq!(judge(&without).unwrap(), "modules: no circles in 1 product crates");
    }
}
