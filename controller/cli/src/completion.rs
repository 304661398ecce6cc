//! `anneal completion`: the script that a shell reads to complete our commands, made of the declarations of clap.

use crate::failure::Failure;
use crate::{Cli, output};
use clap::CommandFactory;
use clap_complete::{Shell, generate};

/// Print the script.
pub fn print(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "anneal", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
