//! The device's own write of zeroes, through `BLKZEROOUT`.

use super::{Attempt, Method};
use crate::fault::Fault;
use crate::progress::{Phase, Watch};
use crate::run::Pass;
use crate::target::Target;
use std::ops::ControlFlow;

/// Bytes of one request: a spinning disk does this in about half a second, and no request can be interrupted.
const CHUNK: u64 = 64 << 20;

pub(super) fn run(target: &dyn Target, watch: &dyn Watch) -> Attempt {
    let pass = Pass {
        phase: Phase::Erasing,
        method: Some(Method::ZeroOut),
        total: target.size(),
        chunk: CHUNK,
        lanes: 2,
        watch,
    };
    let passed = pass.run(|| {
        |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
            target.zero_out(offset, length).map_err(|source| Fault::Write { offset, length, source })?;
            count(length);
            Ok(ControlFlow::Continue(()))
        }
    });
    (passed.done, passed.result)
}
