//! Reading a disk back after it was erased.

use crate::content::Content;
use crate::fault::Fault;
use crate::marker::Markers;
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
    /// Markers that were on the disk before the erase, and read back there.
    pub markers: u64,
    /// Those of them that are still there, whole or in part.
    pub markers_found: u64,
    /// What the places of samples and markers were drawn from, where this process has drawn any.
    pub seed: Option<SampleSeed>,
    /// What the drive's own log reports of the operation, where it keeps one.
    pub device_status: Option<&'static str>,
    /// Whether the disk passed.
    pub passed: bool,
}

/// What an erase must be verified by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredVerification {
    /// Nothing. What can be looked at is, and must not contradict.
    None,
    /// Reading, or the log of the drive that reports the end of the operation where nothing is left to compare.
    #[default]
    Device,
    /// Reading.
    Read,
}

impl RequiredVerification {
    /// All of them, ascending.
    pub const ALL: [Self; 3] = [Self::None, Self::Device, Self::Read];

    /// The word for settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Device => "device",
            Self::Read => "read",
        }
    }

    /// The requirement of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|required| required.as_str() == word)
    }
}

/// How much of a disk was read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All of it.
    Full,
    /// The samples and markers.
    Sampled,
    /// Nothing that could be compared; the drive's own log reports that the operation succeeded.
    DeviceAttested,
    /// Nothing that could be compared, and no log reports anything.
    Nothing,
    /// The places where signatures are.
    Signatures,
}

impl Coverage {
    /// The word for records.
    pub fn as_str(self) -> &'static str {
        match self {
            Coverage::Full => "full",
            Coverage::Sampled => "sampled",
            Coverage::DeviceAttested => "device-attested",
            Coverage::Nothing => "none",
            Coverage::Signatures => "signatures",
        }
    }
}

impl Verification {
    /// Whether it is as much as is required.
    pub(crate) fn suffices(&self, required: RequiredVerification) -> bool {
        match self.kind {
            Coverage::Full | Coverage::Sampled | Coverage::Signatures => self.passed,
            Coverage::DeviceAttested => self.passed && required <= RequiredVerification::Device,
            Coverage::Nothing => required == RequiredVerification::None,
        }
    }

    /// Why it does not suffice, in words.
    pub(crate) fn complaint(&self) -> String {
        let (mismatched, read) = (self.mismatched_bytes, self.bytes_read);
        let (unchanged, samples) = (self.unchanged_samples, self.samples);
        let unseen = "the disk does not read as zeroes, and no sample shows that it has changed";
        match self.kind {
            Coverage::Nothing => return unseen.to_owned(),
            Coverage::DeviceAttested => {
                return format!("{unseen}: only the drive says so, and reading is required");
            }
            Coverage::Full | Coverage::Sampled | Coverage::Signatures => {}
        }
        let wrong = match self.expected {
            ExpectedContent::Zeroes | ExpectedContent::Changed => "not zero",
            ExpectedContent::Pattern | ExpectedContent::Random => "not what was written",
        };
        format!(
            "{mismatched} bytes are {wrong} in the first {read} read, \
             {unchanged} of {samples} sampled sectors are unchanged, {} of {} markers are still there",
            self.markers_found, self.markers
        )
    }
}

/// What is known of a disk from before an erase, and what its drive says since.
pub(crate) struct Known<'a> {
    pub(crate) samples: &'a Samples,
    pub(crate) markers: &'a Markers,
    pub(crate) device_status: Option<&'static str>,
}

