//! For `tests/fuzz`: what is only reached behind a good signature, and what a TPM answers.

use crate::certificate;
use crate::quote::{Quote, raw};

/// Whatever these bytes are.
pub fn fuzz(bytes: &[u8]) {
    let _ = Quote::parse(bytes);
    let _ = raw(bytes);
    let _ = certificate::holds(bytes, &[4; 65]);
    let _ = certificate::without_padding(bytes);
}
