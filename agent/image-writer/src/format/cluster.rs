//! Compressed clusters.

use super::qcow2::Packing;
use flate2::{Decompress, FlushDecompress};
use std::io::Read;

/// What `packed` decompresses to: `cluster` bytes, no more; what follows them is not looked at.
pub(super) fn unpack(packing: Packing, packed: &[u8], cluster: usize) -> Result<Vec<u8>, String> {
    let mut unpacked = vec![0; cluster];
    let whole = match packing {
        Packing::Zlib => {
            let mut inflate = Decompress::new(false);
            let done = inflate.decompress(packed, &mut unpacked, FlushDecompress::Finish);
            done.map_err(|error| error.to_string())?;
            inflate.total_out() == cluster as u64
        }
        Packing::Zstd => {
            let decoder = zstd::stream::read::Decoder::with_buffer(packed);
            decoder
                .and_then(|mut decoder| {
                    // No larger than a cluster: nothing refers to more.
                    decoder.window_log_max(21)?;
                    decoder.read_exact(&mut unpacked)
                })
                .map_err(|error| error.to_string())?;
            true
        }
    };
    if whole { Ok(unpacked) } else { Err("it is shorter than a cluster".to_owned()) }
}
