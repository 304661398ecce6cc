//! The agent token: the controller's only proof towards the agent, and the agent's towards it.

use std::fmt;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Shorter ones are ignored, as ironic-python-agent does.
const MIN_LENGTH: usize = 32;

/// A token. Never shown by `Debug`.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// `None` when it is too short to be one (also the mask `******`).
    pub fn new(text: &str) -> Option<Self> {
        (text.len() >= MIN_LENGTH).then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// Compare in constant time.
    pub fn matches(&self, offered: &str) -> bool {
        self.0.as_bytes().ct_eq(offered.as_bytes()).into()
    }

    /// The text, for the heartbeat.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("Token(******)")
    }
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn tokens_are_long_hidden_and_compared_whole() {
        assert!(Token::new("******").is_none());
        let text = "yYLAPgCuO2saMMTy9PX_uZiebhASd9v7x3IPqqMlQ_I";
        let token = Token::new(text).expect("long enough");
        assert!(token.matches(text));
        assert!(!token.matches(&text[1..]) && !token.matches(""));
        assert_eq!(format!("{token:?}"), "Token(******)");
    }
}
