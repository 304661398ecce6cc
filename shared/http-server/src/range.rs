//! The `Range` header, as far as boot firmware uses it: one range of bytes (RFC 9110, section 14.1.2).

/// What a request wants of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The whole; also for headers that are to be ignored (several ranges, other units, nonsense).
    All,
    /// These bytes, both ends included.
    Part { first: u64, last: u64 },
    /// A range outside the file: 416.
    Nothing,
}

pub(crate) fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some((from, to)) = header.and_then(|h| h.trim().strip_prefix("bytes=")?.split_once('-')) else {
        return Wanted::All;
    };
    let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    let (from, to) = (from.trim(), to.trim());
    if !digits(from) || !digits(to) {
        return Wanted::All;
    }
    match (from.parse::<u64>().ok(), to.parse::<u64>().ok()) {
        (Some(first), last) if last.is_none_or(|last| last >= first) => {
            if first >= length {
                return Wanted::Nothing;
            }
            Wanted::Part { first, last: last.unwrap_or(u64::MAX).min(length - 1) }
        }
        (None, Some(suffix)) if from.is_empty() => {
            if suffix == 0 || length == 0 {
                return Wanted::Nothing;
            }
            Wanted::Part { first: length.saturating_sub(suffix), last: length - 1 }
        }
        _ => Wanted::All,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cases_of_the_rfc() {
        let part = |first, last| Wanted::Part { first, last };
        let table = [
            (None, Wanted::All),
            (Some("bytes=0-499"), part(0, 499)),
            (Some("bytes=500-"), part(500, 999)),
            (Some("bytes=-500"), part(500, 999)),
            (Some("bytes=-5000"), part(0, 999)),
            (Some("bytes=900-5000"), part(900, 999)),
            (Some("bytes=1000-"), Wanted::Nothing),
            (Some("bytes=-0"), Wanted::Nothing),
            (Some("bytes=9-2"), Wanted::All),
            (Some("bytes=0-1,5-6"), Wanted::All),
            (Some("bytes=-"), Wanted::All),
            (Some("lines=1-2"), Wanted::All),
            (Some("bytes=+1-2"), Wanted::All),
        ];
        for (header, expected) in table {
            assert_eq!(wanted(header, 1000), expected, "{header:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_in_the_file(from: u64, to: u64, length: u64, text in ".{0,30}") {
            for header in [format!("bytes={from}-{to}"), format!("bytes=-{to}"), format!("bytes={text}")] {
                if let Wanted::Part { first, last } = wanted(Some(&header), length) {
                    prop_assert!(first <= last && last < length, "{}", header);
                }
            }
        }
    }
}
