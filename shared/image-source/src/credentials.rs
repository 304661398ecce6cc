//! User and password of a URL, as mirrors and proxies want to see them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;

/// User and password of a URL as a header.
pub(crate) fn basic(userinfo: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(decoded(userinfo))));
    let mut value = value.map_err(|_| "user and password".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// User and password without percent-encoding.
fn decoded(userinfo: &str) -> Vec<u8> {
    let bytes = userinfo.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}
