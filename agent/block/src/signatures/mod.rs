//! What libblkid recognises on a device. libblkid is C that parses what the former user of a disk wrote, so it runs in a
//! process of its own: this program, started again, which confines itself before it reads the first byte.
//!
//! ```text
//!   find ──▶ process: this program with [`process::WORD`], the device as descriptor 0 (read-only) ──▶ child: confined
//!                 answer, JSON, at most 1 MiB  ◀────────────────────────────────────────────── libblkid
//! ```
//!
//! A child that crashes, hangs, or gives no usable answer is an error: the disk then counts as unreadable.

mod answer;
mod child;
mod process;

pub(crate) use answer::Found;
pub(crate) use child::run;
pub(crate) use process::WORD;

use answer::{Answer, Request};
use std::fs::File;
use std::io;
use std::process::Command;
use std::time::Duration;

/// Longest that one device may take. The kernel repeats a read of a SCSI disk for three minutes before it reports an error.
const LONGEST: Duration = Duration::from_secs(600);

/// Have the device of `size` bytes looked at, and the ranges of `partitions` in it.
///
/// # Errors
/// When it cannot be read, or the process that looks at it does not end with an answer.
pub(crate) fn find(
    file: &File,
    size: u64,
    sector: u32,
    partitions: impl IntoIterator<Item = (u64, u64)>,
) -> io::Result<Found> {
    let request = Request { size, sector, partitions: partitions.into_iter().collect() };
    if cfg!(fuzzing) {
        // libFuzzer sees what happens in its own process only.
        return child::examine(file, &request);
    }
    let mut program = Command::new("/proc/self/exe");
    program.arg(WORD).arg(serde_json::to_string(&request)?).env_clear();
    match serde_json::from_slice(&process::answer(program, file, LONGEST)?) {
        Ok(Answer::Found(found)) => Ok(found),
        Ok(Answer::Failed(why)) => Err(io::Error::other(why)),
        Err(error) => Err(io::Error::other(format!("the answer of libblkid's process is unusable: {error}"))),
    }
}
