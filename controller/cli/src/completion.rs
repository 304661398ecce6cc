//! `anneal completion`: the script that a shell reads to complete our commands, made of the declarations of clap.

use crate::failure::Failure;
use crate::output;
use clap::Command;
use clap_complete::{Shell, generate};

/// Print the script of the whole command line.
pub fn print(shell: Shell, mut anneal: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(shell, &mut anneal, "anneal", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
