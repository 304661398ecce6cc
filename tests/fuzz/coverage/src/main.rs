//! libFuzzer over one target of `tests/fuzz`, which `FUZZ_TARGET` names.
#![no_main]

use fuzz::{TARGETS, Target};
use std::sync::LazyLock;

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let chosen = TARGETS.into_iter().find(|(target, _)| *target == name);
    chosen.unwrap_or_else(|| panic!("FUZZ_TARGET={name:?} names no target")).1
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| CHOSEN(input));
