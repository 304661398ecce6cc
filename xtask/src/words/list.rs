//! Which words are out, what to write instead, and which files are read.

/// Words, in all their forms, and what to write instead.
pub const WORDS: &[(&[&str], &str)] = &[
    (&["tell", "tells", "telling", "told"], "return, report, pass, distinguish"),
    (&["nobody", "somebody", "anybody", "whoever"], "name the subject: no client, the caller, an operator"),
    (&["beside"], "next to, alongside, in addition to"),
    (&["mend", "mends", "mended", "mending"], "fix"),
    (&["deed", "deeds"], "action"),
    (&["hands"], "executor, passes, by hand"),
    (&["trouble", "troubles"], "error, failure"),
    (&["fate", "fates"], "decision, outcome"),
    (&["he", "his", "him", "himself"], "they, or name the process"),
];

/// Sequences of words within one sentence.
pub const PHRASES: &[(&str, &str)] = &[
    ("in vain", "without success"),
    ("may everything", "has full access, or say what is allowed"),
    ("may nothing", "has no access"),
    ("who may not", "name the subject: users without access"),
    ("for ever", "permanently, without limit"),
    ("of one mind", "agree"),
    ("let in", "accept, admit"),
];

/// A sentence that begins with `Who` and asks nothing.
pub const WHO: (&str, &str) = ("Who …", "name the subject: users that, an agent that");

/// Kinds of files that are read.
const KINDS: &[&str] = &[".rs", ".md", ".toml", ".py", ".sh", ".js"];

/// Paths whose words are not ours to choose: specifications, recorded and generated texts, old names, and this list.
const EXEMPT: &[&str] = &[
    "docs/specs/",
    "docs/compatibility.md",
    "docs/compatibility-agent.md",
    "docs/renames.md",
    ".schemathesis/",
    "xtask/src/words",
    "xtask/words/",
];

/// Directories of recorded texts, wherever they are.
const RECORDED: &[&str] = &["/fixtures/", "/transcripts/", "/frozen/"];

/// True for files that are read.
pub fn is_read(path: &str) -> bool {
    KINDS.iter().any(|kind| path.ends_with(kind))
        && !EXEMPT.iter().any(|exempt| path.starts_with(exempt))
        && !RECORDED.iter().any(|recorded| path.contains(recorded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_and_generated_texts_are_not_read() {
        assert!(is_read("agent/block/src/erase/mod.rs"));
        assert!(is_read("docs/specs.md"));
        assert!(!is_read("docs/specs/state-machine.txt"));
        assert!(!is_read("controller/api/tests/fixtures/make.py"));
        assert!(!is_read("docs/compatibility.md"));
        assert!(!is_read("docs/openapi.json"));
    }
}
