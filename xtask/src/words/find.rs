//! The places of one text where a word is out.

use super::list::{PHRASES, WHO, WORDS};
use super::text::{self, Word};

/// What a comment says that keeps a word.
const MARK: &str = "wording:";

/// A word at a line, and what to write instead.
type Place = (usize, String, &'static str);

/// The places in a file, and in its name (as line 0): `path:line: "word": what to write instead`.
pub fn in_file(path: &str, content: &str) -> Vec<String> {
    let quoted;
    let content = match path {
        "docs/specs.md" => {
            quoted = without_quotes(content);
            &quoted
        }
        _ => content,
    };
    let lines: Vec<&str> = content.lines().collect();
    let keeps =
        |line: usize| line.checked_sub(1).and_then(|at| lines.get(at)).is_some_and(|text| is_kept(text));
    let mut used = Vec::new();
    let mut places: Vec<Place> =
        in_text(path).into_iter().map(|(_, word, instead)| (0, word, instead)).collect();
    for place in in_text(content) {
        match [place.0, place.0 - 1].into_iter().find(|line| keeps(*line)) {
            Some(line) => used.push(line),
            None => places.push(place),
        }
    }
    let idle = (1..=lines.len()).filter(|line| keeps(*line) && !used.contains(line));
    places.extend(idle.map(|line| (line, MARK.to_owned(), "nothing is kept by it: take it out")));
    places.iter().map(|(line, word, instead)| format!("{path}:{line}: {word:?}: {instead}")).collect()
}

/// True for a line with a comment that keeps a word, and says why.
fn is_kept(line: &str) -> bool {
    ["// ", "# ", "<!-- "].iter().any(|comment| {
        let reason = line.split_once(&format!("{comment}{MARK}")).map(|(_, reason)| reason);
        reason.is_some_and(|reason| reason.bytes().any(|byte| byte.is_ascii_alphabetic()))
    })
}

/// A table of sentences without its second column, which quotes them.
fn without_quotes(text: &str) -> String {
    let line = |line: &str| match line.splitn(4, '|').collect::<Vec<_>>()[..] {
        ["", id, _, rest] => format!("|{id}||{rest}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn in_text(content: &str) -> Vec<Place> {
    let words = text::words(content);
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let lower = word.text.to_ascii_lowercase();
        for (forms, instead) in WORDS {
            found.extend(forms.contains(&lower.as_str()).then(|| (word.line, lower.clone(), *instead)));
        }
        for (phrase, instead) in PHRASES {
            found
                .extend(is_phrase(&words[at..], phrase).then(|| (word.line, (*phrase).to_owned(), *instead)));
        }
        if word.text == "Who" && !word.part && is_statement(&words[at..], content) {
            found.push((word.line, WHO.0.to_owned(), WHO.1));
        }
    }
    found
}

/// True if the words begin with those of `phrase`, in one sentence or one identifier.
fn is_phrase(words: &[Word<'_>], phrase: &str) -> bool {
    let mut rest = words.iter();
    phrase.split(' ').enumerate().all(|(at, part)| {
        rest.next().is_some_and(|word| word.text.eq_ignore_ascii_case(part) && (at == 0 || word.follows))
    })
}

/// True if a sentence goes on after this word, and does not end in a question mark.
fn is_statement(words: &[Word<'_>], content: &str) -> bool {
    let goes_on = words.get(1).is_some_and(|next| {
        next.follows && !next.part && next.text.starts_with(|c: char| c.is_ascii_lowercase())
    });
    let sentence = &content[words[0].at..];
    goes_on && sentence.find(['.', ';', ':', '?', '"']).is_some_and(|end| !sentence[end..].starts_with('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and word of each finding.
    fn found_in(path: &str, text: &str) -> Vec<String> {
        let findings = in_file(path, text);
        let shown = findings.iter().map(|finding| finding.splitn(4, [':', '"']).collect::<Vec<_>>());
        shown.map(|parts| format!("{} {}", parts[1], parts[3].split('"').next().unwrap())).collect()
    }

    fn found(text: &str) -> Vec<String> {
        found_in("a.rs", text)
    }

    #[test]
    fn words_are_found_in_prose_and_identifiers() {
        assert_eq!(found("// Nobody is told.\nfn he_isTold() {}"), ["1 nobody", "1 told", "2 he", "2 told"]);
        assert_eq!(found("enum A { Told } // somebody's"), ["1 told", "1 somebody"]);
        assert_eq!(found("let fate = \"\\ntold\";"), ["1 fate", "1 told"]);
    }

    #[test]
    fn longer_words_and_other_words_are_not_found() {
        assert!(found("// besides, indeed, recommended, the handset, hand, amendment, fated").is_empty());
    }

    #[test]
    fn phrases_may_cross_a_line_but_no_sentence() {
        assert_eq!(found("/// asked in\n/// vain"), ["1 in vain"]);
        assert_eq!(found("fn asked_in_vain() {}"), ["1 in vain"]);
        assert!(found("/// written in. Vain\nfor ever_green in x {}").is_empty());
        assert!(found("/// the first of May. Nothing else").is_empty());
    }

    #[test]
    fn who_begins_questions_only() {
        assert_eq!(found("/// Who is not in it has no access."), ["1 Who …"]);
        assert!(found("/// Who is it? The agent.\nenum Who { A }\n// Users who are listed.").is_empty());
    }

    #[test]
    fn a_comment_with_a_reason_keeps_one_place() {
        assert!(found("let text = \"told\"; // wording: Ironic's error text").is_empty());
        assert!(found("// wording: Ironic's error text\nlet text = \"told\";").is_empty());
        assert_eq!(found("// wording:\nlet text = \"told\";"), ["2 told"]);
        assert_eq!(found("// wording: Ironic's\n\nlet text = \"told\";"), ["3 told", "1 wording:"]);
    }

    #[test]
    fn the_path_is_read_as_well() {
        assert_eq!(found_in("agent/hands.rs", ""), ["0 hands"]);
        assert_eq!(in_file("fate.rs", ""), ["fate.rs:0: \"fate\": decision, outcome"]);
    }

    #[test]
    fn quoted_sentences_of_the_specifications_are_not_ours() {
        let text = "| CS-001 | The operator is told. | tests: a::b |\n| CS-002 | x | tests: a::he_is |";
        assert_eq!(found_in("docs/specs.md", text), ["2 he"]);
    }
}
