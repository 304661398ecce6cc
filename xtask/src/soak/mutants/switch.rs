//! Many mutants in one text: each is behind a switch, and a test run throws one of them.
//!
//! ```text
//! a == b && c   ─▶   (if crate::mutant(1) {a != b && c} else if crate::mutant(2) {a == b || c} else {a == b && c})
//! ```
//!
//! Nothing of the original is taken out: a mutant is what is inserted around it. So mutants nest, and without a thrown
//! switch the text means what it did.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::choose::Mutant;

/// What is appended to the root of a crate: the switches. `MUTANT` in the environment names the thrown one.
pub const SWITCHES: &str = "
#[doc(hidden)]
pub(crate) fn mutant(number: usize) -> bool {
    static THROWN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *THROWN.get_or_init(|| std::env::var(\"MUTANT\").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) == number
}
";

/// How a switch begins, before its number.
const CALL: &str = "crate::mutant(";

/// Text that is put around a range; what has an empty range is put before what begins there.
struct Insertion {
    range: Range<usize>,
    before: String,
    after: &'static str,
}

/// Where a text can be mutated, by where cargo-mutants says that the mutant begins.
#[derive(Default)]
struct Places {
    /// Binary operators, with the whole chain of operators of which a change makes another expression.
    operators: BTreeMap<usize, (Range<usize>, Range<usize>)>,
    /// Unary operators: the whole, and what is behind the operator.
    prefixes: BTreeMap<usize, (Range<usize>, Range<usize>)>,
    /// Arms: the end of the pattern, and the guard.
    arms: BTreeMap<usize, (usize, Option<Range<usize>>)>,
    guards: BTreeMap<usize, Range<usize>>,
    fields: BTreeMap<usize, Field>,
    chain: Option<Range<usize>>,
}

/// A field of a struct expression that ends with `..base`.
struct Field {
    value: Range<usize>,
    /// `name: ` where the value is not written.
    label: String,
    /// The field of the base.
    of_base: String,
}

/// A text with the switches of these mutants, and the numbers of those that have one.
pub fn switched(text: &str, mutants: &[(usize, &Mutant)]) -> Result<(String, Vec<usize>)> {
    let mut places = Places::default();
    places.visit_file(&syn::parse_file(text).context("this is no Rust")?);
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut insertions = Vec::new();
    let mut chains: BTreeMap<(usize, usize), String> = BTreeMap::new();
    let mut numbers = Vec::new();
    for (number, mutant) in mutants {
        let line = starts.get(mutant.line().wrapping_sub(1)).copied().context("no such line")?;
        let column = text[line..].char_indices().nth(mutant.column().wrapping_sub(1));
        let at = line + column.context("no such column")?.0;
        if places.add(text, at, *number, mutant, &mut insertions, &mut chains) {
            numbers.push(*number);
        }
    }
    for ((start, end), before) in chains {
        insertions.push(Insertion { range: start..end, before: format!("({before}{{"), after: "})" });
    }
    Ok((inserted(text, &insertions), numbers))
}

/// The number of the last switch that begins at this byte or before.
pub fn number_at(text: &str, at: usize) -> Option<usize> {
    let (from, _) = text.match_indices(CALL).take_while(|(from, _)| *from <= at).last()?;
    let from = from + CALL.len();
    let digits = text[from..].split(')').next()?;
    digits.parse().ok()
}

fn inserted(text: &str, insertions: &[Insertion]) -> String {
    let mut order: Vec<&Insertion> = insertions.iter().collect();
    order.sort_by_key(|one| (one.range.start, !one.range.is_empty(), usize::MAX - one.range.end));
    // At one place what ends comes first, the innermost before the others; then what begins.
    let mut marks: Vec<((usize, bool, usize), &str)> = Vec::new();
    for (rank, one) in order.iter().enumerate() {
        marks.push(((one.range.start, true, rank), &one.before));
        if !one.range.is_empty() {
            marks.push(((one.range.end, false, usize::MAX - rank), one.after));
        }
    }
    marks.sort_by_key(|(key, _)| *key);
    let (mut out, mut from) = (String::new(), 0);
    for ((at, ..), insertion) in marks {
        out.push_str(&text[from..at]);
        out.push_str(insertion);
        from = at;
    }
    out + &text[from..]
}

impl Places {
    /// Adds what puts this mutant into the text; false when it cannot be behind a switch.
    fn add(
        &self,
        text: &str,
        at: usize,
        number: usize,
        mutant: &Mutant,
        insertions: &mut Vec<Insertion>,
        chains: &mut BTreeMap<(usize, usize), String>,
    ) -> bool {
        let thrown = format!("{CALL}{number})");
        let mut alternative = |range: &Range<usize>, other: &str| {
            let chain = chains.entry((range.start, range.end)).or_default();
            chain.push_str(&format!("if {thrown} {{{other}}} else "));
        };
        let mut insert =
            |range: Range<usize>, before, after| insertions.push(Insertion { range, before, after });
        match mutant.genre.as_str() {
            "FnValue" if !mutant.returns_some_impl() => {
                let before = format!("if {thrown} {{ return {}; }} ", mutant.replacement);
                insert(at..at, before, "");
            }
            "BinaryOperator" => {
                let Some((operator, chain)) = self.operators.get(&at) else { return false };
                let (left, right) = (&text[chain.start..operator.start], &text[operator.end..chain.end]);
                alternative(chain, &format!("{left}{}{right}", mutant.replacement));
            }
            "UnaryOperator" => {
                let Some((whole, operand)) = self.prefixes.get(&at) else { return false };
                alternative(whole, &text[operand.clone()]);
            }
            "MatchArm" => match self.arms.get(&at) {
                Some((_, Some(guard))) => insert(guard.clone(), format!("!{thrown} && ("), ")"),
                Some((end, None)) => insert(*end..*end, format!(" if !{thrown}"), ""),
                None => return false,
            },
            "MatchArmGuard" => {
                let Some(guard) = self.guards.get(&at) else { return false };
                let (not, join) = if mutant.replacement == "true" { ("", "||") } else { ("!", "&&") };
                insert(guard.clone(), format!("{not}{thrown} {join} ("), ")");
            }
            "StructField" => {
                let Some(field) = self.fields.get(&at) else { return false };
                let Field { value, label, of_base } = field;
                insert(value.clone(), format!("{label}(if {thrown} {{{of_base}}} else {{"), "})");
            }
            _ => return false,
        }
        true
    }
}

fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn bytes(spanned: &impl Spanned) -> Range<usize> {
    spanned.span().byte_range()
}

impl<'ast> Visit<'ast> for Places {
    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let chain = self.chain.take().unwrap_or_else(|| bytes(binary));
        // `let` can stand only directly in a condition.
        let has_let = has_let(&binary.left) || has_let(&binary.right);
        if !has_let {
            let operator = bytes(&binary.op);
            self.operators.insert(operator.start, (operator, chain.clone()));
        }
        for side in [&binary.left, &binary.right] {
            let goes_on = matches!(**side, syn::Expr::Binary(_)) && !has_let;
            self.chain = goes_on.then(|| chain.clone());
            self.visit_expr(side);
            self.chain = None;
        }
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        let whole = bytes(unary);
        self.prefixes.insert(whole.start, (whole, bytes(&unary.expr)));
        visit::visit_expr_unary(self, unary);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let (pattern, guard) = match &arm.pat {
            syn::Pat::Guard(guarded) => (bytes(&guarded.pat), Some(&*guarded.guard)),
            pattern => (bytes(pattern), None),
        };
        if !guard.is_some_and(has_let) {
            let guard = guard.map(bytes);
            self.guards.extend(guard.clone().map(|guard| (guard.start, guard)));
            self.arms.insert(pattern.start, (pattern.end, guard));
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expr: &'ast syn::ExprStruct) {
        if let Some(base) = &expr.rest {
            let text = |spanned: &dyn quote::ToTokens| spanned.to_token_stream().to_string();
            let base = match text(base).as_str() {
                "Default :: default ()" => format!("<{}>::default()", text(&expr.path)),
                base => format!("({base})"),
            };
            for field in &expr.fields {
                let syn::Member::Named(name) = &field.member else { continue };
                let label = if field.colon_token.is_some() { String::new() } else { format!("{name}: ") };
                let field_of = Field { value: bytes(&field.expr), label, of_base: format!("{base}.{name}") };
                self.fields.insert(bytes(field).start, field_of);
            }
        }
        visit::visit_expr_struct(self, expr);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutant of the text at the first `find`.
    fn mutant(text: &str, find: &str, genre: &str, replacement: &str) -> Mutant {
        let before = &text[..text.find(find).unwrap()];
        let column = before.rsplit('\n').next().unwrap().chars().count();
        let line = before.matches('\n').count() + 1;
        Mutant::at("a.rs", line, column + 1, genre, replacement)
    }

    /// The text with these mutants, on one line.
    fn with(text: &str, mutants: &[(&str, &str, &str)]) -> String {
        let mutants: Vec<Mutant> =
            mutants.iter().map(|(find, genre, other)| mutant(text, find, genre, other)).collect();
        let numbered: Vec<(usize, &Mutant)> = (1..).zip(&mutants).collect();
        let (text, numbers) = switched(text, &numbered).unwrap();
        syn::parse_file(&text).unwrap();
        assert_eq!(numbers.len(), mutants.len(), "{text}");
        text.replace("crate::mutant", "m")
    }

    #[test]
    fn a_mutant_is_put_behind_a_switch() {
        for (text, find, genre, other, expected) in [
            (
                "fn f() -> u8 {\n    7\n}",
                "7",
                "FnValue",
                "0",
                "fn f() -> u8 {\n    if m(1) { return 0; } 7\n}",
            ),
            (
                "fn f() { é(a == b) }",
                "==",
                "BinaryOperator",
                "!=",
                "fn f() { é((if m(1) {a != b} else {a == b})) }",
            ),
            ("fn f() { !a }", "!", "UnaryOperator", "", "fn f() { (if m(1) {a} else {!a}) }"),
            (
                "fn f() { match a { 1 => b, _ => c } }",
                "1",
                "MatchArm",
                "",
                "fn f() { match a { 1 if !m(1) => b, _ => c } }",
            ),
            (
                "fn f() { match a { 1 if g => b, _ => c } }",
                "1",
                "MatchArm",
                "",
                "fn f() { match a { 1 if !m(1) && (g) => b, _ => c } }",
            ),
            (
                "fn f() { match a { 1 if g => b, _ => c } }",
                "g",
                "MatchArmGuard",
                "true",
                "fn f() { match a { 1 if m(1) || (g) => b, _ => c } }",
            ),
            (
                "fn f() { match a { 1 if g => b, _ => c } }",
                "g",
                "MatchArmGuard",
                "false",
                "fn f() { match a { 1 if !m(1) && (g) => b, _ => c } }",
            ),
            (
                "fn f() { S { a: 1, ..b } }",
                "a:",
                "StructField",
                "",
                "fn f() { S { a: (if m(1) {(b).a} else {1}), ..b } }",
            ),
            (
                "fn f() { S { a, ..Default::default() } }",
                "a,",
                "StructField",
                "",
                "fn f() { S { a: (if m(1) {<S>::default().a} else {a}), ..Default::default() } }",
            ),
        ] {
            assert_eq!(with(text, &[(find, genre, other)]), expected);
        }
    }

    #[test]
    fn mutants_nest_and_share_a_chain_of_operators() {
        let text = "fn f() { a == g(!b) && c }";
        let both =
            [("==", "BinaryOperator", "!="), ("&&", "BinaryOperator", "||"), ("!", "UnaryOperator", "")];
        let expected = "fn f() { (if m(1) {a != g(!b) && c} else if m(2) {a == g(!b) || c} else \
                        {a == g((if m(3) {b} else {!b})) && c}) }";
        assert_eq!(with(text, &both), expected);
        let numbers = [0, 10, 10 + CALL.len(), 100].map(|at| number_at(&expected.replace("m(", CALL), at));
        assert_eq!(numbers, [None, None, Some(1), Some(2)]);
        assert_eq!(number_at(" crate::mutant(7)", 1), Some(7));
    }

    #[test]
    fn a_condition_with_let_is_left_and_what_is_next_to_it_is_not() {
        let text = "fn f() { if let A = a && b == c {} }";
        assert!(with(text, &[("==", "BinaryOperator", "!=")]).contains("let A = a && (if m(1) {b != c}"));
        let and = mutant(text, "&&", "BinaryOperator", "||");
        assert_eq!(switched(text, &[(1, &and)]).unwrap(), (text.to_owned(), vec![]));
    }
}
