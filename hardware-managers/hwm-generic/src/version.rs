//! Which of two firmware versions is newer, whatever form vendors give them.
//!
//! A version is a row of numbers and words; everything else only separates. Numbers compare by value, words by
//! their letters without case, a number is newer than a word, and a longer row is newer than its beginning:
//! `2.9 < 2.10 < 2.10a < 2.10.1`. Dates of SMBIOS (`MM/DD/YYYY`) compare as dates.

use std::cmp::Ordering;

/// A part of a version. Words before numbers.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Word(String),
    /// Without leading zeros; of two, the one with more digits is larger.
    Number(usize, String),
}

/// Compare two versions.
pub fn compare(one: &str, other: &str) -> Ordering {
    parts(one).cmp(&parts(other))
}

fn parts(version: &str) -> Vec<Part> {
    let version = iso_date(version).unwrap_or_else(|| version.to_owned());
    let mut parts = Vec::new();
    let mut rest = version.as_str();
    while let Some(first) = rest.chars().next() {
        let same = |c: char| {
            c.is_ascii_digit() == first.is_ascii_digit() && c.is_alphanumeric() == first.is_alphanumeric()
        };
        let (part, after) = rest.split_at(rest.find(|c| !same(c)).unwrap_or(rest.len()));
        rest = after;
        if first.is_ascii_digit() {
            let digits = part.trim_start_matches('0');
            parts.push(Part::Number(digits.len(), digits.to_owned()));
        } else if first.is_alphanumeric() {
            parts.push(Part::Word(part.to_lowercase()));
        }
    }
    parts
}

/// `03/15/2023`, the form of SMBIOS 2.3 and later (DSP0134 7.1), as `2023-03-15`.
fn iso_date(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.trim().split('/').collect();
    let [month, day, year] = fields[..] else { return None };
    let digits =
        |field: &str, length: usize| field.len() == length && field.bytes().all(|byte| byte.is_ascii_digit());
    (digits(month, 2) && digits(day, 2) && digits(year, 4)).then(|| format!("{year}-{month}-{day}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_of_vendors_are_ordered() {
        for rising in [
            &["2.9", "2.10", "2.10a", "2.10b", "2.10.1", "3"][..],
            &["U30 v2.54 (05/26/2022)", "U30 v2.54 (09/01/2022)", "U30 v2.100 (01/01/2022)"],
            &["GDC5302Q", "GDC5602Q", "GDC5602R"],
            &["12/31/2022", "01/02/2023", "2023-03-15", "10/01/2023"],
            &["9", "18446744073709551616", "18446744073709551617"],
        ] {
            for pair in rising.windows(2) {
                assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            }
        }
        for [one, other] in [["1.02", "1.2"], ["V1-A", "v1.a"], ["03/15/2023", "2023-03-15"]] {
            assert_eq!(compare(one, other), Ordering::Equal, "{one} {other}");
        }
    }

    #[test]
    fn only_the_form_of_smbios_is_a_date() {
        assert_eq!(iso_date(" 03/15/2023 ").as_deref(), Some("2023-03-15"));
        for other in
            ["3/15/2023", "03/5/2023", "03/15/23", "ab/15/2023", "03/cd/2023", "03/15/efgh", "1/2", ""]
        {
            assert_eq!(iso_date(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn it_is_an_order(a in "[0-9a-b./ ]{0,6}", b in "[0-9a-b./ ]{0,6}", c in "[0-9a-b./ ]{0,6}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert!(!(compare(&a, &b).is_le() && compare(&b, &c).is_le()) || compare(&a, &c).is_le());
        }
    }
}
