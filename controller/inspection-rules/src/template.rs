//! Templates as Python's `str.format` reads them: `{node.name}`, `{inventory[cpu][count]}`, `{item!r}`, `{{`.
//!
//! Format specifications (`{x:>8}`) are not read. Attributes are names of fields and nothing else: Python's way from
//! any value to the inside of the program (`{node.__class__}`) does not exist here.

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text, with doubled braces made single.
    Text(String),
    /// A field to be filled in.
    Field(Field<'a>),
}

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// What it begins with: `node`, `inventory`, `plugin_data`, `item`.
    pub root: &'a str,
    /// The way from there.
    pub way: Vec<Step<'a>>,
    /// `!r`: as Python's `repr` shows it.
    pub repr: bool,
    /// It has a conversion or a format specification that is not known here.
    pub strange: bool,
}

/// A step of the way of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// `.name`
    Attribute(&'a str),
    /// `[name]`
    Key(&'a str),
    /// `[0]`
    Index(usize),
}

/// The parts of a template, or nothing if it is none: Python raises a `ValueError`.
pub fn parse(text: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let (brace, after) = rest[at..].split_at(1);
        if let Some(after) = after.strip_prefix(brace) {
            plain.push_str(brace);
            rest = after;
            continue;
        }
        if brace == "}" {
            return None;
        }
        let end = closing(after)?;
        if !plain.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut plain)));
        }
        parts.push(Part::Field(field(&after[..end])?));
        rest = &after[end + 1..];
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Some(parts)
}

/// Where the field ends that begins here: braces nest, except within brackets.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut bracket) = (0_usize, false);
    for (at, character) in text.char_indices() {
        match character {
            ']' => bracket = false,
            _ if bracket => {}
            '[' => bracket = true,
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn field(text: &str) -> Option<Field<'_>> {
    let mut bracket = false;
    let end = text.find(|character: char| {
        match character {
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
        !bracket && matches!(character, '!' | ':')
    });
    let (name, how) = text.split_at(end.unwrap_or(text.len()));
    let (repr, strange) = match how {
        "" | ":" | "!s" | "!s:" => (false, false),
        "!r" | "!r:" => (true, false),
        _ => (false, true),
    };
    let (root, mut rest) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
    let mut way = Vec::new();
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        let inside = match first {
            '.' => rest.find(['.', '[']).unwrap_or(rest.len()),
            '[' => rest.find(']')?,
            _ => return None,
        };
        let part = &rest[..inside];
        rest = &rest[inside..];
        if part.is_empty() {
            return None;
        }
        way.push(match (first, part.parse()) {
            ('.', _) => Step::Attribute(part),
            (_, Ok(index)) if part.bytes().all(|byte| byte.is_ascii_digit()) => Step::Index(index),
            _ => Step::Key(part),
        });
        rest = if first == '[' { &rest[1..] } else { rest };
    }
    Some(Field { root, way, repr, strange })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_read_as_python_reads_them() {
        let plain = |text| Part::Field(Field { root: text, way: vec![], repr: false, strange: false });
        assert_eq!(parse("a{{b}}").unwrap(), [Part::Text("a{b}".into())]);
        assert_eq!(parse("{x}-{y:}").unwrap(), [plain("x"), Part::Text("-".into()), plain("y")]);
        let Part::Field(field) = &parse("{a.b[c.d}!:][0][-1]!r}").unwrap()[0] else { panic!() };
        let way = [Step::Attribute("b"), Step::Key("c.d}!:"), Step::Index(0), Step::Key("-1")];
        assert_eq!((field.root, &field.way[..], field.repr, field.strange), ("a", &way[..], true, false));
        for strange in ["{x:>8}", "{x!a}", "{x:{y}}"] {
            assert!(matches!(&parse(strange).unwrap()[0], Part::Field(field) if field.strange), "{strange}");
        }
        for none in ["{", "}", "a}b", "{x", "{x[}", "{x[]}", "{x.}", "{x[a]b}", "{{}"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "[a{}\\[\\].!:0é]{0,24}") {
            parse(&text);
        }
    }
}
