//! Examples in the documentation of crates.
//!
//! rustdoc compiles each crate to look for them, for a second and more, and all but a few crates have none: their manifests say so.

use crate::tracked::Workspace;

/// What the fence of a code block that rustdoc compiles may say (The rustdoc book, "Documentation tests").
const RUST: [&str; 6] = ["rust", "no_run", "should_panic", "compile_fail", "ignore", "edition2024"];

/// Whether a code block of the documentation in a source file is Rust.
fn has_example(source: &str) -> bool {
    let lines = source.lines().map(str::trim_start);
    let documentation =
        lines.filter_map(|line| line.strip_prefix("///").or_else(|| line.strip_prefix("//!")));
    let fences = documentation.filter_map(|line| line.trim().strip_prefix("```"));
    // Every second fence ends a block.
    fences
        .step_by(2)
        .any(|says| says.split([',', ' ']).filter(|word| !word.is_empty()).all(|word| RUST.contains(&word)))
}

/// Whether cargo looks for examples in the library of a crate with this manifest.
fn is_searched(manifest: &str) -> bool {
    let table: toml::Table = manifest.parse().unwrap();
    let said = table.get("lib").and_then(|lib| lib.get("doctest")?.as_bool());
    said.unwrap_or(true)
}

#[test]
fn a_block_is_an_example_unless_it_names_another_language() {
    assert!(has_example("/// ```\n/// let one = 1;\n/// ```\nfn a() {}\n"));
    assert!(has_example("    //! ```no_run, rust\n    //! ```\n"));
    assert!(has_example("//! ```text\n//! ```\n/// ```\n/// ```\n"));
    assert!(!has_example("//! ```text\n//! a ─► b\n//! ```\n"));
    assert!(!has_example("// ```\n// ```\nlet text = \"```\";\n"));
}

#[test]
fn cargo_looks_for_examples_where_there_are_any() {
    let workspace = Workspace::read(&crate::sh::root()).unwrap();
    let (mut with, mut without) = (Vec::new(), 0);
    for (name, dir) in workspace.crates() {
        let of_crate = || workspace.below(dir);
        if !of_crate().any(|(path, _)| path == "src/lib.rs") {
            continue;
        }
        let manifest = of_crate().find_map(|(path, text)| (path == "Cargo.toml").then_some(text)).unwrap();
        let has_examples = of_crate().any(|(path, text)| path.starts_with("src/") && has_example(text));
        assert_eq!(is_searched(manifest), has_examples, "[lib] doctest in {dir}/Cargo.toml");
        if has_examples { with.push(name) } else { without += 1 }
    }
    assert!(with.contains(&"hwm-sdk") && without > 40, "{with:?}, {without} without");
}
