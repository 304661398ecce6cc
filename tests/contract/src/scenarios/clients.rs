//! Clients that others wrote: libraries, and programs that build on them.

use crate::controller::Controller;
use crate::peers::SDK_TESTS;
use crate::process::check;
use crate::{Operators, World, clouds};
use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Where the clients that were run are listed, with what came of it.
const LIST: &str = include_str!("../../../../docs/compatibility.md");

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

/// The functional tests for bare metal that openstacksdk's package ships, all of them. What came of them is what the list of
/// clients says.
pub fn sdk_suite(world: &World) -> Result<()> {
    /// The tests work with an operator's cloud and with those of users.
    const CLOUDS: [&str; 4] = ["devstack-admin", "devstack-system-admin", "devstack", "devstack-alt"];
    world.peers.add(&[SDK_TESTS])?;
    let controller = Controller::start(world)?;
    let script = world.dir.join("sdk_suite.py");
    std::fs::write(&script, include_str!("../../peers/sdk_suite.py"))?;
    let mut suite = Command::new(world.peers.program(SDK_TESTS.0, "python3"));
    suite.arg(script).current_dir(&world.dir).env("OS_TEST_TIMEOUT", "300").env("OS_LOG_CAPTURE", "1");
    suite.env("OS_CLIENT_CONFIG_FILE", clouds::write(world, &controller, &CLOUDS)?);
    let output = check(&mut suite).context("peers/sdk_suite.py")?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    let numbers = said.lines().last().context("the suite has printed nothing")?;
    ensure!(LIST.contains(numbers), "docs/compatibility.md does not say: {numbers}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::LIST;
    use crate::peers::{ALL, COLLECTION, IPA, IRONIC, SDK_TESTS};

    #[test]
    fn the_list_of_clients_has_the_versions_that_are_run() {
        let clients = ALL.iter().filter(|environment| ![IRONIC, IPA].contains(environment));
        let packages = clients.chain([&SDK_TESTS]).map(|(_, packages)| packages[0]).chain([COLLECTION.1]);
        for package in packages {
            assert!(LIST.contains(&package.replace("==", " ")), "docs/compatibility.md names no {package}");
        }
    }
}
