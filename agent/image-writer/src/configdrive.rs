//! The configuration drive as it comes with a command: an ISO file system, gzipped, in base64.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::Read;

/// Largest one, as in Ironic.
pub const LARGEST: u64 = 64 << 20;
/// What its partition and file system are called.
pub const LABEL: &str = "config-2";

/// The file system in `text`. Not shown in any error.
///
/// # Errors
/// What is wrong with it.
pub fn decode(text: &str) -> Result<Vec<u8>, String> {
    let packed: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let packed = STANDARD.decode(packed).map_err(|_| "it is not base64".to_owned())?;
    unpack(packed)
}

/// The file system in `bytes`, which may be gzipped.
///
/// # Errors
/// What is wrong with it.
pub fn unpack(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let unpacked = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]).take(LARGEST + 1);
        reader.read_to_end(&mut unpacked).map_err(|_| "it is not gzip".to_owned())?;
        unpacked
    } else {
        bytes
    };
    match unpacked.len() as u64 {
        0 => Err("it is empty".to_owned()),
        length if length > LARGEST => Err(format!("it has more than {} MiB", LARGEST >> 20)),
        _ => Ok(unpacked),
    }
}

/// The label of a file system that begins with these bytes, of which 34 KiB are enough: ISO 9660 or FAT.
pub fn label(start: &[u8]) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches([' ', '\0']).to_owned();
    if let Some(volume) = start.get(32768..32768 + 72).filter(|volume| &volume[1..6] == b"CD001") {
        return Some(text(&volume[40..72]));
    }
    let fat = start.get(..512).filter(|boot| boot[510..] == [0x55, 0xaa])?;
    if &fat[82..87] == b"FAT32" {
        return Some(text(&fat[71..82]));
    }
    (&fat[54..57] == b"FAT").then(|| text(&fat[43..54]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(content: &[u8]) -> String {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).expect("packed");
        STANDARD.encode(encoder.finish().expect("packed"))
    }

    #[test]
    fn what_ironic_sends_is_unpacked_and_bounded() {
        assert_eq!(decode(&packed(b"iso")), Ok(b"iso".to_vec()));
        let lines = packed(b"iso")
            .as_bytes()
            .chunks(5)
            .map(|part| String::from_utf8_lossy(part) + "\n")
            .collect::<String>();
        assert_eq!(decode(&lines), Ok(b"iso".to_vec()));
        assert_eq!(decode(&STANDARD.encode(b"plain")), Ok(b"plain".to_vec()));
        assert!(decode("secret?").expect_err("no base64").contains("not base64"));
        assert!(decode("").expect_err("nothing").contains("empty"));
        let bomb = vec![0; usize::try_from(LARGEST).expect("small") + 1];
        assert!(decode(&packed(&bomb)).expect_err("a bomb").contains("64 MiB"));
    }

    #[test]
    fn labels_are_read() {
        let mut iso = vec![0; 40_000];
        iso[32769..32774].copy_from_slice(b"CD001");
        iso[32808..32816].copy_from_slice(b"config-2");
        iso[32816..32840].fill(b' ');
        assert_eq!(label(&iso).as_deref(), Some("config-2"));
        let mut fat = vec![0; 512];
        fat[510..].copy_from_slice(&[0x55, 0xaa]);
        fat[54..62].copy_from_slice(b"FAT16   ");
        fat[43..54].copy_from_slice(b"CONFIG-2   ");
        assert_eq!(label(&fat).as_deref(), Some("CONFIG-2"));
        assert_eq!(label(&[0; 600]), None);
    }
}
