//! Clients that others wrote: libraries, and programs that build on them.

use crate::controller::Controller;
use crate::process::check;
use crate::{Operators, World};
use anyhow::{Context, Result};
use std::process::Command;

/// Where Debian's packages put the sources of Go libraries.
const GO_LIBRARIES: &str = "/usr/share/gocode";

/// A node's life through openstacksdk.
pub fn openstacksdk(world: &World) -> Result<()> {
    script(world, "osc", "sdk.py", include_str!("../../peers/sdk.py"))
}

/// A node is reserved, deployed and released through metalsmith.
pub fn metalsmith(world: &World) -> Result<()> {
    script(world, "metalsmith", "metalsmith.py", include_str!("../../peers/metalsmith.py"))
}

/// What nova-compute asks of its driver for bare metal, from an instance's birth to its end.
pub fn nova(world: &World) -> Result<()> {
    script(world, "nova", "nova.py", include_str!("../../peers/nova.py"))
}

/// Runs a script of `peers/` with the interpreter of an environment, in the environment that `anneal env` prints.
fn script(world: &World, environment: &str, name: &str, text: &str) -> Result<()> {
    let controller = Controller::start(world)?;
    let script = world.dir.join(name.replace(".py", "_script.py"));
    std::fs::write(&script, text)?;
    let mut command = controller.in_environment(&world.peers.program(environment, "python3"));
    command.arg(script).arg(&controller.endpoint).current_dir(&world.dir);
    check(&mut command).with_context(|| format!("peers/{name}")).map(drop)
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
