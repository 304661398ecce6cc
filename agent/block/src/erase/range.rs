//! What the kernel has the device do range by range: write zeroes (`BLKZEROOUT`), discard (`BLKDISCARD`), discard
//! securely (`BLKSECDISCARD`).

use super::parts;
use super::record::Attempt;
use crate::fault::Fault;
use crate::method::Method;
use crate::pass::Pass;
use crate::progress::Watch;
use crate::target::Target;
use std::io;
use std::ops::ControlFlow;

pub(super) fn zero_out(target: &dyn Target, from: u64, watch: &dyn Watch, kept: &dyn Fn(u64)) -> Attempt {
    // A spinning disk does this in about half a second, and no request can be interrupted.
    let pass = Pass::erasing(Method::ZeroOut, target, 64 << 20, watch);
    parts::run(&pass, target, from, kept, 2, || {
        |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
            done(target.zero_out(offset, length), offset, length, count)
        }
    })
}

pub(super) fn discard(method: Method, target: &dyn Target, watch: &dyn Watch) -> Attempt {
    // Large, so that few boundaries fall inside a discard granule.
    let lane = |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
        let result = match method {
            Method::SecureDiscard => target.secure_discard(offset, length),
            _ => target.discard(offset, length),
        };
        done(result, offset, length, count)
    };
    let passed = Pass::erasing(method, target, 1 << 30, watch).run([lane]);
    (passed.done, passed.result)
}

fn done(
    result: io::Result<()>,
    offset: u64,
    length: u64,
    count: &mut dyn FnMut(u64),
) -> Result<ControlFlow<()>, Fault> {
    result.map_err(|source| Fault::Write { offset, length, source })?;
    count(length);
    Ok(ControlFlow::Continue(()))
}
