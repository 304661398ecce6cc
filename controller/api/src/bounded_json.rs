//! JSON whose structure is measured before anything is built from it: 7 bytes such as `{"":0},` become more than 600 of
//! memory.

use crate::error::ApiError;
use model::json_structure::{STRUCTURE_MAX, structure};
use serde::de::IgnoredAny;
use serde_json::Value;

/// The value of a body.
///
/// # Errors
/// 400: it is not JSON. 413: it has more objects or values than [`STRUCTURE_MAX`] holds.
pub fn parse(body: &[u8]) -> Result<Value, ApiError> {
    check(body)?;
    serde_json::from_slice(body).map_err(|error| invalid(&error))
}

/// Measure a body without building anything.
///
/// # Errors
/// As [`parse`], except that JSON which only a complete parse finds to be wrong passes.
pub fn check(body: &[u8]) -> Result<(), ApiError> {
    if structure(body) <= STRUCTURE_MAX {
        return Ok(());
    }
    match serde_json::from_slice::<IgnoredAny>(body) {
        Ok(_) => Err(ApiError::client(413, "The body of the request has too many objects or values.")),
        Err(error) => Err(invalid(&error)),
    }
}

/// 400 for a body that is not JSON.
pub fn invalid(error: &serde_json::Error) -> ApiError {
    ApiError::invalid(format!("The body of the request is not valid JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_not_built_and_what_is_wrong_is_named_so() {
        let many = |one: &str, count: usize| format!("[{}1]", one.repeat(count)).into_bytes();
        assert!(parse(&many("{\"\":0},", 4_000)).is_ok());
        assert!(parse(&many("1,", 32_000)).is_ok());
        for too_many in [many("{\"\":0},", 6_000), many("1,", 33_000)] {
            assert_eq!(parse(&too_many).unwrap_err().status, 413);
        }
        let error = parse("[".repeat(100_000).as_bytes()).unwrap_err();
        assert!(error.status == 400 && error.message.contains("not valid JSON"), "{}", error.message);
    }
}
