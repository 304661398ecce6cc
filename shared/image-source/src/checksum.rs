//! What the image must be: sha256 or sha512, as a value or in a file of checksums.

use crate::url::ImageUrl;
use std::fmt;

/// Longest file of checksums taken.
pub const SUMS_BYTES: usize = 1 << 20;

/// A digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// MD5, which proves nothing; only where an operator allows it.
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// `sha256`
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    /// Hexadecimal digits of a value.
    fn digits(self) -> usize {
        match self {
            Algorithm::Md5 => 32,
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }

    fn of_digits(digits: usize) -> Option<Self> {
        [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512].into_iter().find(|one| one.digits() == digits)
    }

    /// By Ironic's name.
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('-', "");
        [Algorithm::Md5, Algorithm::Sha256, Algorithm::Sha512].into_iter().find(|one| one.as_str() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A digest to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Lower case hexadecimal.
    pub value: String,
}

/// Where the digest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChecksumSource {
    /// Here.
    Value(Checksum),
    /// In a file of checksums, in the line of the image's base name.
    Sums {
        /// The file.
        url: ImageUrl,
        /// Algorithm, where it was said.
        algorithm: Option<Algorithm>,
    },
}

impl ChecksumSource {
    /// From what Ironic sends: `os_hash_algo` and `os_hash_value` win, else `checksum`, whose length says which algorithm.
    /// Each may be the URL of a file of checksums.
    ///
    /// # Errors
    /// Nothing to compare with, an algorithm that is not known, a value that is none, or MD5 where it is not allowed.
    pub fn of(
        algorithm: Option<&str>,
        value: Option<&str>,
        checksum: Option<&str>,
        allow_md5: bool,
    ) -> Result<Self, String> {
        let algorithm = match algorithm {
            Some(name) => {
                let known = || format!("{name:?} is not known; there are sha256 and sha512");
                Some(Algorithm::of(name).ok_or_else(known)?)
            }
            None => None,
        };
        let (algorithm, text) = match (algorithm, value, checksum) {
            (Some(algorithm), Some(value), _) => (Some(algorithm), value),
            (Some(_), None, _) => return Err("os_hash_algo is given without os_hash_value".to_owned()),
            (None, Some(_), _) => return Err("os_hash_value is given without os_hash_algo".to_owned()),
            (None, None, Some(checksum)) => (None, checksum),
            (None, None, None) => {
                return Err("none is given, and an unchecked image is not written".to_owned());
            }
        };
        if text.contains("://") {
            let url = text.parse().map_err(|problem| format!("the URL of the file: {problem}"))?;
            return Ok(ChecksumSource::Sums { url, algorithm }).and_then(|sums| sums.allowed(allow_md5));
        }
        Self::Value(Checksum::parse(algorithm, text)?).allowed(allow_md5)
    }

    fn allowed(self, allow_md5: bool) -> Result<Self, String> {
        let algorithm = match &self {
            ChecksumSource::Value(checksum) => Some(checksum.algorithm),
            ChecksumSource::Sums { algorithm, .. } => *algorithm,
        };
        refuse_md5(algorithm, allow_md5).map(|()| self)
    }
}

fn refuse_md5(algorithm: Option<Algorithm>, allow_md5: bool) -> Result<(), String> {
    if algorithm == Some(Algorithm::Md5) && !allow_md5 {
        return Err("md5 proves nothing; give sha256 or sha512".to_owned());
    }
    Ok(())
}

impl Checksum {
    /// A value, whose length says which algorithm where it was not said.
    fn parse(algorithm: Option<Algorithm>, text: &str) -> Result<Self, String> {
        let value = text.trim().to_ascii_lowercase();
        let hex = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (hex, Algorithm::of_digits(value.len()), algorithm) {
            (true, Some(found), said) if said.is_none_or(|said| said == found) => {
                Ok(Self { algorithm: found, value })
            }
            (_, _, Some(said)) => Err(format!("the value is no {said}")),
            _ => Err("the value is no sha256 or sha512".to_owned()),
        }
    }
}

