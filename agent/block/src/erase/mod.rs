//! Erasing a disk: the methods one after the other, each held to what it promises by reading back.

mod drive_side;
mod overwrite;
mod parts;
mod range;
mod record;
mod resume;

pub(crate) use record::ending;
pub use record::{Ending, Record};
pub use resume::resume;

use crate::checkpoint::Checkpoint;
use crate::content::{Content, Seed};
use crate::fault::Fault;
use crate::metadata;
use crate::method::{ExpectedContent, Method};
use crate::progress::Watch;
use crate::sample::Samples;
use crate::target::Target;
use crate::verify::{Verification, verify};
use record::{Attempt, untried};

/// Erase a disk with the first of `methods` (of [`crate::methods()`]) that works and whose read-back agrees.
///
/// Blocks until the end. `watch` receives progress and is asked for cancellation four times a second. A drive-side
/// format cannot be interrupted: cancellation takes effect when it has ended. A repeated call starts from the
/// beginning; [`resume`] goes on.
pub fn erase(target: &dyn Target, methods: &[Method], watch: &dyn Watch) -> Record {
    match Samples::take(target, watch) {
        Ok(samples) => work(target, methods, &samples, None, watch),
        Err(fault) => Record { ending: ending(target, &fault), ..untried() },
    }
}

/// Try the methods, the first of them from `from` on.
fn work(
    target: &dyn Target,
    methods: &[Method],
    samples: &Samples,
    mut from: Option<u64>,
    watch: &dyn Watch,
) -> Record {
    let mut record = untried();
    let seed = match Seed::new() {
        Ok(seed) => seed,
        Err(source) => {
            let fault = Fault::Command { what: "asking the kernel for random bytes", source };
            return Record { ending: ending(target, &fault), ..record };
        }
    };
    for &method in methods {
        if let (Some(previous), Ending::Failed(reason)) = (record.method, &record.ending) {
            tracing::warn!(device = target.name(), method = previous.as_str(), %reason, "erase method given up");
            record.fallbacks.push((previous, reason.clone()));
        }
        record.method = Some(method);
        record.resumed_from = from.take();
        let (bytes, result) = method.run(target, record.resumed_from.unwrap_or(0), samples, seed, watch);
        record.bytes_erased = bytes;
        let result =
            result.and_then(|()| confirm(target, method, seed, samples, watch, &mut record.verification));
        match result {
            Ok(()) => record.ending = Ending::Erased,
            Err(fault) => record.ending = ending(target, &fault),
        }
        if !matches!(record.ending, Ending::Failed(_)) || !target.present() {
            break;
        }
    }
    record
}

/// Flush, read back, and see that nothing is recognised on the disk any more.
fn confirm(
    target: &dyn Target,
    method: Method,
    seed: Seed,
    samples: &Samples,
    watch: &dyn Watch,
    seen: &mut Option<Verification>,
) -> Result<(), Fault> {
    target.flush().map_err(|source| Fault::Command { what: "flush", source })?;
    let verification = seen.insert(verify(target, method, Content::after(method, seed), samples, watch)?);
    if !verification.passed {
        return Err(Fault::Mismatch(verification.complaint()));
    }
    // What a drive leaves behind instead of zeroes, and noise, may look like a partition table by chance.
    let by_chance = matches!(verification.expected, ExpectedContent::Changed | ExpectedContent::Random);
    let result = metadata::none_left(target, by_chance);
    if result.is_err() {
        verification.passed = false;
    }
    result
}

impl Method {
    fn run(
        self,
        target: &dyn Target,
        from: u64,
        samples: &Samples,
        seed: Seed,
        watch: &dyn Watch,
    ) -> Attempt {
        let kept = |offset| watch.checkpoint(Checkpoint { method: self, offset, samples: samples.kept() });
        match self {
            Method::ZeroOut => range::zero_out(target, from, watch, &kept),
            Method::Overwrite => overwrite::run(target, from, watch, &kept),
            Method::OverwriteWith(passes) => overwrite::passes(target, passes, seed, watch),
            Method::Discard | Method::SecureDiscard => range::discard(self, target, watch),
            _ => drive_side::run(self, target, watch),
        }
    }
}
