//! What the kernel has the device do range by range: write zeroes (`BLKZEROOUT`), discard (`BLKDISCARD`), discard
//! securely (`BLKSECDISCARD`).

use super::Attempt;
use crate::fault::Fault;
use crate::method::Method;
use crate::progress::{Phase, Watch};
use crate::run::Pass;
use crate::target::Target;
use std::ops::ControlFlow;

pub(super) fn run(method: Method, target: &dyn Target, watch: &dyn Watch) -> Attempt {
    let (chunk, lanes) = match method {
        // A spinning disk does this in about half a second, and no request can be interrupted.
        Method::ZeroOut => (64 << 20, 2),
        // Large, so that few boundaries fall inside a discard granule.
        _ => (1 << 30, 1),
    };
    let pass = Pass {
        phase: Phase::Erasing,
        method: Some(method),
        total: target.size(),
        chunk,
        lanes,
        target,
        watch,
    };
    let passed = pass.run(|| {
        |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
            let done = match method {
                Method::ZeroOut => target.zero_out(offset, length),
                Method::SecureDiscard => target.secure_discard(offset, length),
                _ => target.discard(offset, length),
            };
            done.map_err(|source| Fault::Write { offset, length, source })?;
            count(length);
            Ok(ControlFlow::Continue(()))
        }
    });
    (passed.done, passed.result)
}
