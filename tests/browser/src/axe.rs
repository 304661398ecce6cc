//! axe-core looks for what keeps people from using the page. `cargo xtask test` has put it below `target`.

use crate::page::Page;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Where `cargo xtask deps` and `cargo xtask test` put it; `xtask/src/axe.rs` says which version.
fn script() -> Result<String> {
    let target = std::env::current_exe()?;
    let target = target.ancestors().nth(3).context("tests run from target/debug/deps")?;
    let file: PathBuf = target.join("tools/axe-core/axe.min.js");
    std::fs::read_to_string(&file)
        .with_context(|| format!("{}: `cargo xtask deps` fetches it", file.display()))
}

/// Fails if axe-core finds something: all its rules of WCAG 2.2 AA, and its best practices.
///
/// # Errors
/// See above; the error names each rule, what it asks for, and where it is broken.
pub fn check(page: &Page<'_>, what: &str) -> Result<()> {
    if page.eval("typeof axe")? == "undefined" {
        page.eval(&format!("{};0", script()?))?;
    }
    // What fades in or grows would be judged halfway.
    page.eval("Promise.all(document.getAnimations().map((one) => one.finished))")?;
    let options = json!({ "resultTypes": ["violations"] });
    let found = page.eval(&format!(
        "axe.run(document, {options}).then(({{ violations, passes }}) => ({{ violations, passes: passes.length }}))"
    ))?;
    let violations = found["violations"].as_array().context("axe-core's answer")?;
    let line = |one: &Value| {
        let places: Vec<_> = one["nodes"].as_array().into_iter().flatten().take(4).map(place).collect();
        format!("{}: {}\n  {}", one["id"], one["help"], places.join("\n  "))
    };
    let findings: Vec<_> = violations.iter().map(line).collect();
    ensure!(findings.is_empty(), "axe-core on {what}:\n{}", findings.join("\n"));
    ensure!(found["passes"].as_u64() > Some(10), "axe-core looked at nothing on {what}");
    Ok(())
}

fn place(node: &Value) -> String {
    format!("{} {}", node["html"], node["failureSummary"].as_str().unwrap_or_default().replace('\n', " "))
}
