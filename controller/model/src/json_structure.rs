//! How much memory a JSON text needs once it is parsed, measured before anything is built from it: 7 bytes such as
//! `{"":0},` become more than 600 of memory.

/// Most memory, in bytes, that objects and values of one body may need, the texts in them aside: some 4,500 objects or
/// 32,000 values. The report of a large server has a tenth.
pub const STRUCTURE_MAX: usize = 4 << 20;
/// An object with members: the node of a B-tree.
const OBJECT: usize = 656;
/// A value in its place, with the smallest block of memory for a text.
const VALUE: usize = 128;

/// Upper bound of the memory for objects and values, in bytes.
pub fn structure(body: &[u8]) -> usize {
    let (mut in_text, mut escaped, mut total) = (false, false, VALUE);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' => total += OBJECT + VALUE,
            b'[' | b',' => total += VALUE,
            _ => {}
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structure_is_counted_and_text_is_not() {
        assert_eq!(structure(b"5"), VALUE);
        assert_eq!(structure(br#"[1, [2], "[,{"]"#), 5 * VALUE);
        assert_eq!(structure(br#"{"a\"{,\\": 0, "b": {}}"#), 4 * VALUE + 2 * OBJECT);
    }
}
