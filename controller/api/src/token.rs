//! Agent tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

/// A new token: 32 bytes of the operating system's randomness in 43 URL-safe characters, as Ironic's
/// `secrets.token_urlsafe()`. Fails only when the operating system has no randomness to give.
pub fn fresh() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Whether two tokens are the same, in constant time.
pub fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}
