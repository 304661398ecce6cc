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
use crate::marker::Markers;
use crate::metadata;
use crate::method::{ExpectedContent, Method};
use crate::progress::Watch;
use crate::sample::Samples;
use crate::target::Target;
use crate::verify::{Coverage, Known, RequiredVerification, Verification, verify};
use record::{DriveAttempt, untried};

/// Erase a disk with the first of `methods` (of [`crate::methods()`]) that works and whose read-back agrees.
///
/// Blocks until the end. `watch` receives progress and is asked for cancellation four times a second. A drive-side
/// format cannot be interrupted: cancellation takes effect when it has ended. A repeated call starts from the
/// beginning; [`resume`] goes on.
pub fn erase(target: &dyn Target, methods: &[Method], watch: &dyn Watch) -> Record {
    erase_requiring(target, methods, RequiredVerification::default(), watch)
}

/// As [`erase()`], with another verification than the default one.
pub fn erase_requiring(
    target: &dyn Target,
    methods: &[Method],
    required: RequiredVerification,
    watch: &dyn Watch,
) -> Record {
    match Samples::take(target, watch) {
        Ok(samples) => work(target, methods, required, &samples, None, watch),
        Err(fault) => Record { ending: ending(target, &fault), ..untried() },
    }
}

/// Try the methods, the first of them from `from` on.
fn work(
    target: &dyn Target,
    methods: &[Method],
    required: RequiredVerification,
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
        let markers = match method.markers(target, samples, watch) {
            Ok(markers) => markers,
            Err(fault) => return Record { ending: ending(target, &fault), ..record },
        };
        let (bytes, result) = method.run(target, record.resumed_from.unwrap_or(0), samples, seed, watch);
        record.bytes_erased = bytes;
        let result = result.and_then(|device_status| {
            target.flush().map_err(|source| Fault::Command { what: "flush", source })?;
            let known = Known { samples, markers: &markers, device_status };
            let seen = verify(target, method, Content::after(method, seed), &known, watch)?;
            confirm(target, required, record.verification.insert(seen))
        });
        let gone = match result {
            Ok(()) => {
                record.ending = Ending::Erased;
                false
            }
            Err(fault) => {
                record.ending = ending(target, &fault);
                fault.is_of_gone_disk()
            }
        };
        if gone || !matches!(record.ending, Ending::Failed(_)) || !target.present() {
            break;
        }
    }
    record
}

/// See that what was read back suffices, and that nothing is recognised on the disk any more.
fn confirm(
    target: &dyn Target,
    required: RequiredVerification,
    verification: &mut Verification,
) -> Result<(), Fault> {
    if !verification.suffices(required) {
        return Err(Fault::Mismatch(verification.complaint()));
    }
    // What a drive leaves behind instead of zeroes, and noise, may look like a partition table by chance. Where nothing
    // else shows that the content has changed, a table speaks against it.
    let by_chance =
        verification.kind == Coverage::Sampled || verification.expected == ExpectedContent::Random;
    let result = metadata::none_left(target, by_chance);
    if result.is_err() {
        verification.passed = false;
    }
    result
}

impl Method {
    /// The markers that are written before it, if no particular content is expected after it.
    fn markers(self, target: &dyn Target, samples: &Samples, watch: &dyn Watch) -> Result<Markers, Fault> {
        match self.expected_content() {
            ExpectedContent::Changed => Markers::write(target, self, samples, watch),
            _ => Ok(Markers::default()),
        }
    }

    fn run(
        self,
        target: &dyn Target,
        from: u64,
        samples: &Samples,
        seed: Seed,
        watch: &dyn Watch,
    ) -> DriveAttempt {
        let kept = |offset| watch.checkpoint(Checkpoint { method: self, offset, samples: samples.kept() });
        let (bytes, result) = match self {
            Method::ZeroOut => range::zero_out(target, from, watch, &kept),
            Method::Overwrite => overwrite::run(target, from, watch, &kept),
            Method::OverwriteWith(passes) => overwrite::passes(target, passes, seed, watch),
            Method::Discard | Method::SecureDiscard => range::discard(self, target, watch),
            _ => return drive_side::run(self, target, watch),
        };
        (bytes, result.map(|()| None))
    }
}
