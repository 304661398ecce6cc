//! The signature of a request: HMAC-SHA256 (RFC 2104) with the secret of the webhook over the time, a dot and the body.

use ring::hmac;

/// Its header: `t=SECONDS,v1=HEX`; seconds since 1970.
pub const HEADER: &str = "anneal-signature";

/// The value of the header.
pub fn signature(secret: &[u8], seconds: i64, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut context = hmac::Context::with_key(&key);
    context.update(seconds.to_string().as_bytes());
    context.update(b".");
    context.update(body);
    let hex: String = context.sign().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exact bytes, which receivers compare: never edit them. `printf '1790000000.{}' | openssl dgst -sha256 -hmac secret`
    #[test]
    fn frozen_signature() {
        assert_eq!(signature(b"secret", 1_790_000_000, b"{}"), FROZEN);
    }

    const FROZEN: &str = "t=1790000000,v1=d0cadd434460d4af55e7ab90d79c1802591d7001a77c9e06471d0e3ec8cc85ae";
}
