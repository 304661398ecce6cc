//! Libraries that others build on: openstacksdk in Python, gophercloud as Metal3 uses it.

use crate::controller::Controller;
use crate::process::check;
use crate::{Operators, World};
use anyhow::{Context, Result};
use std::process::Command;

/// Where Debian's packages put the sources of Go libraries.
const GO_LIBRARIES: &str = "/usr/share/gocode";

/// A node's life through openstacksdk.
pub fn openstacksdk(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let script = world.dir.join("sdk.py");
    std::fs::write(&script, include_str!("../../peers/sdk.py"))?;
    let mut command = controller.in_environment(&world.peers.program("osc", "python3"));
    check(command.arg(script).arg(&controller.endpoint)).context("peers/sdk.py").map(drop)
}

/// The same where no client authenticates.
pub fn noauth(world: &World) -> Result<()> {
    openstacksdk(&World { operators: Operators::Noauth, ..world.clone() })
}

/// What baremetal-operator asks, in its order, through gophercloud.
pub fn metal3(world: &World) -> Result<()> {
    let controller = Controller::start(world)?;
    let (source, program) = (world.dir.join("metal3.go"), world.dir.join("metal3"));
    std::fs::write(&source, include_str!("../../peers/metal3/main.go"))?;
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(&source);
    build.env("GO111MODULE", "off").env("GOPATH", GO_LIBRARIES).env("GOFLAGS", "");
    check(build.env("GOCACHE", world.peers.cache("go"))).context("go build (Debian: golang-go)")?;
    check(controller.in_environment(&program).arg(&controller.endpoint)).context("peers/metal3").map(drop)
}
