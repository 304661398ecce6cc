//! Reading a disk back after it was erased.

use crate::content::Content;
use crate::fault::Fault;
use crate::method::{ExpectedContent, Method};
use crate::pass::Pass;
use crate::pool::{LARGEST, lend};
use crate::progress::{Phase, Watch};
use crate::sample::{SampleSeed, Samples};
use crate::target::{Target, read_exact};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was seen when a disk was read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// What was read.
    pub kind: Coverage,
    /// Bytes read back.
    pub bytes_read: u64,
    /// What the content was held against.
    pub expected: ExpectedContent,
    /// Bytes seen that are other than expected. Reading ends with the first chunk that has any.
    pub mismatched_bytes: u64,
    /// Sampled sectors that still read as before the erase.
    pub unchanged_samples: u64,
    /// Sectors sampled before the erase, none of them of one byte repeated; and where a method promises only change, those
    /// of one byte repeated that have changed.
    pub samples: u64,
    /// What their places were drawn from, where this process has sampled the disk.
    pub seed: Option<SampleSeed>,
    /// Whether the disk passed.
    pub passed: bool,
}

/// How much of a disk was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All of it.
    Full,
    /// The samples.
    Sampled,
    /// The places where signatures are.
    Signatures,
}

impl Coverage {
    /// The word for records.
    pub fn as_str(self) -> &'static str {
        match self {
            Coverage::Full => "full",
            Coverage::Sampled => "sampled",
            Coverage::Signatures => "signatures",
        }
    }
}

impl Verification {
    /// Why it did not pass, in words.
    pub(crate) fn complaint(&self) -> String {
        let (mismatched, read) = (self.mismatched_bytes, self.bytes_read);
        let (unchanged, samples) = (self.unchanged_samples, self.samples);
        if self.kind == Coverage::Sampled && samples == 0 {
            return "the disk does not read as zeroes, and no sample shows that it has changed".to_owned();
        }
        let wrong = match self.expected {
            ExpectedContent::Zeroes | ExpectedContent::Changed => "not zero",
            ExpectedContent::Pattern | ExpectedContent::Random => "not what was written",
        };
        format!(
            "{mismatched} bytes are {wrong} in the first {read} read, \
             {unchanged} of {samples} sampled sectors are unchanged"
        )
    }
}

/// Read the disk back and hold it against `content`, which is what `method` promises, and against the samples.
///
/// A method that promises only change is held to more where the disk gives more: when all of it reads as
/// zeroes, the verification says so. Otherwise the samples alone decide.
///
/// # Errors
/// [`Fault`] when the disk cannot be read, or on cancellation.
pub(crate) fn verify(
    target: &dyn Target,
    method: Method,
    content: Content,
    samples: &Samples,
    watch: &dyn Watch,
) -> Result<Verification, Fault> {
    let mismatched = AtomicU64::new(0);
    let erasing = Pass::erasing(method, target, LARGEST as u64, watch);
    let pass = Pass { phase: Phase::Verifying, ..erasing };
    let passed = pass.run(lend(target.lanes()).into_iter().map(|mut buffer| {
        let mismatched = &mismatched;
        move |offset: u64, length: u64, count: &mut dyn FnMut(u64)| {
            let (mut at, end) = (offset, offset + length);
            while at < end {
                let length = (end - at).min(buffer.len() as u64);
                let part = &mut buffer[..usize::try_from(length).unwrap_or(LARGEST)];
                read_exact(target, part, at)?;
                count(length);
                let other = content.differing(part, at);
                if other > 0 {
                    mismatched.fetch_add(other, Ordering::AcqRel);
                    return Ok(ControlFlow::Break(()));
                }
                at += length;
            }
            Ok(ControlFlow::Continue(()))
        }
    }));
    passed.result?;
    let mismatched_bytes = mismatched.into_inner();
    let all_as_written = mismatched_bytes == 0 && passed.done == target.size();
    // No sample was uniform, and none can be noise that was made later: each has changed.
    let unchanged_samples = if all_as_written { 0 } else { samples.unchanged(target, watch)? };
    let full = Verification {
        kind: Coverage::Full,
        bytes_read: passed.done,
        expected: if method.expected_content() == ExpectedContent::Changed {
            ExpectedContent::Zeroes
        } else {
            method.expected_content()
        },
        mismatched_bytes,
        unchanged_samples,
        samples: samples.count(),
        seed: samples.seed(),
        passed: all_as_written,
    };
    if all_as_written || method.expected_content() != ExpectedContent::Changed {
        return Ok(full);
    }
    let samples = full.samples + samples.changed_uniform(target, watch)?;
    Ok(Verification {
        kind: Coverage::Sampled,
        expected: ExpectedContent::Changed,
        mismatched_bytes: 0,
        samples,
        // Where nothing was looked at, nothing was seen to change.
        passed: unchanged_samples == 0 && samples > 0,
        ..full
    })
}
