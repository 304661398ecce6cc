//! The writing engine: stages that overlap, then the verification, then what makes the disk bootable.

mod assemble;
mod disk;
mod drain;
mod finish;
mod input;
mod progress;
mod request;
mod shared;
mod stages;

pub use progress::{Phase, Progress, Watch};
pub use request::{CHECKPOINT_BYTES, Request};

use crate::configdrive;
use crate::error::ImageError;
use crate::hold::Held;
use crate::record::Record;
use block::Target;
use image_source::Source;
use image_source::{Checksum, ChecksumSource};

/// Writes the image of `request` to `disk` and verifies it. The disk must be open exclusively.
///
/// # Errors
/// Why not. Nothing on the disk can be booted then.
pub fn write(request: &Request, disk: &dyn Target, watch: &dyn Watch) -> Result<Record, ImageError> {
    let held = Held::new(disk.size()).ok_or_else(|| ImageError::TooLarge {
        image: None,
        disk: disk.name(),
        size: disk.size(),
    })?;
    if let Some(drive) = &request.configdrive {
        configdrive::check(drive, disk.logical_block() as usize).map_err(ImageError::ConfigDrive)?;
    }
    let checksum = checksum(request, watch)?;
    let streamed = stages::stream(request, &checksum, disk, held, watch)?;
    if streamed.digest != checksum.value {
        return Err(ImageError::Digest {
            url: request.source.url.masked(),
            algorithm: checksum.algorithm,
            found: streamed.digest,
            expected: checksum.value,
        });
    }
    let returned = drain::read_back(disk, &streamed, watch)?;
    let disk_id = crate::mbr::disk_id(&streamed.held.head);
    let edits = finish::finish(disk, streamed.held, streamed.size, request.configdrive.as_deref(), watch)?;
    Ok(Record {
        source: request.source.url.masked(),
        format: streamed.format,
        compression: streamed.compression.as_str().to_owned(),
        downloaded: streamed.downloaded,
        algorithm: checksum.algorithm,
        download_digest: checksum.value,
        size: streamed.size,
        written: streamed.written,
        leaf: streamed.sum.leaf() as u64,
        written_sum: streamed.sum.hex(),
        read_back: returned.bytes,
        read_back_sum: returned.sum.hex(),
        read_back_sha256: returned.sha256,
        disk_id,
        edits,
    })
}

/// A whole file of at most `limit` bytes, into memory.
///
/// # Errors
/// Why not.
pub fn fetch(source: &Source, limit: usize, watch: &dyn Watch) -> Result<Vec<u8>, ImageError> {
    let fetched = image_source::fetch_small(source, limit, &|note| watch.note(note), &|| watch.cancelled());
    fetched.map_err(ImageError::from)
}

/// The digest that the image must have, from its file of checksums if need be.
fn checksum(request: &Request, watch: &dyn Watch) -> Result<Checksum, ImageError> {
    let (url, algorithm) = match &request.checksum {
        ChecksumSource::Value(checksum) => return Ok(checksum.clone()),
        ChecksumSource::Sums { url, algorithm } => (url, *algorithm),
    };
    let source = request.source.of_another_file(url.clone());
    let text = fetch(&source, image_source::checksum::SUMS_BYTES, watch)?;
    let name = request.source.url.base_name();
    image_source::checksum::find(&text, name, algorithm, request.allow_md5)
        .map_err(|problem| ImageError::Checksum(format!("{}: {problem}", url.masked())))
}
