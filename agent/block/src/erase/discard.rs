//! Discard, for devices that say that discarded sectors read as zeroes.

use super::{Attempt, Method};
use crate::fault::Fault;
use crate::progress::{Phase, Watch};
use crate::run::Pass;
use crate::target::Target;
use std::ops::ControlFlow;

/// Bytes of one request: large, so that few boundaries fall inside a discard granule.
const CHUNK: u64 = 1 << 30;

pub(super) fn run(target: &dyn Target, watch: &dyn Watch) -> Attempt {
    let pass = Pass {
        phase: Phase::Erasing,
        method: Some(Method::Discard),
        total: target.size(),
        chunk: CHUNK,
        lanes: 1,
        watch,
    };
    let passed = pass.run(|| {
        |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
            target.discard(offset, length).map_err(|source| Fault::Write { offset, length, source })?;
            count(length);
            Ok(ControlFlow::Continue(()))
        }
    });
    (passed.done, passed.result)
}
