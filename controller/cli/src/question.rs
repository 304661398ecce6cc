//! The question before something is done to many at once.

use crate::failure::Failure;
use clap::Args;
use std::io::{BufRead, IsTerminal};

/// Whether to ask.
#[derive(Debug, Clone, Copy, Args)]
pub struct Question {
    /// Do what is asked for without a question, where there would be one: before many nodes are erased, interrupted or
    /// forgotten. Needed where standard input is no terminal.
    #[arg(long)]
    yes: bool,
}

impl Question {
    /// Asks whether `what` is to be done to so many. The answer is the number of them, so that no habit answers.
    ///
    /// # Errors
    /// It was not answered so, or there is no terminal to ask at.
    pub fn ask(self, count: usize, what: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            let why = format!(
                "{count} {what}. Nothing was changed: this needs --yes where no terminal can be asked"
            );
            return Err(Failure::Usage(why));
        }
        eprint!("{count} {what}.\nType {count} to go on: ");
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        if line.trim() == count.to_string() {
            return Ok(());
        }
        Err(Failure::Usage("nothing was changed".to_owned()))
    }
}
