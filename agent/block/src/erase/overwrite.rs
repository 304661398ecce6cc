//! Zeroes written over everything, past the page cache.

use super::{Attempt, Method, parts};
use crate::aligned::{ZEROES_LENGTH, zeroes};
use crate::progress::{Phase, Watch};
use crate::run::Pass;
use crate::target::{Target, write_all};
use std::ops::ControlFlow;

pub(super) fn run(target: &dyn Target, from: u64, watch: &dyn Watch, kept: &dyn Fn(u64)) -> Attempt {
    let pass = Pass {
        phase: Phase::Erasing,
        method: Some(Method::Overwrite),
        total: target.size(),
        chunk: ZEROES_LENGTH as u64,
        lanes: target.lanes(),
        watch,
    };
    parts::run(&pass, target, from, kept, || {
        |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
            let part = &zeroes()[..usize::try_from(length).unwrap_or(ZEROES_LENGTH)];
            write_all(target, part, offset, count)?;
            Ok(ControlFlow::Continue(()))
        }
    })
}
