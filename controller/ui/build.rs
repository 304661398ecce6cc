//! Embeds every file below `assets/`, as it is and compressed: `files.rs` is a table of them.

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let assets = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("assets");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", assets.display());
    let mut files = Vec::new();
    find(&assets, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (index, file) in files.iter().enumerate() {
        println!("cargo::rerun-if-changed={}", file.display());
        let bytes = fs::read(file)?;
        let packed = out.join(format!("{index}.gz"));
        // Without a name and a time in the header: the same files make the same binary.
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        fs::write(&packed, encoder.finish()?)?;
        let digest: String = Sha256::digest(&bytes)[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        let path = file.strip_prefix(&assets)?.to_str().ok_or("a name of an asset is not UTF-8")?;
        writeln!(
            table,
            "File {{ path: {path:?}, plain: include_bytes!({file:?}), packed: include_bytes!({packed:?}), \
             tag: {:?} }},",
            format!("W/\"{digest}\"")
        )?;
    }
    table.push_str("]\n");
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

/// The files below a directory.
fn find(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => find(&entry.path(), files)?,
            false => files.push(entry.path()),
        }
    }
    Ok(())
}