/// The digest of `name` in a file of checksums: `DIGEST  NAME`, `DIGEST *NAME`, `SHA256 (NAME) = DIGEST`; a file with
/// one digest and no names is that of its only file. `#` begins a comment.
///
/// # Errors
/// Another number of digests than one.
pub fn find(
    text: &[u8],
    name: &str,
    algorithm: Option<Algorithm>,
    allow_md5: bool,
) -> Result<Checksum, String> {
    if text.len() > SUMS_BYTES {
        return Err(format!("the file has more than {SUMS_BYTES} bytes"));
    }
    let text = std::str::from_utf8(text).map_err(|_| "the file is not text".to_owned())?;
    let mut found: Vec<Checksum> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((said, digest, of)) = parts(line) else { continue };
        let wanted = of.is_none_or(|of| base_name(of) == name);
        let Ok(checksum) = Checksum::parse(said, digest) else { continue };
        if wanted && algorithm.is_none_or(|algorithm| algorithm == checksum.algorithm) {
            found.push(checksum);
        }
    }
    // A file may have more than one kind of digest of a file: the strongest counts.
    let best = found.iter().map(|one| one.algorithm.digits()).max();
    found.retain(|one| Some(one.algorithm.digits()) == best);
    found.dedup();
    match found.as_slice() {
        [one] => refuse_md5(Some(one.algorithm), allow_md5).map(|()| one.clone()),
        [] => Err(format!("the file has no digest of {name:?}")),
        _ => Err(format!("the file has more than one digest of {name:?}")),
    }
}

/// Algorithm where said, digest, name where said.
fn parts(line: &str) -> Option<(Option<Algorithm>, &str, Option<&str>)> {
    if let Some((head, digest)) = line.rsplit_once(" = ")
        && let Some((algorithm, name)) = head.split_once(" (")
        && let Some(name) = name.strip_suffix(')')
    {
        return Some((Some(Algorithm::of(algorithm.trim())?), digest.trim(), Some(name)));
    }
    match line.split_once(char::is_whitespace) {
        None => Some((None, line, None)),
        Some((digest, name)) => {
            let name = name.trim_start();
            Some((None, digest, Some(name.strip_prefix('*').unwrap_or(name))))
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(digit: char, algorithm: Algorithm) -> String {
        digit.to_string().repeat(algorithm.digits())
    }

    #[test]
    fn a_value_must_be_of_its_algorithm() {
        let (sha256, md5) = (hex('a', Algorithm::Sha256), hex('b', Algorithm::Md5));
        let value = |algorithm: Option<&str>, value: Option<&str>, checksum: Option<&str>| {
            ChecksumSource::of(algorithm, value, checksum, false)
        };
        let expected = Checksum { algorithm: Algorithm::Sha256, value: sha256.clone() };
        assert_eq!(
            value(Some("sha256"), Some(&sha256.to_uppercase()), Some(&md5)),
            Ok(ChecksumSource::Value(expected.clone()))
        );
        assert_eq!(value(None, None, Some(&sha256)), Ok(ChecksumSource::Value(expected)));
        let problems = [
            (value(Some("sha512"), Some(&sha256), None), "no sha512"),
            (value(Some("crc"), Some(&sha256), None), "crc"),
            (value(None, Some(&sha256), Some(&sha256)), "without os_hash_algo"),
            (value(Some("sha256"), None, Some(&sha256)), "without os_hash_value"),
            (value(None, None, None), "unchecked"),
            (value(None, None, Some("zz")), "no sha256"),
            (value(None, None, Some(&md5)), "md5 proves nothing"),
            (value(Some("md5"), Some("http://h/MD5SUMS"), None), "md5 proves nothing"),
        ];
        for (result, expected) in problems {
            let problem = result.expect_err(expected);
            assert!(problem.contains(expected), "{problem}");
        }
        assert!(ChecksumSource::of(None, None, Some(&md5), true).is_ok());
    }

    #[test]
    fn the_line_of_the_image_is_found_in_every_form() {
        let (a, b) = (hex('a', Algorithm::Sha256), hex('b', Algorithm::Sha256));
        let of = |text: &str| find(text.as_bytes(), "x.raw", None, false).map(|found| found.value);
        assert_eq!(of(&format!("# {b}  x.raw\n{b}  y.raw\n{a}  x.raw\n")), Ok(a.clone()));
        assert_eq!(of(&format!("{a} *./dir/x.raw\r\n{b} *x.raw.sig")), Ok(a.clone()));
        assert_eq!(of(&format!("SHA256 (x.raw) = {a}\nSHA256 (y) = {b}")), Ok(a.clone()));
        assert_eq!(of(&a), Ok(a.clone()));
        let strong = hex('c', Algorithm::Sha512);
        assert_eq!(of(&format!("{a}  x.raw\n{strong}  x.raw")), Ok(strong));
        assert!(of(&format!("{a}  x.raw\n{b}  x.raw")).expect_err("two").contains("more than one"));
        assert!(of(&format!("{a}  y.raw")).expect_err("none").contains("no digest of \"x.raw\""));
        let weak = hex('d', Algorithm::Md5);
        assert!(of(&format!("{weak}  x.raw")).expect_err("weak").contains("md5"));
        assert!(find(&vec![b'a'; SUMS_BYTES + 1], "x", None, false).is_err());
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in ".{0,300}", name in ".{0,10}") {
            if let Ok(found) = find(text.as_bytes(), &name, None, true) {
                prop_assert!(text.to_lowercase().contains(&found.value));
            }
        }
    }
}
