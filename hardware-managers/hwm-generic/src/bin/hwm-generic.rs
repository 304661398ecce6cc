//! The generic hardware manager in a program of its own, as a vendor's would be: what is linked into the agent and what
//! is started by it are the same. It is for tries and tests, so it knows the disks named on its command line and no
//! others.

use block::Filter;
use hwm_generic::GenericHardwareManager;
use std::process::ExitCode;

fn main() -> ExitCode {
    let disks = std::env::args_os().skip(1).map(Into::into).collect();
    hwm_sdk::serve(GenericHardwareManager::new(Filter::Only(disks)))
}
