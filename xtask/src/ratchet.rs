//! Lists of places that do not pass a check yet: what is listed may fail, and leaves the list once it passes.

/// One place that fails a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: what a list names, or a path below it.
    pub place: String,
    /// What is wrong, for the reader.
    pub text: String,
}

/// The findings outside `allowed`, and the entries of `allowed` below which nothing fails any more.
///
/// `list` is the name of the list.
pub fn judge(findings: &[Finding], allowed: &[&str], list: &str) -> Vec<String> {
    let outside =
        findings.iter().filter(|finding| !allowed.iter().any(|entry| covers(entry, &finding.place)));
    let idle = allowed.iter().filter(|entry| !findings.iter().any(|finding| covers(entry, &finding.place)));
    outside
        .map(|finding| finding.text.clone())
        .chain(idle.map(|entry| format!("{entry} passes now: take it out of {list}")))
        .collect()
}

/// True for the place itself and for whatever is below it.
fn covers(entry: &str, place: &str) -> bool {
    place.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(places: &[&str], allowed: &[&str]) -> Vec<String> {
        let findings =
            places.iter().map(|place| Finding { place: (*place).into(), text: format!("{place} is wrong") });
        judge(&findings.collect::<Vec<_>>(), allowed, "LIST")
    }

    #[test]
    fn what_is_not_listed_fails() {
        assert_eq!(judged(&["a/b", "ab", "c"], &["a"]), ["ab is wrong", "c is wrong"]);
        assert!(judged(&["a/b", "a"], &["a"]).is_empty());
    }

    #[test]
    fn what_is_listed_and_passes_leaves_the_list() {
        assert_eq!(judged(&["a/b"], &["a", "a/c"]), ["a/c passes now: take it out of LIST"]);
    }
}
