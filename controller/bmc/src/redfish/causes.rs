//! What is behind an error of the HTTP client.

use std::error::Error;

/// An error and what caused it, the innermost last.
pub(super) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| cause(error))
}

/// `io::Error` gives as its source the source of what it wraps, skipping that itself: look inside.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
}

/// The innermost reason, which is the system's or the TLS library's own.
pub(super) fn reason(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}
