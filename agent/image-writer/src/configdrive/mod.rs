//! The configuration drive as it comes with a command: an ISO file system, gzipped, in base64.

mod fat;
pub mod iso;

pub use iso::LARGEST;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use std::io::Read;

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

/// The file system in a file from a URL: as it is, gzipped, or as text in base64, which is what ironic-python-agent takes.
/// No file system and nothing gzipped begins with 32 characters of base64.
///
/// # Errors
/// What is wrong with it.
pub fn from_file(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(byte);
    match std::str::from_utf8(&bytes) {
        Ok(text) if !bytes.is_empty() && bytes.iter().take(32).all(is_text) => decode(text),
        _ => unpack(bytes),
    }
}

/// The most bytes of such a file: gzip makes nothing longer that is longer than a little, base64 by a third, and its
/// lines by a little more.
pub const LARGEST_FILE: u64 = LARGEST / 2 * 3;

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

/// The largest sectors of a disk from which Linux mounts ISO 9660: its own.
const ISO_SECTOR: usize = 2048;

/// Check that the file system can be mounted from a disk with sectors of `sector` bytes, as it is or made anew.
///
/// # Errors
/// Why not.
pub fn check(content: &[u8], sector: usize) -> Result<(), String> {
    for_disk(content, sector, LARGEST).map(drop)
}

/// The file system for a partition of `length` bytes on a disk with sectors of `sector` bytes. What is ISO 9660 and could not
/// be mounted from there becomes FAT with the same files, as with ironic-python-agent.
///
/// # Errors
/// It cannot be read, or its files do not fit.
pub fn for_disk(content: &[u8], sector: usize, length: u64) -> Result<Cow<'_, [u8]>, String> {
    let fat_sector =
        || content.get(11..13).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    if sector <= ISO_SECTOR {
        return Ok(content.into());
    }
    let no_iso = || format!("its file system cannot be mounted from a disk with sectors of {sector} bytes");
    if !iso::is_iso(content) {
        let is_large = label(content).is_some() && fat_sector().is_some_and(|size| size >= sector);
        return if is_large { Ok(content.into()) } else { Err(no_iso()) };
    }
    let entries = iso::entries(content).map_err(|why| format!("{}, and {why}", no_iso()))?;
    let sector = u16::try_from(sector).map_err(|_| no_iso())?;
    fat::image(&entries, sector, length).map(Cow::Owned)
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
    fn a_file_from_a_url_is_taken_in_each_form() {
        let mut iso = vec![0; 40_000];
        iso[32769..32774].copy_from_slice(b"CD001");
        let gzipped = STANDARD.decode(packed(&iso)).expect("base64");
        for file in
            [packed(&iso).into_bytes(), format!("{}\n", packed(&iso)).into_bytes(), gzipped, iso.clone()]
        {
            assert_eq!(from_file(file), Ok(iso.clone()));
        }
        let text = b"this is longer than what is looked at, and is no drive: secret".to_vec();
        assert_eq!(from_file(text.clone()), Ok(text), "what it is says the writer");
        assert!(from_file(b"secret".to_vec()).expect_err("no base64").contains("not base64"));
        assert!(from_file(Vec::new()).expect_err("nothing").contains("empty"));
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
