//! Zeroes, or what was wanted instead, written over everything, past the page cache.

use super::parts;
use super::record::Attempt;
use crate::aligned::{ZEROES_LENGTH, zeroes};
use crate::content::{Content, Seed};
use crate::fault::Fault;
use crate::method::{Fill, Method, Passes};
use crate::pass::Pass;
use crate::pool::{LARGEST, lend};
use crate::progress::{Progress, Watch, eta};
use crate::target::{Target, write_all};
use crate::temperature::Temperature;
use std::ops::ControlFlow;

pub(super) fn run(target: &dyn Target, from: u64, watch: &dyn Watch, kept: &dyn Fn(u64)) -> Attempt {
    let pass = Pass::erasing(Method::Overwrite, target, ZEROES_LENGTH as u64, watch);
    parts::run(&pass, target, from, kept, target.lanes(), || {
        |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
            let part = &zeroes()[..usize::try_from(length).unwrap_or(ZEROES_LENGTH)];
            write_all(target, part, offset, count)?;
            Ok(ControlFlow::Continue(()))
        }
    })
}

/// Several passes, each on the medium before the next one begins: a drive would otherwise write the last one alone.
pub(super) fn passes(target: &dyn Target, passes: Passes, seed: Seed, watch: &dyn Watch) -> Attempt {
    let count = u64::from(passes.count.get());
    let method = Method::OverwriteWith(passes);
    let mut done = 0;
    for number in 0..count {
        let content = match number + 1 == count {
            true => Content::after(method, seed),
            false => Content::of(Fill::Random, seed, number),
        };
        let several = Several { watch, before: number * target.size(), total: count * target.size() };
        let pass = Pass::erasing(method, target, LARGEST as u64, &several);
        let passed = pass.run(lend(target.lanes()).into_iter().map(|mut buffer| {
            move |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
                let (mut at, end) = (offset, offset + length);
                while at < end {
                    let length = (end - at).min(buffer.len() as u64);
                    let part = &mut buffer[..usize::try_from(length).unwrap_or(LARGEST)];
                    content.make(part, at);
                    write_all(target, part, at, count)?;
                    at += length;
                }
                Ok(ControlFlow::Continue(()))
            }
        }));
        done = passed.done;
        let flushed = || target.flush().map_err(|source| Fault::Command { what: "flush", source });
        if let Err(fault) = passed.result.and_then(|()| flushed()) {
            return (done, Err(fault));
        }
    }
    (done, Ok(()))
}

/// Reports the progress of one pass as a part of all passes.
struct Several<'a> {
    watch: &'a dyn Watch,
    before: u64,
    total: u64,
}

impl Watch for Several<'_> {
    fn progress(&self, seen: Progress) {
        let (done, total) = (self.before + seen.done, self.total);
        self.watch.progress(Progress { done, total, eta: eta(done, total, seen.rate), ..seen });
    }

    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }

    fn resting(&self, temperature: Option<Temperature>) {
        self.watch.resting(temperature);
    }
}
