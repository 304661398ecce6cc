//! The record of the writing, as it is reported.

use agent_protocol::deployment::{Edit, WrittenDisk, WrittenImage};
use block::Disk;
use image_writer::Record;

/// What was written to which disk; `others` would have done as well.
pub(super) fn deployed(disk: &Disk, others: Vec<String>, record: &Record) -> WrittenDisk {
    let edit = |edit: &image_writer::Edit| Edit {
        what: edit.what.clone(),
        offset: edit.offset,
        length: edit.length,
        sha256: edit.sha256.clone(),
    };
    WrittenDisk {
        device: disk.path.display().to_string(),
        serial: disk.serial.clone(),
        wwn: disk.wwn.clone(),
        model: disk.model.clone(),
        size: disk.size,
        others,
        record: WrittenImage {
            source: record.source.to_string(),
            format: record.format.as_str().to_owned(),
            compression: record.compression.clone(),
            downloaded: record.downloaded,
            algorithm: record.algorithm.as_str().to_owned(),
            download_digest: record.download_digest.clone(),
            size: record.size,
            written: record.written,
            leaf: record.leaf,
            written_sum: record.written_sum.clone(),
            read_back: record.read_back,
            read_back_sum: record.read_back_sum.clone(),
            read_back_sha256: record.read_back_sha256.clone(),
            disk_id: record.disk_id.clone(),
            edits: record.edits.iter().map(edit).collect(),
        },
    }
}
