//! qcow2 (QEMU's docs/interop/qcow2.txt), read in the order of the file.
//!
//! A table names clusters by their place in the file, and the tools write a table before the clusters that it names. So
//! the file is read once, from its beginning to its end: tables are remembered, and a cluster goes to its place on the
//! disk as it passes. The last 8 MiB of the file are kept, for tables that come a little later than their clusters. Where
//! they come much later, all tables are read ahead, if the server answers requests for ranges; else the image is refused
//! with the command that puts it in order (docs/decisions/0034-qcow2-in-one-pass.md).

mod header;
mod map;
mod pass;

pub use header::{Header, MAGIC, Packing};
pub use pass::{place, place_with};

pub(super) use header::corrupt;

#[cfg(test)]
mod tests;
