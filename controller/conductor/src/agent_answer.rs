//! What an agent answers: bounded before anything is built from it.

use model::json_structure::{STRUCTURE_MAX, structure};
use serde::de::DeserializeOwned;

/// Largest answer, in bytes. That of a server with a hundred disks has a tenth.
pub const ANSWER_MAX: usize = 4 << 20;

/// Largest answer with an archive of logs of at most `archive` bytes, which comes as base64.
pub const fn with_archive(archive: usize) -> usize {
    archive / 3 * 4 + (1 << 20)
}

/// The value of an answer. It may need four times the memory of a request's body: it can report on a thousand disks.
///
/// # Errors
/// It has too many objects or values, or is not what was asked for.
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    if structure(bytes) > 4 * STRUCTURE_MAX {
        return Err("the answer has too many objects or values".to_owned());
    }
    serde_json::from_slice(bytes).map_err(|error| format!("unreadable answer: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn an_answer_with_too_many_objects_is_not_built() {
        let many = |count: usize| format!("[{}1]", "{\"\":0},".repeat(count));
        assert!(parse::<Value>(many(16_000).as_bytes()).is_ok());
        let error = parse::<Value>(many(24_000).as_bytes()).unwrap_err();
        assert_eq!(error, "the answer has too many objects or values");
        assert!(with_archive(48 << 20) > (48 << 20) * 4 / 3);
    }
}
