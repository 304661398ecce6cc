//! Add-on firmware: archives that the kernel unpacks behind the initramfs, one for each of its modules that asks for firmware. `cargo
//! xtask image --firmware` makes them, with an index that says which devices each module drives.
//!
//! ```text
//!  index.json ─▶ Index ─┬▶ chosen ─▶ names of files ─▶ boot script, boot medium
//!  PCI modaliases of the node's last inventory ─┘
//! ```

mod pci_alias;

use pci_alias::PciAlias;
use serde::Deserialize;
use std::path::PathBuf;

/// Most bytes of firmware that a boot carries. All that one machine needs has a third of it; more is a mistake in the archives.
pub const MOST: u64 = 6 << 20;

/// Name of the index.
const INDEX: &str = "index.json";
/// How the names of the archives end.
const PIECE: &str = ".cpio.zst";

/// Why there is no add-on firmware for a boot.
#[derive(Debug, thiserror::Error)]
pub enum FirmwareError {
    /// The index or an archive cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The index is not what `cargo xtask image --firmware` writes.
    #[error("{}: {problem}", path.display())]
    Index {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// More than [`MOST`].
    #[error("the firmware of {} has {bytes} bytes, and a boot carries at most {MOST}", modules.join(", "))]
    TooLarge {
        /// The modules that ask for it.
        modules: Vec<String>,
        /// Of all of it.
        bytes: u64,
    },
}

/// What a directory of add-on firmware holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Index {
    pieces: Vec<FirmwarePiece>,
}

/// The firmware of one kernel module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct FirmwarePiece {
    module: String,
    /// Name of its archive, in the directory of the index.
    file: String,
    /// Size of the archive.
    bytes: u64,
    /// Patterns of the devices whose drivers ask for it, as depmod writes them; those of PCI count.
    modaliases: Vec<String>,
}

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let index: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match index.pieces.iter().find(|piece| !is_piece(&piece.file)) {
            Some(piece) => Err(format!("{:?} is no name of an archive (NAME{PIECE})", piece.file)),
            None => Ok(index),
        }
    }

    /// The archives for a node with these PCI functions (`pci:v00008086d…`); for one of which nothing is known, all: its network card
    /// may be the one that needs firmware.
    ///
    /// # Errors
    /// They are larger than a boot carries: then it gets none.
    fn chosen(&self, functions: Option<&[String]>) -> Result<Vec<&FirmwarePiece>, FirmwareError> {
        let fits = |piece: &&FirmwarePiece| functions.is_none_or(|functions| piece.is_for(functions));
        let chosen: Vec<&FirmwarePiece> = self.pieces.iter().filter(fits).collect();
        let bytes: u64 = chosen.iter().map(|piece| piece.bytes).fold(0, u64::saturating_add);
        if bytes > MOST {
            let modules = chosen.iter().map(|piece| piece.module.clone()).collect();
            return Err(FirmwareError::TooLarge { modules, bytes });
        }
        Ok(chosen)
    }
}

impl FirmwarePiece {
    fn is_for(&self, functions: &[String]) -> bool {
        let aliases: Vec<PciAlias> =
            self.modaliases.iter().filter_map(|pattern| PciAlias::parse(pattern)).collect();
        let mut functions = functions.iter().filter_map(|modalias| PciAlias::parse(modalias));
        functions.any(|function| aliases.iter().any(|alias| alias.covers(&function)))
    }
}

/// A directory with an index and its archives. It is read anew for each boot, so that it can be replaced at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirmwareDir(PathBuf);

impl FirmwareDir {
    /// This directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The names of the archives for a node, in the order of the index; see [`Index`]. `functions`: the PCI modaliases of the node, if
    /// they are known.
    ///
    /// # Errors
    /// The index or an archive cannot be read, or they are larger than a boot carries.
    pub async fn chosen(&self, functions: Option<&[String]>) -> Result<Vec<String>, FirmwareError> {
        let path = self.0.join(INDEX);
        let text = tokio::fs::read_to_string(&path).await;
        let text = text.map_err(|source| FirmwareError::Read { path: path.clone(), source })?;
        let index = Index::parse(&text).map_err(|problem| FirmwareError::Index { path, problem })?;
        let mut names = Vec::new();
        for piece in index.chosen(functions)? {
            // A node would ask for it again and again.
            let path = self.0.join(&piece.file);
            tokio::fs::metadata(&path).await.map_err(|source| FirmwareError::Read { path, source })?;
            names.push(piece.file.clone());
        }
        Ok(names)
    }

    /// Whether the index can be used. Reads the file at once, for the start of a program.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), FirmwareError> {
        let path = self.0.join(INDEX);
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|source| FirmwareError::Read { path: path.clone(), source })?;
        Index::parse(&text).map(drop).map_err(|problem| FirmwareError::Index { path, problem })
    }

    /// The archive of this name; `None` for a name that no archive has.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        is_piece(name).then(|| self.0.join(name))
    }
}

