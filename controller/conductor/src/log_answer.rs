//! Takes the archive out of an answer as it arrives: the text of the member `system_logs`, which is base64. What remains is
//! the answer with an empty text in its place, small enough to be parsed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

/// The member that holds the archive.
const MEMBER: &[u8] = b"system_logs";
/// Most bytes of everything else.
const OUTLINE_MAX: usize = 1 << 20;
/// Characters that are decoded at once; a multiple of four.
const BLOCK: usize = 32 << 10;

/// An answer that is being read.
#[derive(Default)]
pub struct LogAnswer {
    place: Place,
    /// The last text outside the archive, as far as it may be [`MEMBER`].
    word: Vec<u8>,
    /// A colon follows that text.
    is_named: bool,
    outline: Vec<u8>,
    packed: Vec<u8>,
    archives: usize,
    is_padded: bool,
}

#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Structure,
    Text {
        escaped: bool,
    },
    Archive {
        escaped: bool,
    },
}

impl LogAnswer {
    /// Reads the next bytes of the answer. Returns those of the archive that they complete.
    ///
    /// # Errors
    /// The archive is not base64, there are two, or everything else is too large.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let mut decoded = Vec::new();
        for byte in bytes {
            self.byte(*byte)?;
            if self.packed.len() >= BLOCK {
                self.decode(&mut decoded)?;
            }
        }
        if self.outline.len() > OUTLINE_MAX {
            return Err(format!("the agent's answer has more than {OUTLINE_MAX} bytes without its logs"));
        }
        Ok(decoded)
    }

    /// The answer without the archive, and the last bytes of the archive.
    ///
    /// # Errors
    /// The archive is not base64.
    pub fn end(mut self) -> Result<(Vec<u8>, Vec<u8>), String> {
        let mut decoded = Vec::new();
        self.decode(&mut decoded)?;
        Ok((self.outline, decoded))
    }

    fn byte(&mut self, byte: u8) -> Result<(), String> {
        match (self.place, byte) {
            (Place::Structure, b'"') if self.is_named => {
                self.archives += 1;
                if self.archives > 1 {
                    return Err("the agent sent its logs twice".to_owned());
                }
                self.place = Place::Archive { escaped: false };
            }
            (Place::Structure, b'"') => {
                self.word.clear();
                self.place = Place::Text { escaped: false };
            }
            (Place::Structure, b':') => self.is_named = self.word == MEMBER,
            (Place::Structure, b' ' | b'\t' | b'\r' | b'\n') => {}
            (Place::Structure, _) => {
                self.is_named = false;
                self.word.clear();
            }
            (Place::Text { escaped: false }, b'"') => self.place = Place::Structure,
            (Place::Text { escaped }, byte) => {
                self.place = Place::Text { escaped: !escaped && byte == b'\\' };
                if self.word.len() <= MEMBER.len() {
                    self.word.push(byte);
                }
            }
            (Place::Archive { escaped: false }, b'"') => {
                self.is_named = false;
                self.word.clear();
                self.place = Place::Structure;
            }
            // A solidus may be written with a backslash before it.
            (Place::Archive { escaped: false }, b'\\') => {
                self.place = Place::Archive { escaped: true };
                return Ok(());
            }
            (Place::Archive { escaped: true }, byte) if byte != b'/' => {
                return Err("the agent's logs are not base64: an escaped character".to_owned());
            }
            (Place::Archive { .. }, byte) => {
                self.place = Place::Archive { escaped: false };
                self.packed.push(byte);
                return Ok(());
            }
        }
        self.outline.push(byte);
        Ok(())
    }

    fn decode(&mut self, into: &mut Vec<u8>) -> Result<(), String> {
        if self.packed.is_empty() {
            return Ok(());
        }
        if self.is_padded {
            return Err("the agent's logs are not base64: characters after their end".to_owned());
        }
        self.is_padded = self.packed.ends_with(b"=");
        let decoded = BASE64.decode_vec(&self.packed, into);
        self.packed.clear();
        decoded.map_err(|error| format!("the agent's logs are not base64: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What becomes of an answer that arrives in pieces of this size.
    fn read(answer: &[u8], piece: usize) -> Result<(Value, Vec<u8>), String> {
        let mut reading = LogAnswer::default();
        let mut archive = Vec::new();
        for piece in answer.chunks(piece) {
            archive.extend(reading.read(piece)?);
        }
        let (outline, rest) = reading.end()?;
        archive.extend(rest);
        Ok((serde_json::from_slice(&outline).map_err(|error| error.to_string())?, archive))
    }

    #[test]
    fn an_archive_is_taken_out_however_the_answer_is_cut() {
        let logs: Vec<u8> = (0..100_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let answer = |logs: &str| json!({"id": "\"system_logs\":\"", "n": ["system_logs", 1], "command_result": {"system_logs": logs}, "x": "\\"});
        let text = answer(&BASE64.encode(&logs)).to_string();
        for piece in [1, 7, 4096, text.len()] {
            assert_eq!(read(text.as_bytes(), piece).unwrap(), (answer(""), logs.clone()), "{piece}");
        }
        let packed = BASE64.encode(&logs).replace('/', "\\/");
        let spaced = format!("{{\"command_result\" :\n{{ \"system_logs\" : \"{packed}\"}} }}");
        assert_eq!(read(spaced.as_bytes(), 5).unwrap().1, logs);
    }

    #[test]
    fn what_is_no_archive_is_an_error_or_stays_in_the_answer() {
        for (answer, part) in [
            (r#"{"system_logs":"*"}"#, "not base64"),
            (r#"{"system_logs":"QQ==\u0041"}"#, "not base64"),
            (r#"{"system_logs":"QQ==","a":{"system_logs":"QQ=="}}"#, "twice"),
            (r#"{"system_logs":"QQ"#, "not base64"),
        ] {
            let error = read(answer.as_bytes(), 3).unwrap_err();
            assert!(error.contains(part), "{answer}: {error}");
        }
        let padded = format!("{{\"system_logs\":\"{}QQ==QQ==\"}}", "A".repeat(BLOCK - 4));
        assert!(read(padded.as_bytes(), 1 << 20).unwrap_err().contains("after their end"));
        let (outline, archive) = read(br#"{"system_logs":7,"b":null}"#, 2).unwrap();
        assert_eq!((outline, archive.len()), (json!({"system_logs": 7, "b": null}), 0));
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(OUTLINE_MAX));
        assert!(read(large.as_bytes(), 1 << 16).unwrap_err().contains("more than"));
    }
}
