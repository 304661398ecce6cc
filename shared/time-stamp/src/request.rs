//! The request.

use crate::DIGEST;

/// `TimeStampReq` for a SHA-256 digest, in DER. It asks for the authority's certificate in the reply, and names neither a
/// policy nor a nonce: a stamp of this digest is as good whenever it was made.
pub fn query(digest: &[u8; DIGEST]) -> Vec<u8> {
    // SEQUENCE { version 1, SEQUENCE { SEQUENCE { id-sha256, NULL }, digest }, certReq TRUE }
    const SHA256: [u8; 15] =
        [0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00];
    let head: &[u8] = &[0x30, 0x39, 0x02, 0x01, 0x01, 0x30, 0x31];
    [head, &SHA256, &[0x04, 0x20], digest, &[0x01, 0x01, 0xff]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lengths_are_those_of_the_content() {
        let query = query(&[7; DIGEST]);
        assert_eq!(usize::from(query[1]), query.len() - 2);
        assert_eq!(usize::from(query[6]), 15 + 2 + DIGEST);
    }
}