/// Such a name is one word of a boot script and of a URL, and stays in its directory.
fn is_piece(name: &str) -> bool {
    let stem = name.strip_suffix(PIECE).unwrap_or_default();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=64).contains(&stem.len()) && stem.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BNX2X: &str = "pci:v000014E4d0000168Esv00001028sd00001F67bc02sc00i00";
    const E100: &str = "pci:v00008086d00001209sv00001AF4sd00001100bc02sc00i00";

    fn index(bytes: u64) -> Index {
        let text = serde_json::json!({"kernel": "6.1.0", "pieces": [
            {"module": "bnx2x", "file": "bnx2x.cpio.zst", "bytes": bytes, "sha256": "ab",
             "modaliases": ["pci:v000014E4d0000168Esv*sd*bc*sc*i*", "pci:v000014E4d00001662sv*sd*bc*sc*i*"]},
            {"module": "e100", "file": "e100.cpio.zst", "bytes": 10, "modaliases": ["pci:v00008086d00001209sv*sd*bc02sc00i*"]},
            {"module": "r8152", "file": "r8152.cpio.zst", "bytes": 10, "modaliases": ["usb:v0BDAp8152d*dc*dsc*dp*ic*isc*ip*in*"]},
        ]});
        Index::parse(&text.to_string()).unwrap()
    }

    fn chosen(index: &Index, functions: Option<&[&str]>) -> Vec<String> {
        let functions: Option<Vec<String>> =
            functions.map(|functions| functions.iter().map(|one| (*one).to_owned()).collect());
        index.chosen(functions.as_deref()).unwrap().iter().map(|piece| piece.module.clone()).collect()
    }

    #[test]
    fn a_node_gets_what_its_devices_need_and_an_unknown_one_everything() {
        let index = index(100);
        assert_eq!(chosen(&index, Some(&[E100])), ["e100"]);
        assert_eq!(chosen(&index, Some(&[E100, BNX2X, E100])), ["bnx2x", "e100"]);
        assert_eq!(chosen(&index, Some(&["pci:v00001AF4d00001000sv00001AF4sd00000001bc02sc00i00"])), [""; 0]);
        assert_eq!(chosen(&index, Some(&[])), [""; 0]);
        assert_eq!(chosen(&index, None), ["bnx2x", "e100", "r8152"]);
    }

    #[test]
    fn more_than_a_medium_has_room_for_is_named_and_not_sent() {
        let large = index(MOST);
        assert_eq!(chosen(&large, Some(&[BNX2X])), ["bnx2x"]);
        let error = large.chosen(None).unwrap_err().to_string();
        assert!(error.contains("bnx2x, e100, r8152") && error.contains("6291456"), "{error}");
        assert!(index(u64::MAX).chosen(None).is_err());
    }

    #[test]
    fn an_archive_stays_in_its_directory() {
        for name in [
            "",
            ".cpio.zst",
            "../a.cpio.zst",
            "a/b.cpio.zst",
            "a b.cpio.zst",
            "index.json",
            "A.cpio.zst",
            "a.cpio",
        ] {
            assert!(FirmwareDir::new("/f").file(name).is_none(), "{name}");
            let text =
                serde_json::json!({"pieces": [{"module": "a", "file": name, "bytes": 1, "modaliases": []}]});
            let error = Index::parse(&text.to_string()).unwrap_err();
            assert!(error.contains("is no name of an archive"), "{error}");
        }
        assert_eq!(FirmwareDir::new("/f").file("bnx2x.cpio.zst"), Some("/f/bnx2x.cpio.zst".into()));
        assert!(Index::parse("{}").unwrap_err().contains("pieces"));
    }

    #[tokio::test]
    async fn an_archive_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let firmware = FirmwareDir::new(dir.path());
        assert!(firmware.check().unwrap_err().to_string().contains("index.json"));
        let text = r#"{"pieces": [{"module": "a", "file": "a.cpio.zst", "bytes": 1, "modaliases": []}]}"#;
        std::fs::write(dir.path().join("index.json"), text).unwrap();
        firmware.check().unwrap();
        let error = firmware.chosen(None).await.unwrap_err().to_string();
        assert!(error.contains("a.cpio.zst"), "{error}");
        std::fs::write(dir.path().join("a.cpio.zst"), "x").unwrap();
        assert_eq!(firmware.chosen(None).await.unwrap(), ["a.cpio.zst"]);
        std::fs::write(dir.path().join("index.json"), "[]").unwrap();
        assert!(firmware.chosen(None).await.unwrap_err().to_string().contains("index.json"));
    }
}
