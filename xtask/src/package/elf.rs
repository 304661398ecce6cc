//! What a program asks of the C library.

use anyhow::{Context, Result};

/// Marks a version of a symbol of glibc in a program's table of strings.
const MARK: &[u8] = b"GLIBC_2.";

/// The newest glibc of which these programs have a symbol: `2.36`. Every name of a version is a string in the file (ELF
/// gABI, symbol versioning); a text of a program that looks like one would only ask for more.
pub fn newest_glibc<'a>(files: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<String> {
    let programs = files.filter(|(_, bytes)| bytes.starts_with(b"\x7fELF"));
    let newest = programs.filter_map(|(_, bytes)| newest(bytes)).max();
    Ok(format!("2.{}", newest.context("no program is linked with glibc")?))
}

fn newest(bytes: &[u8]) -> Option<u32> {
    let mut found = None;
    let mut rest = bytes;
    while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
        rest = &rest[at + MARK.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let minor = std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
        found = found.max(minor);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts_as_a_number() {
        let program: &[u8] = b"\x7fELF..\0GLIBC_2.9\0GLIBC_2.34\0GLIBC_2.2.5\0GLIBC_2.\0";
        let text: &[u8] = b"GLIBC_2.99";
        assert_eq!(newest_glibc([("a", program), ("b", text)].into_iter()).unwrap(), "2.34");
        assert!(newest_glibc([("b", text)].into_iter()).is_err());
    }
}
