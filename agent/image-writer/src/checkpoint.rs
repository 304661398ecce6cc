//! Where a later session may go on.

use crate::format::Format;
use image_source::MaskedUrl;
use root_device::DiskIdentity;
use serde::{Deserialize, Serialize};

/// So much of this image is on this disk. The image is fetched and decompressed again, and not written again; the disk is
/// read back from its beginning in any case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// What is being written.
    pub image: Identity,
    /// The disk, by what it is known by after a reboot.
    pub disk: DiskIdentity,
    /// Its size in bytes.
    pub size: u64,
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
    /// How much of `image` is on a disk of `size` bytes: none where anything differs, or the disk has no identity.
    pub fn written(&self, image: &Identity, disk: Option<&DiskIdentity>, size: u64) -> u64 {
        let same = self.image == *image && Some(&self.disk) == disk && self.size == size;
        if same { self.written } else { 0 }
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
        let disk = DiskIdentity::of(Some("1"), None);
        let checkpoint = Checkpoint {
            image: image.clone(),
            disk: disk.clone().expect("an identity"),
            size: 4096,
            written: 7,
        };
        assert_eq!(checkpoint.written(&image, disk.as_ref(), 4096), 7);
        for other in [
            Identity { etag: Some("\"2\"".into()), ..image.clone() },
            Identity { length: Some(8), ..image.clone() },
            Identity { checksum: "b".into(), ..image.clone() },
            Identity { ranges: false, ..image.clone() },
        ] {
            assert_eq!(checkpoint.written(&other, disk.as_ref(), 4096), 0, "{other:?}");
        }
        assert_eq!(checkpoint.written(&image, disk.as_ref(), 8192), 0);
        assert_eq!(checkpoint.written(&image, DiskIdentity::of(Some("1"), Some("0x5")).as_ref(), 4096), 0);
        assert_eq!(checkpoint.written(&image, None, 4096), 0);
        let text = r#"{"image":{"url":"http://h/x","checksum":"a","etag":"\"1\"","modified":null,"length":9,"format":"raw","ranges":true},"disk":{"serial":"1"},"size":4096,"written":7}"#;
        assert_eq!(serde_json::to_string(&checkpoint).expect("JSON"), text);
        assert_eq!(serde_json::from_str::<Checkpoint>(text).expect("a checkpoint"), checkpoint);
    }
}
