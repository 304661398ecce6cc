//! `anneal manual`: a manual page for each command (`anneal.1`, `anneal-node.1`, `anneal-node-create.1` …), made of the
//! declarations of clap, with no date in it: the same program writes the same bytes.

use crate::Cli;
use crate::failure::Failure;
use clap::CommandFactory;
use std::path::Path;

/// Write the pages into a directory that exists.
pub fn write(directory: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::Usage(format!("{}: {error}", directory.display()));
    clap_mangen::generate_to(Cli::command(), directory).map_err(failed)
}
