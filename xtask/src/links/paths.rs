//! Paths of the repository, and whether what a page names is one of them.

use std::collections::BTreeSet;

/// The files and directories of a checkout.
pub struct Known(BTreeSet<String>);

impl Known {
    /// Those that these files make.
    pub fn new(files: Vec<String>) -> Self {
        let mut known = BTreeSet::from([String::new()]);
        for file in files {
            for (at, _) in file.match_indices('/') {
                known.insert(file[..at].to_owned());
            }
            known.insert(file);
        }
        Self(known)
    }

    /// True for a file or directory.
    pub fn has(&self, path: &str) -> bool {
        self.0.contains(path.trim_end_matches('/'))
    }

    /// True if the path of a file or directory ends with `pattern`; `*` in it stands for any text without `/`.
    pub fn has_suffix(&self, pattern: &str) -> bool {
        let wanted: Vec<&str> = pattern.trim_end_matches('/').split('/').rev().collect();
        self.0.iter().any(|path| {
            let mut parts = path.rsplit('/');
            wanted.iter().all(|wanted| parts.next().is_some_and(|part| matches(wanted, part)))
        })
    }
}

/// `sys*.rs` and the like.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => {
            text.len() >= before.len() + after.len() && text.starts_with(before) && text.ends_with(after)
        }
    }
}

/// The path that `target` is, seen from a page; none if it leaves the repository.
pub fn join(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// `docs/{a,b}.md` → `docs/a.md`, `docs/b.md`.
pub fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((inner, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    inner.split(',').flat_map(|one| expand(&format!("{before}{one}{after}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_known_by_its_end() {
        let known = Known::new(vec!["agent/block/src/sys/blk.rs".into(), "docs/a.md".into()]);
        assert!(known.has("agent/block/") && known.has("docs/a.md") && !known.has("block/src"));
        assert!(
            known.has_suffix("block/src/") && known.has_suffix("sys/b*.rs") && known.has_suffix("blk.rs")
        );
        assert!(!known.has_suffix("lk.rs") && !known.has_suffix("src/blk.rs"));
    }

    #[test]
    fn paths_are_joined_and_expanded() {
        assert_eq!(join("docs/a.md", "../x/./y.md").as_deref(), Some("x/y.md"));
        assert_eq!(join("a.md", "../x"), None);
        assert_eq!(expand("a/{b,c}/{d,e}.rs"), ["a/b/d.rs", "a/b/e.rs", "a/c/d.rs", "a/c/e.rs"]);
    }
}
