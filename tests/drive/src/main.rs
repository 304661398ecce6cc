//! `/rig/drive` of a ramdisk: see [`drive::rig`].

use std::process::ExitCode;

fn main() -> ExitCode {
    let serving = std::env::args().nth(1).as_deref() == Some("--serve");
    let ended = if serving { drive::rig::serve() } else { drive::rig::first() };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("drive: {error:#}");
            ExitCode::FAILURE
        }
    }
}
