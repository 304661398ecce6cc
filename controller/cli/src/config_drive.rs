//! `--config-drive FILE`: what the instance reads at its first boot.

use crate::failure::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::io::Write;
use std::path::Path;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The file as Ironic takes it: a JSON object (`meta_data`, `user_data`, `network_data`) of which the controller
/// makes the drive, or the image of the drive, gzipped and in base64.
pub fn read(path: &Path) -> Result<Value, Failure> {
    let named = |reason: String| Failure::Usage(format!("--config-drive {}: {reason}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| named(error.to_string()))?;
    encode(&bytes).map_err(named)
}

fn encode(bytes: &[u8]) -> Result<Value, String> {
    let text = bytes.trim_ascii();
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.starts_with(b"{") {
        return serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"));
    }
    if bytes.starts_with(&GZIP) {
        return Ok(STANDARD.encode(bytes).into());
    }
    // Already encoded, perhaps with line breaks as base64(1) writes them.
    let digits: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if STANDARD.decode(&digits).is_ok_and(|inner| inner.starts_with(&GZIP)) {
        return String::from_utf8(digits).map(Value::from).map_err(|error| error.to_string());
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let packed = gzip.write_all(bytes).and_then(|()| gzip.finish()).map_err(|error| error.to_string())?;
    Ok(STANDARD.encode(packed).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// The image in what was encoded.
    fn image(encoded: &Value) -> Vec<u8> {
        let packed = STANDARD.decode(encoded.as_str().unwrap()).unwrap();
        let mut image = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut image).unwrap();
        image
    }

    #[test]
    fn every_form_of_a_config_drive_arrives_as_ironic_takes_it() {
        assert_eq!(
            encode(b" {\"meta_data\": {\"hostname\": \"h\"}}\n").unwrap()["meta_data"]["hostname"],
            "h"
        );
        let raw = encode(b"CD001 an image").unwrap();
        assert_eq!(image(&raw), b"CD001 an image");
        let packed = STANDARD.decode(raw.as_str().unwrap()).unwrap();
        assert_eq!(encode(&packed).unwrap(), raw);
        let (first, second) = raw.as_str().unwrap().split_at(10);
        assert_eq!(encode(format!("{first}\n{second}\n").as_bytes()).unwrap(), raw);
        assert!(encode(b"{\"a\": ").unwrap_err().contains("not JSON"));
        assert!(encode(b"\n").is_err());
        assert!(read(Path::new("/nonexistent")).unwrap_err().to_string().contains("/nonexistent"));
    }
}
