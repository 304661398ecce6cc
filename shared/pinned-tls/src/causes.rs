//! Errors of connections in words: that of TLS is the last of several that each name the next as its cause.

use std::error::Error;

/// An error with its causes in one line.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        // Some libraries repeat their source in their own text.
        if !text.ends_with(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug)]
    struct Outer(&'static str, io::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.1)
        }
    }

    #[test]
    fn each_cause_is_named_once() {
        let cause = || io::Error::other("the certificate is another one");
        assert_eq!(chain(&Outer("no connection", cause())), "no connection: the certificate is another one");
        let repeats = Outer("no connection: the certificate is another one", cause());
        assert_eq!(chain(&repeats), "no connection: the certificate is another one");
    }
}
