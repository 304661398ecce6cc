//! Scalars as Ironic's views write them: nullable texts, and instants as Python formats them.

use model::Timestamp;
use serde_json::Value;
use time::OffsetDateTime;

/// Text or null.
pub fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::from)
}

/// An instant or null.
pub fn at(at: Option<Timestamp>) -> Value {
    at.map_or(Value::Null, |at| Value::String(iso(at)))
}

/// `2026-11-21T02:59:25.688786+00:00`, Python's `isoformat`.
pub fn iso(at: Timestamp) -> String {
    format!("{}+00:00", iso_without_zone(at))
}

/// The same without the zone, as Ironic writes instants into `driver_internal_info`.
pub fn iso_without_zone(at: Timestamp) -> String {
    let nanoseconds = i128::from(at.0) * 1000;
    let instant =
        OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (date, time) = (instant.date(), instant.time());
    let mut out = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    if time.microsecond() != 0 {
        out.push_str(&format!(".{:06}", time.microsecond()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_look_as_pythons() {
        assert_eq!(iso(Timestamp(1_795_229_965_688_786)), "2026-11-21T02:59:25.688786+00:00");
        assert_eq!(iso(Timestamp(1_795_229_965_000_000)), "2026-11-21T02:59:25+00:00");
        assert_eq!(iso_without_zone(Timestamp(0)), "1970-01-01T00:00:00");
        assert_eq!(iso(Timestamp(i64::MAX)), "1970-01-01T00:00:00+00:00");
    }
}
