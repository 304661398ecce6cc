//! Where a later session may go on.

use crate::format::Format;
use image_source::MaskedUrl;
use serde::{Deserialize, Serialize};

/// So much of this image is on this disk. The image is fetched and decompressed again, and not written again; the disk is
/// read back from its beginning in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// What is being written.
    pub image: Identity,
    /// The disk: name with serial number, and bytes.
    pub disk: (String, u64),
    /// Bytes of the content that were given to the disk and flushed, in the order in which the file has them.
    pub written: u64,
}

/// Which image, so that another one is recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Where it comes from.
    pub url: MaskedUrl,
    /// The checksum that was asked for.
    pub checksum: String,
    /// Entity tag of the file.
    pub etag: Option<String>,
    /// When it was changed last.
    pub modified: Option<String>,
    /// Its length.
    pub length: Option<u64>,
    /// Its format.
    pub format: Format,
    /// Whether tables can be read ahead, on which the order of the content depends.
    pub ranges: bool,
}

impl Checkpoint {
    /// How much of `image` is on `disk`: none where anything differs.
    pub fn written(&self, image: &Identity, disk: &(String, u64)) -> u64 {
        if self.image == *image && self.disk == *disk { self.written } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_of_another_image_or_disk_counts_for_nothing() {
        let url: crate::ImageUrl = "http://h/x".parse().expect("a URL");
        let image = Identity {
            url: url.masked(),
            checksum: "a".into(),
            etag: Some("\"1\"".into()),
            modified: None,
            length: Some(9),
            format: Format::Raw,
            ranges: true,
        };
        let disk = ("/dev/x (serial 1)".to_owned(), 4096);
        let checkpoint = Checkpoint { image: image.clone(), disk: disk.clone(), written: 7 };
        assert_eq!(checkpoint.written(&image, &disk), 7);
        for other in [
            Identity { etag: Some("\"2\"".into()), ..image.clone() },
            Identity { length: Some(8), ..image.clone() },
            Identity { checksum: "b".into(), ..image.clone() },
            Identity { ranges: false, ..image.clone() },
        ] {
            assert_eq!(checkpoint.written(&other, &disk), 0, "{other:?}");
        }
        assert_eq!(checkpoint.written(&image, &(disk.0, 8192)), 0);
        let text = r#"{"image":{"url":"http://h/x","checksum":"a","etag":"\"1\"","modified":null,"length":9,"format":"raw","ranges":true},"disk":["/dev/x (serial 1)",4096],"written":7}"#;
        assert_eq!(serde_json::to_string(&checkpoint).expect("JSON"), text);
        assert_eq!(serde_json::from_str::<Checkpoint>(text).expect("a checkpoint"), checkpoint);
    }
}
