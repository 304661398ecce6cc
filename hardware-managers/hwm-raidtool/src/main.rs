//! The manager as an external program: `hwm-raidtool PATH-OF-THE-TOOL`, started by an agent.

use hwm_raidtool::{RaidTool, Tool};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(program) = std::env::args_os().nth(1) else {
        eprintln!("usage: hwm-raidtool PATH-OF-THE-TOOL");
        return ExitCode::from(2);
    };
    hwm_sdk::serve(RaidTool::new(Tool::new(program)))
}
