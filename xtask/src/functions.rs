//! `cargo xtask functions`: how long the functions of the product are.
//!
//! A function of more than [`LIMIT`] lines says why, directly above itself: `// long: a table reads best in one piece`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use crate::args::Args;
use crate::ratchet::{self, Finding};
use crate::{rust, sh, tracked};

/// The most lines of a function without a stated reason, from `fn` to the closing brace.
const LIMIT: usize = 80;

/// Functions above this are counted, not rejected.
const NOTABLE: usize = 60;

/// Files that still have a function that is too long. One that has none any more must be taken out.
const STILL_LONG: &[&str] = &[];

/// What stands before the reason.
const MARK: &str = "long:";

/// One function that has a body.
#[derive(Debug, PartialEq)]
pub struct Function {
    /// Its file.
    pub path: String,
    /// Its name.
    pub name: String,
    /// The line of `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace.
    pub length: usize,
    /// Why it is long.
    pub reason: Option<String>,
}

/// `cargo xtask functions [--list] [--root DIR]`
pub fn run(words: Vec<String>) -> Result<()> {
    let mut args = Args::new(words);
    let list = args.flag("--list");
    let root = args.option("--root")?.map_or_else(sh::root, Into::into);
    args.finish()?;
    let functions = read(&root)?;
    let above = |limit| functions.iter().filter(move |function| function.length > limit);
    if list {
        for function in above(NOTABLE) {
            println!("{}", shown(function));
        }
    }
    println!(
        "functions: {} of the product, {} above {NOTABLE} lines, {} above {LIMIT}",
        functions.len(),
        above(NOTABLE).count(),
        above(LIMIT).count()
    );
    if list {
        return Ok(());
    }
    let wrong = ratchet::judge(&judge(&functions), STILL_LONG, "STILL_LONG (xtask/src/functions.rs)");
    if !wrong.is_empty() {
        bail!("functions that are too long, or say so without need:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// The functions of all product crates of a checkout.
pub fn read(root: &Path) -> Result<Vec<Function>> {
    let mut functions = Vec::new();
    for (path, text) in tracked::texts(root, tracked::is_product_source)? {
        functions.extend(of(&path, &text)?);
    }
    Ok(functions)
}

fn shown(function: &Function) -> String {
    let Function { path, name, line, length, .. } = function;
    format!("{path}:{line}: {name} has {length} lines")
}

/// Long functions without a reason, and reasons of functions that are not long.
fn judge(functions: &[Function]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in functions {
        let remedy = match &function.reason {
            None if function.length > LIMIT => format!("split it, or say why above it: // {MARK} REASON"),
            Some(_) if function.length <= LIMIT => format!("take its `{MARK}` out"),
            _ => continue,
        };
        findings
            .push(Finding { place: function.path.clone(), text: format!("{}: {remedy}", shown(function)) });
    }
    findings
}

/// The functions of one file, without its tests.
fn of(path: &str, text: &str) -> Result<Vec<Function>> {
    let file = syn::parse_file(text).with_context(|| format!("cannot parse {path}"))?;
    let mut found = Found { path, lines: text.lines().collect(), functions: Vec::new() };
    found.visit_file(&file);
    Ok(found.functions)
}

struct Found<'a> {
    path: &'a str,
    lines: Vec<&'a str>,
    functions: Vec<Function>,
}

impl Found<'_> {
    fn add(&mut self, signature: &syn::Signature, whole: proc_macro2::Span, end: proc_macro2::Span) {
        let line = signature.span().start().line;
        self.functions.push(Function {
            path: self.path.to_owned(),
            name: signature.ident.to_string(),
            line,
            length: end.end().line + 1 - line,
            reason: self.reason(whole.start().line, line),
        });
    }

    /// The reason in the comments and attributes above line `at`, which begin with line `first` or before it.
    fn reason(&self, first: usize, at: usize) -> Option<String> {
        let above =
            self.lines[..first - 1].iter().rev().take_while(|line| line.trim_start().starts_with("//"));
        let within = self.lines[first - 1..at - 1].iter();
        let mut comments = above.chain(within).filter_map(|line| line.trim_start().strip_prefix("//"));
        let reason = comments.find_map(|line| line.trim_start_matches(['/', ' ']).strip_prefix(MARK))?.trim();
        (!reason.is_empty()).then(|| reason.to_owned())
    }
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !rust::is_test(rust::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, function.span(), function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !rust::is_test(&function.attrs) {
            self.add(&function.sig, function.span(), function.block.span());
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, function.span(), block.span());
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(above: &str, lines: usize) -> String {
        format!("{above}pub fn long() {{\n{}}}\n", "    step();\n".repeat(lines - 2))
    }

    fn judged(text: &str) -> Vec<String> {
        judge(&of("a.rs", text).unwrap()).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn a_function_of_81_lines_needs_a_reason() {
        assert!(judged(&function("", 80)).is_empty());
        assert_eq!(
            judged(&function("\n", 81)),
            ["a.rs:2: long has 81 lines: split it, or say why above it: // long: REASON"]
        );
        assert!(judged(&function("// long: a table\n", 81)).is_empty());
        assert!(judged(&function("/// Makes it.\n///\n/// long: a table\n#[inline]\n", 81)).is_empty());
        assert_eq!(judged(&function("// long:\n", 81)).len(), 1);
        assert_eq!(judged(&function("// long: of another item\nstruct A;\n", 81)).len(), 1);
    }

    #[test]
    fn a_reason_without_need_goes() {
        assert_eq!(
            judged(&function("// long: it was\n", 80)),
            ["a.rs:2: long has 80 lines: take its `long:` out"]
        );
    }

    #[test]
    fn methods_count_and_tests_do_not() {
        let body = "x();\n".repeat(90);
        assert_eq!(judged(&format!("impl A {{ fn a() {{ {body} }} }}")).len(), 1);
        assert_eq!(judged(&format!("trait A {{ fn a() {{ {body} }} fn b(); }}")).len(), 1);
        assert_eq!(judged(&format!("#[cfg(test)] mod tests {{ fn a() {{ {body} }} }}")).len(), 0);
        assert_eq!(judged(&format!("mod inner {{ fn a() {{ {body} }} }}")).len(), 1);
    }
}