/// Read the disk back and hold it against `content`, which is what `method` promises, and against what is known of it.
///
/// A method that promises only change is held to more where the disk gives more: when all of it reads as
/// zeroes, the verification says so. Otherwise the samples and markers alone decide, and where there are none, nothing
/// was verified: the drive may attest what it did.
///
/// # Errors
/// [`Fault`] when the disk cannot be read, or on cancellation.
pub(crate) fn verify(
    target: &dyn Target,
    method: Method,
    content: Content,
    known: &Known<'_>,
    watch: &dyn Watch,
) -> Result<Verification, Fault> {
    let Known { samples, markers, device_status } = *known;
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
        markers: markers.count(),
        markers_found: 0,
        seed: samples.seed().or(markers.seed()),
        device_status,
        passed: all_as_written,
    };
    if all_as_written || method.expected_content() != ExpectedContent::Changed {
        return Ok(full);
    }
    let samples = full.samples + samples.changed_uniform(target, watch)?;
    let markers_found = markers.found(target, watch)?;
    // Where nothing was looked at, nothing was seen to change.
    let kind = match (samples + full.markers, device_status) {
        (0, Some(_)) => Coverage::DeviceAttested,
        (0, None) => Coverage::Nothing,
        _ => Coverage::Sampled,
    };
    let passed = kind != Coverage::Nothing && unchanged_samples == 0 && markers_found == 0;
    let expected = ExpectedContent::Changed;
    Ok(Verification { kind, expected, mismatched_bytes: 0, samples, markers_found, passed, ..full })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(kind: Coverage, passed: bool) -> Verification {
        Verification {
            kind,
            bytes_read: 4096,
            expected: ExpectedContent::Zeroes,
            mismatched_bytes: 7,
            unchanged_samples: 1,
            samples: 3,
            markers: 5,
            markers_found: 2,
            seed: None,
            device_status: None,
            passed,
        }
    }

    #[test]
    fn words_of_settings_and_records() {
        use RequiredVerification as Required;
        for (required, word) in
            [(Required::None, "none"), (Required::Device, "device"), (Required::Read, "read")]
        {
            assert_eq!((required.as_str(), Required::of(word)), (word, Some(required)));
        }
        assert_eq!((Required::of("all"), Required::default()), (None, Required::Device));
        for (kind, word) in [
            (Coverage::Full, "full"),
            (Coverage::Sampled, "sampled"),
            (Coverage::DeviceAttested, "device-attested"),
            (Coverage::Nothing, "none"),
            (Coverage::Signatures, "signatures"),
        ] {
            assert_eq!(kind.as_str(), word);
        }
    }

    #[test]
    fn what_was_read_suffices_if_it_passed_and_what_was_not_only_where_it_is_not_required() {
        for (kind, passed, suffices) in [
            (Coverage::Full, true, [true; 3]),
            (Coverage::Full, false, [false; 3]),
            (Coverage::Sampled, true, [true; 3]),
            (Coverage::Sampled, false, [false; 3]),
            (Coverage::Signatures, true, [true; 3]),
            (Coverage::Signatures, false, [false; 3]),
            (Coverage::DeviceAttested, true, [true, true, false]),
            (Coverage::DeviceAttested, false, [false; 3]),
            (Coverage::Nothing, false, [true, false, false]),
        ] {
            let judged = RequiredVerification::ALL.map(|required| seen(kind, passed).suffices(required));
            assert_eq!(judged, suffices, "{kind:?} {passed}");
        }
    }

    #[test]
    fn a_complaint_says_what_was_seen() {
        let complaint = |kind, expected| Verification { expected, ..seen(kind, false) }.complaint();
        let unseen = "the disk does not read as zeroes, and no sample shows that it has changed";
        let (zeroes, random) = (ExpectedContent::Zeroes, ExpectedContent::Random);
        assert_eq!(complaint(Coverage::Nothing, zeroes), unseen);
        let attested = complaint(Coverage::DeviceAttested, zeroes);
        assert_eq!(attested, format!("{unseen}: only the drive says so, and reading is required"));
        for (expected, wrong) in [(zeroes, "not zero"), (random, "not what was written")] {
            let words = format!(
                "7 bytes are {wrong} in the first 4096 read, 1 of 3 sampled sectors are unchanged, 2 of 5 markers \
                 are still there"
            );
            assert_eq!(complaint(Coverage::Full, expected), words);
        }
    }
}
