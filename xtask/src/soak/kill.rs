//! The controller killed at every write, then at every commit: leases and contact with agents too.

use anyhow::Result;

use crate::{fault_points, sh};

pub fn run() -> Result<()> {
    let (program, kill) = fault_points::build()?;
    sh::run(&mut fault_points::kill(&program, &kill))?;
    sh::run(fault_points::kill(&program, &kill).arg("--any"))
}
