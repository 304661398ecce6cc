//! NVMe Format with user data erase: one command for the whole namespace.

use super::{Attempt, Method};
use crate::fault::Fault;
use crate::progress::{Phase, Watch};
use crate::run::Pass;
use crate::target::Target;
use std::ops::ControlFlow;

pub(super) fn run(target: &dyn Target, watch: &dyn Watch) -> Attempt {
    let pass = Pass {
        phase: Phase::Erasing,
        method: Some(Method::NvmeFormat),
        total: target.size(),
        // One request. The controller tells no progress of it, so bytes jump from none to all.
        chunk: target.size().max(1),
        lanes: 1,
        watch,
    };
    let passed = pass.run(|| {
        |_: u64, length: u64, count: &mut dyn FnMut(u64)| {
            target.format().map_err(|source| Fault::Command { what: "NVMe Format", source })?;
            count(length);
            Ok(ControlFlow::Continue(()))
        }
    });
    (passed.done, passed.result)
}
