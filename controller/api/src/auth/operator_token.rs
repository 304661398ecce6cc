//! The token of the operators of a controller without users.
//!
//! It is the password of HTTP Basic, so that stock clients can send it. The user name is what the client calls itself:
//! it is recorded with each change, and proves nothing.

use super::basic::{BasicAuthError, Credentials};
use super::identity::Identity;
use crate::token;
use axum::http::HeaderValue;
use std::path::{Path, PathBuf};

/// Header of an answer 401: the file, on the controller's machine, that holds the token.
pub const TOKEN_FILE_HEADER: &str = "anneal-token-file";
/// Longest user name that is recorded, in characters.
const LONGEST_NAME: usize = 64;

/// The token, and the file that holds it.
pub struct OperatorToken {
    token: String,
    file: PathBuf,
}

impl OperatorToken {
    /// This token, which is the content of `file`, an absolute path.
    pub fn new(token: String, file: PathBuf) -> Self {
        Self { token, file }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The file as the value of [`TOKEN_FILE_HEADER`]; `None` for a path that fits into no header.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(self.file.to_str()?).ok()
    }

    /// The caller that sends these credentials.
    pub(crate) fn identify(&self, (user, password): Credentials) -> Result<Identity, BasicAuthError> {
        let is_token = std::str::from_utf8(&password).is_ok_and(|given| token::same(given, &self.token));
        if !is_token {
            tracing::warn!("login rejected: wrong operator token");
            return Err(BasicAuthError::WrongCredentials);
        }
        Ok(Self::operator(&user))
    }

    /// The token, and the caller that calls itself this.
    pub(crate) fn known(&self, user: &str) -> (Vec<u8>, Identity) {
        (self.token.clone().into_bytes(), Self::operator(user))
    }

    fn operator(user: &str) -> Identity {
        let name: String = user.chars().filter(|sign| !sign.is_control()).take(LONGEST_NAME).collect();
        let user = (!name.is_empty()).then_some(name);
        Identity { user, ..Identity::ADMINISTRATOR }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_accepted_under_any_name() {
        let token = OperatorToken::new("0123abcd".to_owned(), "/state/operator.token".into());
        let ask = |user: &str, password: &str| token.identify((user.to_owned(), password.into()));
        for wrong in ["", "0123abc", "0123abcd0", "0123ABCD", "\0"] {
            assert_eq!(ask("root", wrong).unwrap_err(), BasicAuthError::WrongCredentials, "{wrong:?}");
        }
        assert_eq!(ask("alice", "0123abcd").unwrap().user.as_deref(), Some("alice"));
        assert_eq!(ask("", "0123abcd").unwrap(), Identity::ADMINISTRATOR);
        let long = ask(&format!("a\n{}", "b".repeat(100)), "0123abcd").unwrap().user.unwrap();
        assert_eq!(long, format!("a{}", "b".repeat(63)));
    }
}
