//! The simulation (`tests/sim`): ten thousand seeds and then the fleet, or what its options say.

use std::process::Command;

use anyhow::Result;

use crate::sh;

/// `words` are the options of `sim`; see there.
pub fn run(words: Vec<String>) -> Result<()> {
    sh::run(sh::cargo().args(["build", "--package", "sim", "--bins"]))?;
    let sim = sh::target_dir().join("debug/sim");
    if words.is_empty() {
        sh::run(&mut Command::new(&sim))?;
        return sh::run(Command::new(&sim).arg("--fleet"));
    }
    sh::run(Command::new(&sim).args(words))
}
