//! `anneal manual`: a manual page for each command (`anneal.1`, `anneal-node.1`, `anneal-node-create.1` …), made of the
//! declarations of clap, with no date in it: the same program writes the same bytes.

use crate::failure::Failure;
use clap::Command;
use std::path::Path;

/// Write the pages of the whole command line into a directory that exists.
pub fn write(directory: &Path, anneal: Command) -> Result<(), Failure> {
    let failed = |error| Failure::Usage(format!("{}: {error}", directory.display()));
    clap_mangen::generate_to(anneal, directory).map_err(failed)
}
