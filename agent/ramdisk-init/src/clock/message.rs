//! The 48 bytes of SNTP (RFC 4330, section 4). Pure.

use std::time::Duration;

/// Bytes of a message without extensions.
pub(super) const LENGTH: usize = 48;
/// Leap indicator 0, version 4, mode 3: a client.
const QUESTION: u8 = 4 << 3 | 3;
/// Mode of a server.
const SERVER: u8 = 4;
/// Versions that have this form.
const VERSIONS: std::ops::RangeInclusive<u8> = 3..=4;
/// Leap indicator of a server whose own clock is not set.
const UNSET: u8 = 3;
/// Strata of servers with a clock; 0 is a refusal.
const STRATA: std::ops::RangeInclusive<u8> = 1..=15;
/// Seconds from 1900 to 1970.
const EPOCH: u64 = 2_208_988_800;
/// Seconds of an era; timestamps of the next one (from 2036) have a low first bit (RFC 4330, section 3).
const ERA: u64 = 1 << 32;
/// 2026-01-01, before which this program did not exist.
const EARLIEST: u64 = 1_767_225_600;

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The time since 1970 when the server sent it.
    Time(Duration),
    /// No answer to our question.
    Foreign,
    /// The server's answer, and why it is of no use.
    Useless(&'static str),
}

/// A question. The server repeats `nonce`, which stands where the time of sending would: the time of this machine is not sent.
pub(super) fn question(nonce: [u8; 8]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[0] = QUESTION;
    bytes[40..].copy_from_slice(&nonce);
    bytes
}

/// What a datagram says to the question with this nonce.
pub(super) fn answer(datagram: &[u8], nonce: [u8; 8]) -> Answer {
    let Some(bytes) = datagram.first_chunk::<LENGTH>() else { return Answer::Foreign };
    if bytes[24..32] != nonce {
        return Answer::Foreign;
    }
    let (leap, version, mode) = (bytes[0] >> 6, bytes[0] >> 3 & 7, bytes[0] & 7);
    if mode != SERVER || !VERSIONS.contains(&version) {
        return Answer::Useless("it is no answer of a server of version 3 or 4");
    }
    if leap == UNSET || !STRATA.contains(&bytes[1]) {
        return Answer::Useless("the server has no time (leap indicator, stratum)");
    }
    let part =
        |at: usize| u64::from(u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
    let (seconds, fraction) = (part(40), part(44));
    if (seconds, fraction) == (0, 0) {
        return Answer::Useless("the server sent no time");
    }
    let era = if seconds >= ERA / 2 { 0 } else { ERA };
    let Some(since_1970) = (seconds + era).checked_sub(EPOCH).filter(|seconds| *seconds >= EARLIEST) else {
        return Answer::Useless("the server's time is before 2026");
    };
    Answer::Time(Duration::from_secs(since_1970) + Duration::from_nanos((fraction * 1_000_000_000) >> 32))
}

/// A server's answer, for tests.
#[cfg(test)]
pub(super) fn reply(question: &[u8; LENGTH], time: Duration) -> Vec<u8> {
    let mut bytes = vec![0; LENGTH];
    bytes[0] = 4 << 3 | SERVER;
    bytes[1] = 2;
    bytes[24..32].copy_from_slice(&question[40..]);
    let seconds = (time.as_secs() + EPOCH) % ERA;
    bytes[40..44].copy_from_slice(&u32::try_from(seconds).expect("in an era").to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONCE: [u8; 8] = *b"12345678";
    const THEN: Duration = Duration::from_secs(1_800_000_000);

    fn sound() -> Vec<u8> {
        reply(&question(NONCE), THEN)
    }

    fn with(at: usize, value: u8) -> Answer {
        let mut bytes = sound();
        bytes[at] = value;
        answer(&bytes, NONCE)
    }

    #[test]
    fn the_time_is_read_in_both_eras() {
        assert_eq!(answer(&sound(), NONCE), Answer::Time(THEN));
        assert_eq!(with(44, 0x80), Answer::Time(THEN + Duration::from_millis(500)));
        let later = Duration::from_secs(2_200_000_000);
        assert_eq!(answer(&reply(&question(NONCE), later), NONCE), Answer::Time(later));
        let mut extended = sound();
        extended.extend([7; 100]);
        assert_eq!(answer(&extended, NONCE), Answer::Time(THEN));
    }

    #[test]
    fn an_answer_to_another_question_is_foreign() {
        assert_eq!(answer(&sound(), *b"12345679"), Answer::Foreign);
        assert_eq!(answer(&sound()[..47], NONCE), Answer::Foreign);
        assert_eq!(answer(&question(NONCE), NONCE), Answer::Foreign);
    }

    #[test]
    fn a_server_without_the_time_is_not_believed() {
        let useless = |answer| matches!(answer, Answer::Useless(_));
        // A client, version 2, an unset clock, a refusal, no clock, 1900.
        for (at, value) in
            [(0, 4 << 3 | 3), (0, 2 << 3 | 4), (0, 3 << 6 | 4 << 3 | 4), (1, 0), (1, 16), (40, 0x80)]
        {
            assert!(useless(with(at, value)), "{at} {value}");
        }
        let mut zero = sound();
        zero[40..].fill(0);
        assert!(useless(answer(&zero, NONCE)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_of_some_kind(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            if let Answer::Time(time) = answer(&bytes, NONCE) {
                prop_assert!(time.as_secs() >= EARLIEST);
            }
            let mut ours = bytes;
            ours.resize(LENGTH, 0);
            ours[24..32].copy_from_slice(&NONCE);
            prop_assert_ne!(answer(&ours, NONCE), Answer::Foreign);
        }
    }
}
