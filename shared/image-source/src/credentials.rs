//! User and password of a URL, as mirrors and proxies want to see them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use percent_encoding::percent_decode_str;

/// User and password of a URL, percent-encoded (RFC 3986, section 2.1), as a header.
pub(crate) fn basic(userinfo: &str) -> Result<HeaderValue, String> {
    let decoded: Vec<u8> = percent_decode_str(userinfo).collect();
    let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(decoded)));
    let mut value = value.map_err(|_| "user and password".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_hexadecimal_digits_are_decoded() {
        let expected = format!("Basic {}", STANDARD.encode("a:b:%+f%"));
        assert_eq!(basic("a%3Ab:%+f%").unwrap().to_str().unwrap(), expected);
    }
}
