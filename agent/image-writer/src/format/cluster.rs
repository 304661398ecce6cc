//! Compressed clusters.

use super::qcow2::Packing;
use flate2::{Decompress, FlushDecompress};
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// The window of a cluster that is packed with Zstandard, as a power of two: nothing refers to more than the largest
/// cluster.
const WINDOW_LOG: u32 = 21;

/// Unpacks one cluster after another.
pub(super) enum Unpacker {
    Zlib(Decompress),
    Zstd(Decoder<'static>),
}

impl Unpacker {
    pub(super) fn new(packing: Packing) -> Result<Self, String> {
        match packing {
            Packing::Zlib => Ok(Unpacker::Zlib(Decompress::new(false))),
            Packing::Zstd => {
                let mut decoder = Decoder::new().map_err(|error| error.to_string())?;
                let limited = decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG));
                limited.map(|()| Unpacker::Zstd(decoder)).map_err(|error| error.to_string())
            }
        }
    }

    /// What `packed` decompresses to: `cluster` bytes, no more; what follows them is not looked at.
    pub(super) fn unpack(&mut self, packed: &[u8], cluster: usize) -> Result<Vec<u8>, String> {
        let mut unpacked = vec![0; cluster];
        let length = match self {
            Unpacker::Zlib(inflate) => {
                inflate.reset(false);
                let done = inflate.decompress(packed, &mut unpacked, FlushDecompress::Finish);
                done.map_err(|error| error.to_string())?;
                usize::try_from(inflate.total_out()).unwrap_or(0)
            }
            Unpacker::Zstd(decoder) => {
                decoder.reinit().map_err(|error| error.to_string())?;
                zstd(decoder, packed, &mut unpacked)?
            }
        };
        if length == cluster { Ok(unpacked) } else { Err("it is shorter than a cluster".to_owned()) }
    }
}

/// How many bytes came, over as many frames as it takes.
fn zstd(decoder: &mut Decoder<'_>, packed: &[u8], unpacked: &mut [u8]) -> Result<usize, String> {
    let (mut from, mut to) = (0, 0);
    while to < unpacked.len() {
        let status = decoder.run_on_buffers(&packed[from..], &mut unpacked[to..]);
        let status = status.map_err(|error| error.to_string())?;
        (from, to) = (from + status.bytes_read, to + status.bytes_written);
        if status.bytes_read == 0 && status.bytes_written == 0 {
            break;
        }
    }
    Ok(to)
}
